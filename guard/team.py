"""The teams of agents' sessions: load, decide, record."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pydantic import ValidationError

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.fields import first_problem
from guard.core.base.moment import Moment
from guard.core.base.text import shorten
from guard.core.check.evidence import Living, TeamEvidence
from guard.core.team import count as accounting
from guard.core.team.change import Change, MemberLeft
from guard.core.team.count import TeamTerms, as_of, quiet_seconds
from guard.core.team.events import TeamEvent
from guard.core.team.state import TEAM, Member, Scope, TeamState
from guard.errors import WrongUsage
from guard.iteration.current import Iteration, has_agent_ended, team_scope
from guard.iteration.kept_output import helpers_in_kept_output
from guard.store import Change as StoreChange
from guard.store import Store

_MOST_LIVING_NAME = 200


@dataclass(frozen=True)
class TeamChangeResult:
    """What a change came to."""

    state: TeamState | None
    """The team after it; None if it never had a member."""
    events: tuple[TeamEvent, ...]


def record(
    store: Store,
    scope: Scope,
    moment: Moment,
    changes: Iterable[Change],
    *,
    lease_seconds: float,
) -> TeamChangeResult:
    """Record what became known of the session's helpers, in one change."""
    terms = TeamTerms(scope, moment, new_id(), lease_seconds)
    with store.change() as change, _usable():
        events = accounting.decide(_state(change, scope), changes, terms)
        change.append(*events)
        return TeamChangeResult(_read(_state(change, scope), moment), events)


def host_ended(store: Store, scope: Scope, moment: Moment, members: Iterable[str]) -> None:
    """Count members no longer that ran in a process which has ended, also if they joined before their session was known.

    These, and all that the process itself told of, by its stream or its hooks.
    """
    named, detail = set(members), "the process that it ran in has ended"
    with store.change() as change:
        for whose in dict.fromkeys((scope, replace(scope, session=None))):
            state = _state(change, whose)
            gone = [
                MemberLeft(one.member, "killed", one.incarnation, detail)
                for one in _counting(state)
                if (one.told_by == "host" or one.member in named)
                and (whose.session is not None or _is_of(one, scope))
            ]
            terms = TeamTerms(whose, moment, new_id(), 0)
            change.append(*accounting.decide(state, gone, terms))


def expire(change: StoreChange, scope: Scope, moment: Moment) -> None:
    """Record, within a change that is under way, whose lease has run out: of the session, and of its iteration."""
    for whose in dict.fromkeys((scope, replace(scope, session=None))):
        terms = TeamTerms(whose, moment, new_id(), 0)
        change.append(*accounting.decide(_state(change, whose), (), terms))


def clear(store: Store, scope: Scope, moment: Moment, detail: str = "") -> TeamState | None:
    """Let nobody count any more, in the session and among those who joined its iteration before it was known."""
    with store.change() as change, _usable():
        early = replace(scope, session=None)
        joined = any(_is_of(one, scope) for one in _counting(_state(change, early)))
        whose = [scope, early] if scope.session is not None and joined else [scope]
        events = [
            event
            for one in whose
            for event in accounting.clear(
                _state(change, one), detail, TeamTerms(one, moment, new_id(), 0)
            )
        ]
        change.append(*events)
        return _read(_state(change, scope), moment)


def completion(store: Store, scope: Scope, moment: Moment, *, held: bool, reason: str) -> None:
    """Log that a completion was held back for the team, or let go, and why."""
    with store.change() as change, _usable():
        state = _read(_state(change, scope), moment)
        terms = TeamTerms(scope, moment, new_id(), 0)
        change.append(accounting.completion(state, held=held, reason=reason, terms=terms))


def current(store: Store, scope: Scope, moment: Moment) -> TeamState | None:
    """The team as it stands now; whoever's lease ran out is gone already. None if it never had a member."""
    return _read(store.view(TEAM, scope.key), moment)


def knowing(store: Store, scope: Scope, member: str) -> Scope:
    """The scope that knows the member: it may have joined the iteration before anybody knew its session."""
    known = store.view(TEAM, scope.key)
    if scope.session is None or (known is not None and known.member(member) is not None):
        return scope
    early = replace(scope, session=None)
    before = store.view(TEAM, early.key)
    found = before.member(member) if before is not None else None
    return early if found is not None and _is_of(found, scope) else scope


def holding(store: Store, scope: Scope, moment: Moment) -> tuple[Scope, TeamState | None]:
    """The team of the session; while it holds nothing, those who joined its iteration before it was known."""
    own = _in_iteration(store, scope, moment)
    early = replace(scope, session=None)
    if scope.session is None or accounting.holds(own):
        return scope, own
    before = _in_iteration(store, early, moment) if scope.run is not None else None
    return (early, before) if accounting.holds(before) else (scope, own)


def _in_iteration(store: Store, scope: Scope, moment: Moment) -> TeamState | None:
    state = current(store, scope, moment)
    return accounting.in_iteration(state, scope) if state is not None else None


def record_change(
    guard: Invocation, scope: Scope, change: Change, lease_seconds: float | None = None
) -> TeamChangeResult:
    """Record what a caller reports of one helper; without a lease, under the configured one."""
    lease = lease_seconds or guard.users_config.settings.team.lease_seconds
    return record(guard.writable_store, scope, guard.clock.moment(), [change], lease_seconds=lease)


def clear_session(
    guard: Invocation, session: str | None, reason: str
) -> tuple[Scope, TeamState | None]:
    """Count no helper of the session any more; return the team after that."""
    scope = team_scope(guard, session)
    return scope, clear(guard.writable_store, scope, guard.clock.moment(), reason)


def team_of(guard: Invocation, session: str | None) -> tuple[Scope, TeamState | None]:
    """Return the team of the session as it stands now."""
    return holding(guard.store, team_scope(guard, session), guard.clock.moment())


def scope_of_member(guard: Invocation, session: str | None, member: str) -> Scope:
    """Return the scope in which the member was counted."""
    return knowing(guard.store, team_scope(guard, session), member)


@dataclass(frozen=True)
class TeamStanding:
    """The team of an iteration at one look, for the evidence of a check."""

    team: TeamEvidence | None = None
    living: tuple[Living, ...] = ()


def standing(store: Store, scope: Scope, moment: Moment) -> TeamStanding:
    """The same as evidence for a check."""
    name, members = counting(store, scope, moment)
    team = TeamEvidence(name=name, active=len(members)) if name is not None else None
    return TeamStanding(team, tuple(_living(one, moment) for one in members))


@dataclass
class TeamWatch:
    """The team of one iteration, looked at again and again."""

    guard: Invocation
    iteration: Iteration
    session: str | None
    _is_settled: bool = False

    @property
    def scope(self) -> Scope:
        return Scope(
            self.guard.worktree_key, self.session, self.iteration.run, self.iteration.number
        )

    def look(self) -> TeamStanding:
        return standing(self.guard.store, self.scope, self.guard.clock.moment())

    def record_end_of_host(self) -> None:
        """Record, once, that helpers have ended with the agent's process.

        The guard that followed the agent may have died before it could record this.
        """
        if self._is_settled or not has_agent_ended(self.iteration) or not self.look().living:
            return
        self._is_settled = True
        members = helpers_in_kept_output(self.guard, self.iteration)
        host_ended(self.guard.writable_store, self.scope, self.guard.clock.moment(), members)


def counting(store: Store, scope: Scope, moment: Moment) -> tuple[str | None, list[Member]]:
    """Who counts for an iteration: the team of its session, and whoever joined it before its session was known."""
    early = current(store, replace(scope, session=None), moment)
    members = {one.member: one for one in _counting(early) if _is_of(one, scope)}
    joined = early is not None and any(_is_of(one, scope) for one in early.members)
    name = early.active_team_name if early is not None and joined else None
    own = current(store, scope, moment) if scope.session is not None else None
    if own is not None:
        members |= {one.member: one for one in _counting(own)}
        name = own.active_team_name or name
    return name, list(members.values())


def _counting(state: TeamState | None) -> list[Member]:
    return [one for one in state.members if one.counts] if state is not None else []


def _living(member: Member, moment: Moment) -> Living:
    """A sign of life that says it was idle renews the lease, and is no progress."""
    return Living(
        kind="member",
        name=shorten(f"{member.kind.replace('_', ' ')} {member.member}", _MOST_LIVING_NAME),
        idle_seconds=max(0.0, quiet_seconds(member.worked, moment)),
    )


def _is_of(member: Member, scope: Scope) -> bool:
    """Whether it joined this very iteration."""
    return scope.run is not None and (member.run, member.iteration) == (scope.run, scope.iteration)


def _state(change: StoreChange, scope: Scope) -> TeamState | None:
    return change.view(TEAM, scope.key)


def _read(state: TeamState | None, moment: Moment) -> TeamState | None:
    return as_of(state, moment) if state is not None else None


@contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise WrongUsage(
            f"this cannot be recorded: {first_problem(error)}",
            "names and descriptions are lines of at most 512 characters of valid text",
        ) from None
