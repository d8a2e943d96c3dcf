"""Where a hook was called: the work tree, its git directory, and where HEAD stands, without asking git.

A hook runs for every commit, and another process for each question would cost more than all else that it does.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_BYTES = 4096
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_LENGTHS = (40, 64)


class GitLocation:
    """A work tree with its git directories."""

    def __init__(self, root: str, git_dir: str) -> None:
        self.root = root
        self.git_dir = git_dir
        common = _text(os.path.join(git_dir, "commondir"))
        self.common_dir = os.path.realpath(os.path.join(git_dir, common)) if common else git_dir

    def head(self) -> tuple[str | None, str | None]:
        """The commit that is checked out and its branch; None for what cannot be read from plain files."""
        told = _text(os.path.join(self.git_dir, "HEAD"))
        if not told.startswith("ref: "):
            return (told if is_oid(told) else None), None
        ref = told[len("ref: ") :]
        if not ref.startswith("refs/") or ".." in ref:
            return None, None
        oid = _text(os.path.join(self.common_dir, ref))
        return (oid if is_oid(oid) else None), ref

    def last_move(self) -> tuple[str, str, str] | None:
        """How HEAD came to where it stands: from where, to where, and git's words for it."""
        line = _last_line(os.path.join(self.git_dir, "logs", "HEAD"))
        told, _, words = line.partition("\t")
        ids = told.split(" ", 2)
        if len(ids) < 3 or not is_oid(ids[0]) or not is_oid(ids[1]):
            return None
        return ids[0], ids[1], words


def here(environ: "Mapping[str, str]", root: str) -> GitLocation | None:
    """The place with this work tree; None if the hook was called for another repository than the one that lies there."""
    dot_git = os.path.join(root, ".git")
    git_dir = dot_git
    if os.path.isfile(dot_git):
        told = _text(dot_git)
        if not told.startswith("gitdir: "):
            return None
        git_dir = os.path.join(root, told[len("gitdir: ") :])
    git_dir = os.path.realpath(git_dir)
    named = environ.get("GIT_DIR")
    if named and os.path.realpath(named) != git_dir:
        return None
    return GitLocation(root, git_dir) if os.path.isdir(git_dir) else None


def is_oid(text: str) -> bool:
    """Whether it can be the id of an object."""
    return len(text) in _LENGTHS and not text.strip("0123456789abcdef")


def _text(path: str) -> str:
    return _read(path, 0).decode("utf-8", "surrogateescape").rstrip("\r\n")


def _last_line(path: str) -> str:
    data = _read(path, -_MOST_BYTES)
    return data.rstrip(b"\n").rpartition(b"\n")[2].decode("utf-8", "replace")


def _read(path: str, start: int) -> bytes:
    """From this place on, or from the end back if it is negative; nothing where there is no such file."""
    try:
        descriptor = os.open(path, _READ)
    except (OSError, ValueError):
        return b""
    try:
        if start < 0:
            start = max(0, os.fstat(descriptor).st_size + start)
        return os.pread(descriptor, _MOST_BYTES, start)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
