"""Taking in a spool: what its files tell, and their names, go into the log by one append, and then the files are deleted.

Whoever dies in between leaves names that the log has, and they are not taken in again.
"""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.text import plural
from guard.core.hooks.events import Calls, HooksFolded
from guard.core.hooks.payload import HookCall
from guard.core.hooks.state import HOOKS
from guard.core.hooks.team_changes import changes, in_order, moment_of
from guard.core.iteration.run import RUN, Run
from guard.core.team.count import TeamTerms, decide
from guard.core.team.events import TeamEvent
from guard.core.team.state import TEAM, Roll, Scope, TeamState
from guard.hooks import spool
from guard.hooks.spool_file import told_in
from guard.store import Change, Store
from guard.system.clock import Clock
from guard.system.private_files import Folder

MOST_AT_ONCE = 500
_MOST_BYTES = 4 * 1024 * 1024
_HOUR = 3600.0


def take_in(guard: Invocation, store: Store, folder: Folder) -> Iterator[str]:
    """Take in all that is in a spool; complaints about files that made no sense, and were deleted."""
    _remove_leftovers(folder, guard.clock)
    more = True
    while more and _files(folder):
        batch = _recorded(guard, store, folder)
        more = _is_deleted(folder, batch)
        if batch.broken:
            yield f"{plural(len(batch.broken), 'file')} in {folder.path} made no sense"


def team_events(
    guard: Invocation, change: Change, all_heard: Sequence[HookCall]
) -> tuple[TeamEvent, ...]:
    """What these tell of the teams of their sessions, as events to be appended to this change."""
    books = _Books(
        change, guard.worktree_key, lease_seconds=guard.users_config.settings.team.lease_seconds
    )
    for heard in in_order(list(all_heard)):
        books.take(heard)
    return tuple(books.events)


def _files(folder: Folder) -> list[str]:
    return [name for name in folder.names() if name.endswith(".json") and name[0] != "."]


def _remove_leftovers(folder: Folder, clock: Clock) -> None:
    """What hooks that were killed had begun to write."""
    for name in folder.names():
        if name.endswith(".tmp") and clock.now().timestamp() - _written_at(folder, name) > _HOUR:
            folder.remove(name)


def _written_at(folder: Folder, name: str) -> float:
    try:
        return os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return math.inf


def _recorded(guard: Invocation, store: Store, folder: Folder) -> "_Batch":
    with store.change() as change:
        key = guard.worktree_key
        view = change.view(HOOKS, key)
        batch = _Batch.read(folder, frozenset(view.folded if view is not None else ()))
        if batch.all_heard:
            events = team_events(guard, change, batch.all_heard)
            change.append(*events, _folded(guard, key, batch))
    return batch


def _is_deleted(folder: Folder, batch: "_Batch") -> bool:
    """Whether anything was: a folder in the place of a broken file is in the way of nothing, and stays."""
    for name in (*batch.before, *batch.names):
        folder.remove(name)
    removed = [name for name in batch.broken if _is_removed(folder, name)]
    return bool(batch.before or batch.names or removed)


def _is_removed(folder: Folder, name: str) -> bool:
    try:
        folder.remove(name)
    except OSError:
        return False
    return True


def _folded(guard: Invocation, key: str, batch: "_Batch") -> HooksFolded:
    return HooksFolded(
        at=guard.clock.now(),
        id=new_id(),
        worktree=key,
        spooled=(*batch.before, *batch.names),
        calls=tuple(_calls(batch.all_heard)),
        ended=tuple(
            dict.fromkeys(
                one.session
                for one in batch.all_heard
                if one.session and one.kind == "session_ended"
            )
        ),
    )


def _calls(all_heard: Iterable[HookCall]) -> list[Calls]:
    found: dict[tuple[str, str], list[HookCall]] = {}
    for one in all_heard:
        found.setdefault((one.agent, one.event), []).append(one)
    return [
        Calls(
            agent=ours[0].agent,
            event=ours[0].event,
            count=len(ours),
            last_at=max(moment_of(one).now for one in ours),
        )
        for ours in found.values()
    ]


@dataclass
class _Batch:
    """Some files of a spool."""

    before: list[str] = field(default_factory=list)
    """Taken in already, by somebody who could not delete them."""
    names: list[str] = field(default_factory=list)
    all_heard: list[HookCall] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Folder, folded: frozenset[str]) -> "_Batch":
        """The files that came first, none twice."""
        batch = cls()
        for found in _files(folder)[:MOST_AT_ONCE]:
            name = _own_name(folder, found)
            if name in folded:
                batch.before.append(name)
            elif (heard := told_in(folder, name, HookCall, _MOST_BYTES)) is None:
                batch.broken.append(name)
            else:
                batch.names.append(name)
                batch.all_heard.append(heard)
        return batch


def _own_name(folder: Folder, name: str) -> str:
    """A sign of life may be replaced while it is read: it is moved to a name of its own first."""
    if not name.startswith(spool.ALIVE):
        return name
    own = f"{new_id()}-{name}"
    folder.rename(name, own)
    return own


class _Books:
    """Teams as they become by what was heard, one word after the other, before anything of it is recorded."""

    def __init__(self, change: Change, worktree: str, lease_seconds: float) -> None:
        self.events: list[TeamEvent] = []
        self._change = change
        self._worktree = worktree
        self._run = change.view(RUN, worktree)
        self._lease_seconds = lease_seconds
        self._teams: dict[str, TeamState | None] = {}

    def take(self, heard: HookCall) -> None:
        scope = _scope(self._worktree, self._run, heard.session)
        if scope.key not in self._teams:
            self._teams[scope.key] = self._change.view(TEAM, scope.key)
        state = self._teams[scope.key]
        terms = TeamTerms(scope, moment_of(heard), new_id(), self._lease_seconds)
        events = decide(state, changes(heard, state), terms)
        self._teams[scope.key] = _after(state, scope, events)
        self.events += events


def _scope(worktree: str, run: Run | None, session: str | None) -> Scope:
    """The team of that session; it is the open iteration's unless that is known to have another one."""
    opened = run.open_iteration if run is not None else None
    if run is None or opened is None or opened.session not in (None, session):
        return Scope(worktree, session)
    return Scope(worktree, session, run.run, opened.number)


def _after(
    state: TeamState | None, scope: Scope, events: tuple[TeamEvent, ...]
) -> TeamState | None:
    if not events:
        return state
    roll = Roll.of(state)
    for event in events:
        roll.apply(event)
    whose: dict[str, Any] = {"worktree": scope.worktree, "session": scope.session}
    return TeamState.model_construct(**whose, **roll.contents())
