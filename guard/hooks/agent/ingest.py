"""Record the spooled calls of agents' hooks: files and file names go into the log by one append, then the files are deleted.

A process that dies in between leaves files whose names the log has; the next process does not record them again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.first_use import dataclass
from guard.core.base.text import plural
from guard.core.hooks.events import Calls, HooksFolded, Prompted
from guard.core.hooks.payload import HookCall
from guard.core.hooks.session_work import session_work
from guard.core.hooks.state import HOOKS
from guard.core.hooks.team_changes import call_moment, sort_calls, team_changes
from guard.core.iteration.run import RUN, Run
from guard.core.team.count import TeamTerms, decide
from guard.core.team.events import TeamEvent
from guard.core.team.state import TEAM, Roll, Scope, TeamState
from guard.hooks import spool
from guard.hooks.spool_file import document_names, is_temporary, read_document, remove_leftovers
from guard.store import Change, Store
from guard.system.private_files import Folder

MOST_AT_ONCE = 500
_MOST_BYTES = 4 * 1024 * 1024


def ingest_calls(guard: Invocation, store: Store | None, folder: Folder) -> Iterator[str]:
    """Record all calls in a spool; yield a complaint about each broken file, which is deleted."""
    remove_leftovers(folder, guard.clock.now().timestamp(), is_temporary)
    more = True
    while more and document_names(folder):
        batch = _record(guard, store or guard.writable_store, folder)
        more = _delete(folder, batch)
        if batch.broken:
            yield f"{plural(len(batch.broken), 'file')} in {folder.path} could not be read"


def team_events(
    guard: Invocation, change: Change, calls: Sequence[HookCall]
) -> tuple[TeamEvent, ...]:
    """Return what these calls report about the teams of their sessions, as events to append to `change`."""
    teams = _Teams(
        change, guard.worktree_key, lease_seconds=guard.users_config.settings.team.lease_seconds
    )
    for call in sort_calls(calls):
        teams.apply(call)
    return tuple(teams.events)


def session_scope(worktree: str, run: Run | None, session: str | None) -> Scope:
    """Return the scope of a session's team: the open iteration, unless that is known to have another session."""
    opened = run.open_iteration if run is not None else None
    if run is None or opened is None or opened.session not in (None, session):
        return Scope(worktree, session)
    return Scope(worktree, session, run.run, opened.number)


def _record(guard: Invocation, store: Store, folder: Folder) -> "_Batch":
    with store.change() as change:
        key = guard.worktree_key
        view = change.view(HOOKS, key)
        batch = _Batch.read(folder, frozenset(view.folded if view is not None else ()))
        if batch.calls:
            events = team_events(guard, change, batch.calls)
            change.append(*events, _folded_event(guard, key, batch))
    return batch


def _delete(folder: Folder, batch: "_Batch") -> bool:
    # A folder in the place of a broken file stays; False if nothing could be deleted.
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


def _folded_event(guard: Invocation, key: str, batch: "_Batch") -> HooksFolded:
    ended = [call.session for call in batch.calls if call.kind == "session_ended" and call.session]
    return HooksFolded(
        at=guard.clock.now(),
        id=new_id(),
        worktree=key,
        spooled=(*batch.before, *batch.names),
        calls=tuple(_count_calls(batch.calls)),
        ended=tuple(dict.fromkeys(ended)),
        prompted=tuple(_newest_prompts(batch.calls)),
        worked=session_work(batch.calls),
    )


def _newest_prompts(calls: Sequence[HookCall]) -> list[Prompted]:
    # A prompt is the user's only if its text says so: some agent CLIs report one whenever the session goes on.
    newest = {
        (call.agent, call.session): call
        for call in sort_calls(calls)
        if call.kind == "prompted" and call.helper is None and call.again is False
    }
    return [
        Prompted(
            agent=call.agent,
            session=call.session,
            prompt=call.prompt,
            at=call_moment(call).now,
        )
        for call in newest.values()
    ]


def _count_calls(calls: Iterable[HookCall]) -> list[Calls]:
    by_event: dict[tuple[str, str], list[HookCall]] = {}
    for call in calls:
        by_event.setdefault((call.agent, call.event), []).append(call)
    return [
        Calls(
            agent=same[0].agent,
            event=same[0].event,
            count=len(same),
            last_at=max(call_moment(call).now for call in same),
        )
        for same in by_event.values()
    ]


@dataclass
class _Batch:
    """Some files of a spool."""

    before: list[str] = field(default_factory=list)
    """Recorded already, by a process that did not get to delete them."""
    names: list[str] = field(default_factory=list)
    calls: list[HookCall] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Folder, folded: frozenset[str]) -> "_Batch":
        batch = cls()
        for found in document_names(folder)[:MOST_AT_ONCE]:
            name = _own_name(folder, found)
            if name in folded:
                batch.before.append(name)
            elif (call := read_document(folder, name, HookCall, _MOST_BYTES)) is None:
                batch.broken.append(name)
            else:
                batch.names.append(name)
                batch.calls.append(call)
        return batch


def _own_name(folder: Folder, name: str) -> str:
    # A sign of life may be replaced while it is read: it is moved to a name of its own first.
    if not name.startswith(spool.ALIVE):
        return name
    own = f"{new_id()}-{name}"
    folder.rename(name, own)
    return own


class _Teams:
    """The teams after each call, before any of the calls is recorded."""

    def __init__(self, change: Change, worktree: str, lease_seconds: float) -> None:
        self.events: list[TeamEvent] = []
        self._change = change
        self._worktree = worktree
        self._run = change.view(RUN, worktree)
        self._lease_seconds = lease_seconds
        self._teams: dict[str, TeamState | None] = {}

    def apply(self, call: HookCall) -> None:
        scope = session_scope(self._worktree, self._run, call.session)
        if scope.key not in self._teams:
            self._teams[scope.key] = self._change.view(TEAM, scope.key)
        state = self._teams[scope.key]
        terms = TeamTerms(scope, call_moment(call), new_id(), self._lease_seconds)
        events = decide(state, team_changes(call, state), terms)
        self._teams[scope.key] = _evolve(state, scope, events)
        self.events += events


def _evolve(
    state: TeamState | None, scope: Scope, events: tuple[TeamEvent, ...]
) -> TeamState | None:
    if not events:
        return state
    roll = Roll.of(state)
    for event in events:
        roll.apply(event)
    owner: dict[str, Any] = {"worktree": scope.worktree, "session": scope.session}
    return TeamState.model_construct(**owner, **roll.contents())
