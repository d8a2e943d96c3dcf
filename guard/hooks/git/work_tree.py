"""Read the work tree that a git hook was called for: from plain files, or by one question to git.

A commit waits for its hooks, so this loads next to nothing, and starts git only where the files do not tell.
"""

import os
import time

from guard.system.programs import close_folders, find_program, own_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_BYTES = 4096
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_LENGTHS = (40, 64)
_MOST_WORK_TREES = 1000
_GIT_SECONDS = 20.0
_CHUNK = 65536
_SAFELY = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


class HookWorkTree:
    """A work tree with its git directories."""

    def __init__(self, root: str, git_dir: str) -> None:
        self.root = root
        self.git_dir = git_dir
        common = _read_line(os.path.join(git_dir, "commondir"))
        self.common_dir = os.path.realpath(os.path.join(git_dir, common)) if common else git_dir

    def head(self) -> tuple[str | None, str | None]:
        """Return the checked-out commit and its branch; None for each that plain files do not tell."""
        line = _read_line(os.path.join(self.git_dir, "HEAD"))
        if not line.startswith("ref: "):
            return (line if is_oid(line) else None), None
        ref = line[len("ref: ") :]
        if not ref.startswith("refs/") or ".." in ref:
            return None, None
        oid = _read_line(os.path.join(self.common_dir, ref))
        return (oid if is_oid(oid) else None), ref

    def merged(self) -> list[str]:
        """Return the other sides of a merge that is under way."""
        data = _read(os.path.join(self.git_dir, "MERGE_HEAD"), 0)
        return list(filter(is_oid, data.decode("ascii", "replace").split()))

    def last_move(self) -> tuple[str, str, str] | None:
        """Return the last line of HEAD's reflog: the commit before, the commit after, and git's words for the move."""
        line = _last_line(os.path.join(self.git_dir, "logs", "HEAD"))
        before, _, words = line.partition("\t")
        ids = before.split(" ", 2)
        if len(ids) < 3 or not is_oid(ids[0]) or not is_oid(ids[1]):
            return None
        return ids[0], ids[1], words


def open_work_tree(environ: "Mapping[str, str]", root: str) -> HookWorkTree | None:
    """Return the work tree at `root`; None if git called the hook for another repository."""
    dot_git = os.path.join(root, ".git")
    git_dir = dot_git
    if os.path.isfile(dot_git):
        line = _read_line(dot_git)
        if not line.startswith("gitdir: "):
            return None
        git_dir = os.path.join(root, line[len("gitdir: ") :])
    git_dir = os.path.realpath(git_dir)
    named = environ.get("GIT_DIR")
    if named and os.path.realpath(named) != git_dir:
        return None
    return HookWorkTree(root, git_dir) if os.path.isdir(git_dir) else None


def _close_work_trees() -> None:
    """Find no program in any work tree of the repository around the current folder."""
    folder = os.getcwd()
    while not os.path.lexists(os.path.join(folder, ".git")):
        if folder == os.sep:
            return
        folder = os.path.dirname(folder)
    close_folders(folder, *_other_places(open_work_tree({}, folder)))


def _other_places(tree: HookWorkTree | None) -> "Iterator[str]":
    # The agent can name any folder as a git directory or a work tree: it has to look like one, and to agree.
    if tree is None or not os.path.isfile(os.path.join(tree.common_dir, "HEAD")):
        return
    yield from (tree.git_dir, tree.common_dir)
    if os.path.basename(tree.common_dir) == ".git":
        yield os.path.dirname(tree.common_dir)
    entries = os.path.join(tree.common_dir, "worktrees")
    names = os.listdir(entries) if os.path.isdir(entries) else []
    for name in names[:_MOST_WORK_TREES]:
        root = os.path.dirname(_read_line(os.path.join(entries, name, "gitdir")))
        linked = open_work_tree({}, root) if os.path.isabs(root) else None
        if linked is not None and linked.git_dir == os.path.realpath(os.path.join(entries, name)):
            yield root


def is_oid(text: str) -> bool:
    return len(text) in _LENGTHS and not text.strip("0123456789abcdef")


def ask_git(environ: "Mapping[str, str]", *words: str, stdin: bytes = b"") -> bytes | None:
    """Return what git prints; None if it fails or takes too long. `stdin` has to fit into a pipe.

    The variables that git gives its hooks stay set, so that the index is the one that is about to be committed.
    """
    try:
        _close_work_trees()
    except OSError:
        return None
    program = find_program("git", environ)
    if program is None:
        return None
    # By posix_spawn: `subprocess` takes longer to load than git takes to answer.
    reading, writing = os.pipe()
    given, giving = os.pipe()
    if stdin:
        os.write(giving, stdin)
    os.close(giving)
    try:
        pid = os.posix_spawn(
            program,
            ["git", *_QUIET, *words],
            {**own_environment(environ), **_SAFELY},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, given, 0),
                (os.POSIX_SPAWN_DUP2, writing, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
    except OSError:
        os.close(reading)
        os.close(writing)
        return None
    finally:
        os.close(given)
    os.close(writing)
    data, is_whole = _read_pipe(reading)
    if not is_whole:
        from signal import SIGKILL

        os.kill(pid, SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return data if is_whole and code == 0 else None


def _read_pipe(descriptor: int) -> tuple[bytes, bool]:
    # The second value tells whether the end was reached in time.
    import select

    chunks: list[bytes] = []
    until = time.monotonic() + _GIT_SECONDS
    try:
        while select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
            chunk = os.read(descriptor, _CHUNK)
            if not chunk:
                return b"".join(chunks), True
            chunks.append(chunk)
        return b"".join(chunks), False
    finally:
        os.close(descriptor)


def _read_line(path: str) -> str:
    return _read(path, 0).decode("utf-8", "surrogateescape").rstrip("\r\n")


def _last_line(path: str) -> str:
    data = _read(path, -_MOST_BYTES)
    return data.rstrip(b"\n").rpartition(b"\n")[2].decode("utf-8", "replace")


def _read(path: str, start: int) -> bytes:
    # A negative `start` counts from the end.
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
