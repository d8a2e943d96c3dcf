"""`prepare-commit-msg`: add a trailer that names the iteration in which a commit is made, and refuse secrets in it.

Git calls this hook also where it skips `pre-commit`: for --no-verify, for merges and for commits that are picked.

Most commits are made outside of every iteration: plain files tell that before the rest of guard is loaded.
"""

import os
from contextlib import suppress

from guard.core.hooks.event_kinds import MARK
from guard.hooks.faults import state_home
from guard.hooks.git.note import has_passed_checks, locate
from guard.hooks.git.secrets import list_staged, refuse_secrets
from guard.hooks.git.work_tree import open_work_tree
from guard.hooks.spool import find_root, find_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TRAILER = "Guard-Run"
_LEFT_ALONE = ("merge", "squash")
"""Sources whose message git itself writes, of commits that have their own trailers already."""
_REBASES = ("rebase-merge", "rebase-apply")
_MOST_BYTES = 1024 * 1024


def prepare_message(given: "Sequence[str]", environ: "Mapping[str, str]") -> int:
    path = given[0] if given else environ.get("PRE_COMMIT_COMMIT_MSG_FILENAME", "")
    source = given[1] if len(given) > 1 else environ.get("PRE_COMMIT_COMMIT_MSG_SOURCE", "")
    if not _may_be_in_iteration(environ):
        return 0
    if _has_unchecked_secrets(environ):
        return 1
    if path and source not in _LEFT_ALONE:
        _add_trailer(os.path.abspath(path), environ)
    return 0


def _has_unchecked_secrets(environ: "Mapping[str, str]") -> bool:
    """Tell whether an agent is about to commit a secret past `pre-commit`: by --no-verify, a merge or a cherry-pick."""
    folder, work_tree = locate(environ)
    if work_tree is None or has_passed_checks(folder):
        return False
    if any(os.path.isdir(os.path.join(work_tree.git_dir, name)) for name in _REBASES):
        return False  # The commits that it replays were made before.
    staged = list_staged(environ)
    return staged is not None and refuse_secrets(environ, staged, warns=False)


def _may_be_in_iteration(environ: "Mapping[str, str]") -> bool:
    if environ.get(MARK) or environ.get("GUARD_WORKSPACE"):
        return True
    home = state_home(environ)
    root = find_root(home, os.getcwd()) if home is not None else None
    if home is None or root is None or open_work_tree(environ, root) is None:
        return False
    workspace = find_workspace(home, root)
    return workspace is None or bool(workspace and _has_open_iteration(workspace))


def _has_open_iteration(workspace: str) -> bool:
    # By the views on disk: the run of any work tree of the workspace counts.
    folder = os.path.join(workspace, "worktrees.d")
    try:
        for name in os.listdir(folder):
            with (
                suppress(FileNotFoundError),
                open(os.path.join(folder, name, "run.json"), "rb") as view,
            ):
                if b'"open_iteration": null' not in view.read(_MOST_BYTES):
                    return True
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _add_trailer(path: str, environ: "Mapping[str, str]") -> None:
    from guard.context.invocation import Invocation
    from guard.core.base.text import escape
    from guard.core.hooks.git.note import iteration_of
    from guard.core.iteration.run import RUN
    from guard.errors import GuardError
    from guard.git.run import read_config, run_git
    from guard.system.startup import prepare

    prepare()
    guard = Invocation(environ=environ)
    try:
        run = guard.store.view(RUN, guard.worktree_key)
    except GuardError:
        return
    iteration = iteration_of(run, environ.get(MARK), guard.clock.now())
    message = _read_message(path) if iteration is not None else None
    if iteration is None or message is None:
        return
    # Outside the repository: git runs a command for each trailer that the repository's settings name.
    comment = read_config("core.commentChar", guard.repository.git_dir, environ) or "#"
    done = run_git(
        *("-c", f"core.commentChar={comment if len(comment) == 1 else '#'}"),
        *("interpret-trailers", "--if-exists", "replace", "--if-missing", "add"),
        *("--trailer", f"{TRAILER}: {escape(iteration[0])}/{iteration[1]}"),
        environ=environ,
        stdin=message,
        most_bytes=2 * _MOST_BYTES,
    )
    if done.code == 0 and done.stdout and done.stdout != message:
        _overwrite(path, done.stdout)


def _read_message(path: str) -> bytes | None:
    from pathlib import Path

    from guard.system.foreign_files import read_regular

    try:
        data = read_regular(Path(path), _MOST_BYTES, follow=False)
    except OSError:
        return None
    return data if len(data) <= _MOST_BYTES else None


def _overwrite(path: str, data: bytes) -> None:
    from stat import S_ISREG

    from guard.system.private_files import close, write_all

    # In its place: git has the name, and no other process reads the file meanwhile.
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if S_ISREG(status.st_mode) and status.st_nlink == 1:
            os.ftruncate(descriptor, 0)
            write_all(descriptor, data)
    finally:
        close(descriptor)
