"""What the programs that call hooks hide from them: pre-commit and prek put unstaged changes aside meanwhile.

Both keep them in a patch file that is named after their own process, which is one above the hook.
"""

import os
from collections.abc import Iterator, Mapping

from guard.hooks.git.ancestors import above

_OLDEST_SECONDS = 86400.0


def are_changes_hidden(environ: Mapping[str, str], now: float) -> bool:
    """Whether a program that called this hook has put unstaged changes aside."""
    if not environ.get("PRE_COMMIT"):
        return False
    pids = {str(pid) for pid, _, _ in above()}
    return any(
        name.removesuffix(".patch").rpartition("-")[2] in pids and now - since < _OLDEST_SECONDS
        for name, since in _patches(environ)
    )


def is_committing(environ: Mapping[str, str]) -> bool:
    """Whether a commit is being made: what is staged is about to be committed, and the rest may be hidden."""
    stage = environ.get("PREK_HOOK_STAGE")
    return stage == "pre-commit" or (stage is None and "GIT_INDEX_FILE" in environ)


def _patches(environ: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME", ""), ".cache")
    pre_commit = environ.get("PRE_COMMIT_HOME") or os.path.join(cache, "pre-commit")
    prek = environ.get("PREK_HOME") or os.path.join(cache, "prek")
    for folder in (pre_commit, os.path.join(prek, "patches")):
        try:
            with os.scandir(folder) as entries:
                yield from (
                    (entry.name, entry.stat().st_mtime)
                    for entry in entries
                    if "patch" in entry.name
                )
        except OSError:
            continue
