"""Which names git ignores: no diff ever has them."""

import os
from collections.abc import Iterable

from guard.core.base.paths import unspell
from guard.git.reader import RepositoryReader

_MOST = 1000
_NONE_IGNORED = 1


def ignored(git: RepositoryReader, names: Iterable[str]) -> frozenset[str]:
    """Of these names, those that stand for something ignored; what lies outside the work tree is not asked for."""
    # The command knows no literal pathspecs; no name that begins with a dot and a slash is anything else.
    asked = {b"./" + unspell(name): name for name in names if _is_below(name)}
    if not asked:
        return frozenset()
    paths = b"".join(path + b"\0" for path in list(asked)[:_MOST])
    git = git.with_variable("GIT_LITERAL_PATHSPECS", "0")
    answer = git.ask("check-ignore", "-z", "--stdin", stdin=paths, codes=(0, _NONE_IGNORED))
    return frozenset(asked[path] for path in answer.split(b"\0") if path in asked)


def _is_below(name: str) -> bool:
    path = os.path.normpath(name)
    return (
        bool(name) and not os.path.isabs(path) and path.split("/")[0] != ".." and "\0" not in name
    )
