"""`prepare-commit-msg`: add a trailer that names the iteration in which a commit is made.

Most commits are made outside of every iteration: plain files tell that before the rest of guard is loaded.
"""

import os
from contextlib import suppress

from guard.hooks.faults import state_home
from guard.hooks.git.note import MARK
from guard.hooks.git.work_tree import open_work_tree
from guard.hooks.spool import find_root, find_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TRAILER = "Guard-Run"
_LEFT_ALONE = ("merge", "squash")
"""Sources whose message git itself writes, of commits that have their own trailers already."""
_MOST_BYTES = 1024 * 1024


def prepare_message(given: "Sequence[str]", environ: "Mapping[str, str]") -> int:
    path = given[0] if given else environ.get("PRE_COMMIT_COMMIT_MSG_FILENAME", "")
    source = given[1] if len(given) > 1 else environ.get("PRE_COMMIT_COMMIT_MSG_SOURCE", "")
    if path and source not in _LEFT_ALONE and _may_be_in_iteration(environ):
        _add_trailer(os.path.abspath(path), environ)
    return 0


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
    from guard.git.run import run_git
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
    done = run_git(
        *("interpret-trailers", "--if-exists", "replace", "--if-missing", "add"),
        *("--trailer", f"{TRAILER}: {escape(iteration[0])}/{iteration[1]}"),
        environ=environ,
        git_dir=guard.repository.git_dir,
        stdin=message,
        most_bytes=2 * _MOST_BYTES,
    )
    if done.code == 0 and done.stdout and done.stdout != message:
        _overwrite(path, done.stdout)


def _read_message(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError:
        return None
    return data if len(data) <= _MOST_BYTES else None


def _overwrite(path: str, data: bytes) -> None:
    from guard.system.private_files import close, write_all

    # In its place: git has the name, and no other process reads the file meanwhile.
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        write_all(descriptor, data)
    finally:
        close(descriptor)
