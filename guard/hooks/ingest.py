"""What observing hooks, of agents and of git, have spooled is taken in by whoever comes next.

That is a check, a report, or a hook that has to decide.
"""

import os

from guard.context.config import state_home
from guard.context.invocation import Invocation
from guard.errors import GuardError, RepositoryProblem
from guard.hooks import spool
from guard.hooks.git.note import FOLDER as COMMITS
from guard.store import Store
from guard.system.private_files import Folder

_said: set[str] = set()
"""Warnings of this process: a check that waits looks again and again."""


def fold(guard: Invocation, store: Store | None = None) -> None:
    """Take in the spool of the work tree, if it has one. What cannot be taken in is a warning, and waits for the next."""
    try:
        if guard.repository_if_any is not None:
            _fold(guard, store)
            _fold_commits(guard, store)
    except RepositoryProblem:
        return  # Without a work tree there is no spool; whoever needs one says so.
    except GuardError as error:
        _warn(guard, error.message)
    except OSError as error:
        _warn(guard, f"{error.filename or spool.FOLDER}: {error.strerror or error}")


def _fold(guard: Invocation, store: Store | None) -> None:
    path = state_home(guard.environ) / spool.FOLDER / spool.key(str(guard.repository.root))
    folder = Folder.open(str(path))
    if folder is None:
        return
    with folder:
        if folder.names():
            # Most of the time there is nothing, and then this need not be loaded.
            from guard.hooks.agent.ingest import take_in

            for complaint in take_in(guard, store or guard.writable_store, folder):
                _warn(guard, complaint)


def _fold_commits(guard: Invocation, store: Store | None) -> None:
    path = state_home(guard.environ) / COMMITS / spool.key(str(guard.repository.root))
    if os.path.isdir(path):
        from guard.hooks.git.ingest import take_in

        for complaint in take_in(guard, store):
            _warn(guard, complaint)


def _warn(guard: Invocation, why: str) -> None:
    if why not in _said:
        _said.add(why)
        guard.output.warn(f"what the hooks have told could not be taken in: {why}")
