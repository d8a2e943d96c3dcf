"""Record what the observing hooks of agents and of git have spooled since the last command in the work tree."""

from guard.context.config import state_home
from guard.context.invocation import Invocation
from guard.errors import GuardError, RepositoryProblem
from guard.hooks import spool
from guard.hooks.git.note import FOLDER as COMMITS
from guard.store import Store
from guard.system.private_files import Folder

_warned: set[str] = set()
"""Warnings of this process: a check that waits looks again and again."""


def ingest_hooks(guard: Invocation, store: Store | None = None) -> None:
    """Record the spools of the work tree in the log; warn of a file that cannot be recorded: the next command retries it."""
    try:
        if guard.repository_if_any is not None:
            _ingest(guard, store, spool.FOLDER)
            _ingest(guard, store, COMMITS)
    except RepositoryProblem:
        return  # Without a work tree there is no spool; a command that needs one says so.
    except GuardError as error:
        _warn(guard, error.message)
    except OSError as error:
        _warn(guard, f"{error.filename or spool.FOLDER}: {error.strerror or error}")


def _ingest(guard: Invocation, store: Store | None, name: str) -> None:
    path = state_home(guard.environ) / name / spool.work_tree_key(str(guard.repository.root))
    folder = Folder.open(path)
    if folder is None:
        return
    with folder:
        if not folder.names():
            return
        # Most of the time there is nothing, and then these need not be loaded.
        if name == COMMITS:
            from guard.hooks.git.commits import ingest_commits as ingest
        else:
            from guard.hooks.agent.ingest import ingest_calls as ingest
        for complaint in ingest(guard, store, folder):
            _warn(guard, complaint)


def _warn(guard: Invocation, problem: str) -> None:
    if problem not in _warned:
        _warned.add(problem)
        guard.output.warn(f"the hooks' reports could not be recorded: {problem}")
