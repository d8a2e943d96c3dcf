"""Find which of the paths that a text names exist in a work tree, without following links out of it."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from guard.core.base.paths import unspell
from guard.errors import RepositoryProblem
from guard.git.reader import RepositoryReader

MOST_NAMES = 1000
_MOST_LENGTH = 4096
_MOST_ALIKE = 64
"""Of files with the same name, so many are looked at: each may be deleted."""
_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _ROOT | os.O_NOFOLLOW


def find_named(git: RepositoryReader, names: Iterable[str]) -> frozenset[str]:
    """Return the names that stand for something in the work tree: a path from its root, or the end of a file's path."""
    root = git.repository.root
    wanted = {name: _readings(root, name) for name in islice(dict.fromkeys(names), MOST_NAMES)}
    top = open_root(root, _FOLDER)
    try:
        found = {name for name, paths in wanted.items() if any(_is_there(top, p) for p in paths)}
        left = {name: paths for name, paths in wanted.items() if name not in found and any(paths)}
        return frozenset(found | _find_by_end(git, top, left))
    finally:
        os.close(top)


def open_root(root: Path, flags: int = _ROOT) -> int:
    """Open the folder of a work tree; return its descriptor."""
    try:
        return os.open(root, flags)
    except OSError as error:
        raise RepositoryProblem(
            f"cannot open the work tree {root}: {error.strerror}",
            "restore the folder, or name another work tree with --repo",
        ) from None


def _readings(root: Path, name: str) -> list[bytes]:
    """The paths from the root that a name can mean: as written, and as guard spells names; none if it leads out."""
    try:
        raw = os.fsencode(name)
        meant = dict.fromkeys((raw, unspell(name) if "\\" in name else raw))
    except UnicodeEncodeError:
        return []
    inside = (_path_inside(os.fsencode(root), path) for path in meant)
    return [path for path in inside if path is not None]


def _path_inside(root: bytes, path: bytes) -> bytes | None:
    if not path or len(path) > _MOST_LENGTH or b"\0" in path:
        return None
    if path.startswith(b"/"):
        whole = os.path.normpath(path)
        path = whole.removeprefix(root.rstrip(b"/") + b"/")
        return path if path != whole else None
    short = os.path.normpath(path)
    return None if short in (b".", b"..") or short.startswith(b"../") else short


def _is_there(top: int, path: bytes) -> bool:
    # Every folder on the way must be one, and not a link to one.
    *folders, last = path.split(b"/")
    here = os.dup(top)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        os.stat(last, dir_fd=here, follow_symlinks=False)
    except OSError:
        return False
    finally:
        os.close(here)
    return True


def _find_by_end(git: RepositoryReader, top: int, names: dict[str, list[bytes]]) -> set[str]:
    """The names that are the end of the path of a file, tracked or not, but not ignored."""
    ends = {path: name for name, paths in names.items() for path in paths if name[0] != "/"}
    found: set[str] = set()
    tries: dict[bytes, int] = {}
    for path in list_files(git) if ends else ():
        for end in _ends(path):
            name = ends.get(end)
            if name is None or name in found or tries.get(end, 0) >= _MOST_ALIKE:
                continue
            tries[end] = tries.get(end, 0) + 1
            if _is_there(top, path):
                found.add(name)
    return found


def list_files(git: RepositoryReader) -> list[bytes]:
    return git.ask("ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0")


def _ends(path: bytes) -> Iterator[bytes]:
    """`a/b/c`, `b/c`, `c`."""
    while path:
        yield path
        path = path.partition(b"/")[2]
