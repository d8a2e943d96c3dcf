"""Whether git has a file that a message claims to have changed, however the message spells it."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

_STEMS = frozenset(("readme", "changelog", "license", "contributing"))
_ABSOLUTE = re.compile(r"/|~/|[a-z]:/")
_DRIVE = re.compile(r"[a-z]:/", re.IGNORECASE)
_MOST_GLOBS, _MOST_FOLDERS, _MOST_TAILS = 10, 200, 8


def is_absolute(path: str) -> bool:
    """Whether a path says where it is without regard to the work tree."""
    return _ABSOLUTE.match(path.casefold()) is not None


def tails(path: str) -> tuple[str, ...]:
    """What a path with a drive may be called in a work tree that lies elsewhere: its last parts, two at least."""
    if not _DRIVE.match(path):
        return ()
    parts = path[3:].split("/")
    return tuple("/".join(parts[at:]) for at in range(len(parts) - 1))[-_MOST_TAILS:]


class PathIndex:
    """Changed paths, made ready to be asked for."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = [path.casefold() for path in paths]
        self._by_name: dict[str, list[str]] = {}
        for path in self._paths:
            for key in _keys(path.rpartition("/")[2]):
                self._by_name.setdefault(key, []).append(path)
        self._joined = "\n".join(("", *(f"/{path}" for path in self._paths), ""))
        self._globs = self._folders = 0

    def has(self, claimed: str) -> bool:
        """Whether a changed path is the claimed one, ends with it, lies in it, or matches it."""
        path = claimed.casefold().rstrip("/")
        if any(_is_same(path, other) for other in self._by_name.get(path.rpartition("/")[2], ())):
            return True
        return self._has_glob(path) if set("*?") & set(path) else self._has_folder(path)

    def _has_glob(self, pattern: str) -> bool:
        """A pattern costs a look at every path, so that after some of them nobody is accused by one more."""
        self._globs += 1
        if self._globs > _MOST_GLOBS:
            return True
        return any(
            fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}") for path in self._paths
        )

    def _has_folder(self, folder: str) -> bool:
        self._folders += 1
        return self._folders <= _MOST_FOLDERS and f"/{folder}/" in self._joined


def _keys(last: str) -> set[str]:
    stem = last.partition(".")[0]
    return {last, last.rpartition(" ")[2], *({stem} & _STEMS)}


def _is_same(claimed: str, changed: str) -> bool:
    if claimed in _STEMS or claimed == changed or changed.endswith((f"/{claimed}", f" {claimed}")):
        return True
    return is_absolute(claimed) and claimed.endswith(f"/{changed}")
