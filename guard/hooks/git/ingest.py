"""Taking in what git's hooks have left: into the log by one append, and then the files are deleted.

Whoever dies in between leaves names that the log has, and they are not taken in again.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from guard.context.config import state_home
from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.text import plural
from guard.core.hooks.git.events import CommitEvent, CommitRecorded, CommitsRewritten
from guard.core.hooks.git.iteration_of import belongs_to
from guard.core.hooks.git.note import HookNote
from guard.core.hooks.git.state import COMMITS, MOST_NAMES
from guard.core.iteration.run import RUN, Run
from guard.hooks import spool
from guard.hooks.git.note import FOLDER, PASSED
from guard.hooks.spool_file import told_in
from guard.store import Store
from guard.system.private_files import Folder

MOST_AT_ONCE = MOST_NAMES // 2
_MOST_BYTES = 1024 * 1024
_HOUR = 3600.0


def take_in(guard: Invocation, store: Store | None) -> Iterator[str]:
    """Take in all commits of the work tree that wait for it; complaints about files that made no sense, and were deleted."""
    path = state_home(guard.environ) / FOLDER / spool.key(str(guard.repository.root))
    folder = Folder.open(str(path))
    if folder is None:
        return
    with folder:
        _remove_leftovers(folder, guard.clock.now().timestamp())
        while names := _files(folder)[:MOST_AT_ONCE]:
            broken = _recorded(guard, store or guard.writable_store, folder, names)
            for name in names:
                with suppress(OSError):
                    folder.remove(name)
            if broken:
                yield f"{plural(broken, 'file')} in {folder.path} made no sense"
            if set(names) & set(_files(folder)):
                return  # Something that cannot be deleted, such as a folder.


def _files(folder: Folder) -> list[str]:
    return [name for name in folder.names() if name.endswith(".json") and name[0] != "."]


def _remove_leftovers(folder: Folder, now: float) -> None:
    """Of hooks that were killed, and of commits that were given up after they had come through the checks."""
    for name in folder.names():
        if name.startswith(PASSED) or name.endswith(".tmp"):
            with suppress(OSError):
                status = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
                if now - status.st_mtime > _HOUR:
                    folder.remove(name)


def _recorded(guard: Invocation, store: Store, folder: Folder, names: list[str]) -> int:
    """Record what these files tell; how many made no sense."""
    with store.change() as change:
        key = guard.worktree_key
        view, run = change.view(COMMITS, key), change.view(RUN, key)
        known = frozenset(view.folded if view is not None else ())
        new = {name: _noted(folder, name) for name in names if name not in known}
        told = {one.oid for one in view.commits} if view is not None else set()
        for name, noted in new.items():
            # Two programs that both call the hook tell of one commit.
            if noted is not None and (noted.oid is None or noted.oid not in told):
                told |= {noted.oid} if noted.oid else set()
                change.append(_event(key, name, noted, run))
    return sum(noted is None for noted in new.values())


def _noted(folder: Folder, name: str) -> HookNote | None:
    noted = told_in(folder, name, HookNote, _MOST_BYTES)
    return noted if noted is None or noted.event == "post-rewrite" or noted.oid else None


def _event(key: str, name: str, noted: HookNote, run: Run | None) -> CommitEvent:
    at = datetime.fromtimestamp(noted.seconds, UTC)
    whose = belongs_to(run, noted.mark, at)
    common: dict[str, Any] = {
        "at": at,
        "id": new_id(),
        "run": whose[0] if whose else None,
        "iteration": whose[1] if whose else None,
        "worktree": key,
        "spooled": name,
    }
    if noted.event == "post-rewrite":
        return CommitsRewritten(
            **common, command=noted.command, count=noted.count, rewrites=noted.pairs()
        )
    assert noted.oid is not None
    return CommitRecorded(
        **common,
        oid=noted.oid,
        previous=noted.previous,
        branch=noted.branch,
        how=noted.how,
        verified=noted.verified,
    )
