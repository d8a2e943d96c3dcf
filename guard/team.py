"""Record the helpers of an agent's session, and tell which of them count."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from guard.context.ids import new_id
from guard.context.invalid_fields import refuse_invalid_fields
from guard.context.invocation import Invocation
from guard.core.base.first_use import dataclass
from guard.core.base.moment import Moment
from guard.core.base.text import shorten
from guard.core.team import count
from guard.core.team.change import Alive, Change, Joined, MemberLeft
from guard.core.team.events import TeamEvent, TeamMemberAlive, TeamMemberLeft
from guard.core.team.report import RecordedAs, TeamReport, team_report
from guard.core.team.state import TEAM, Member, Scope, TeamState
from guard.errors import Refused
from guard.iteration.current import Iteration, has_agent_ended, team_scope
from guard.iteration.kept_output import helpers_in_kept_output
from guard.store import Change as StoreChange
from guard.store import Store

if TYPE_CHECKING:
    from guard.core.check.evidence import Living, TeamEvidence

_MOST_LIVING_NAME = 200
_FIELDS_HINT = "names and descriptions are lines of at most 512 characters of valid text"


@dataclass(frozen=True)
class TeamChangeResult:
    state: TeamState | None
    """The team after the change; None if it never had a member."""
    events: tuple[TeamEvent, ...]


def record(
    store: Store, scope: Scope, moment: Moment, changes: Iterable[Change], *, lease_seconds: float
) -> TeamChangeResult:
    terms = count.TeamTerms(scope, moment, new_id(), lease_seconds)
    with store.change() as change, refuse_invalid_fields(_FIELDS_HINT):
        events = count.decide(_view(change, scope), changes, terms)
        change.append(*events)
        return TeamChangeResult(_read_at(_view(change, scope), moment), events)


def record_host_end(store: Store, scope: Scope, moment: Moment, members: Iterable[str]) -> None:
    """Record that these members ended with their host process, and all others that the host itself reported."""
    named, detail = set(members), "the process that it ran in has ended"
    with store.change() as change:
        for counted_scope in dict.fromkeys((scope, replace(scope, session=None))):
            state = _view(change, counted_scope)
            gone = [
                MemberLeft(member.member, "killed", member.incarnation, detail)
                for member in _members_that_count(state)
                if (member.told_by != "command" or member.member in named)
                and (counted_scope.session is not None or _is_of_iteration(member, scope))
            ]
            terms = count.TeamTerms(counted_scope, moment, new_id(), 0)
            change.append(*count.decide(state, gone, terms))


def expire(change: StoreChange, scope: Scope, moment: Moment) -> None:
    """Record, in an open change, the members of the session and of its iteration whose lease ran out."""
    for counted_scope in dict.fromkeys((scope, replace(scope, session=None))):
        terms = count.TeamTerms(counted_scope, moment, new_id(), 0)
        change.append(*count.decide(_view(change, counted_scope), (), terms))


def clear(store: Store, scope: Scope, moment: Moment, detail: str = "") -> TeamState | None:
    """Stop counting all members of the session, and those that joined its iteration before the session was known."""
    with store.change() as change, refuse_invalid_fields(_FIELDS_HINT):
        early = replace(scope, session=None)
        joined = any(
            _is_of_iteration(member, scope) for member in _members_that_count(_view(change, early))
        )
        scopes = [scope, early] if scope.session is not None and joined else [scope]
        events = [
            event
            for counted_scope in scopes
            for event in count.clear_events(
                _view(change, counted_scope),
                detail,
                count.TeamTerms(counted_scope, moment, new_id(), 0),
            )
        ]
        change.append(*events)
        return _read_at(_view(change, scope), moment)


def read_team(store: Store | StoreChange, scope: Scope, moment: Moment) -> TeamState | None:
    """Return the team now, without members whose lease ran out; None if it never had a member."""
    return _read_at(store.view(TEAM, scope.key), moment)


def find_scope(store: Store, scope: Scope, member: str) -> Scope:
    """Return the scope of the member, which may have joined the iteration before the session was known."""
    known = store.view(TEAM, scope.key)
    if scope.session is None or (known is not None and known.member(member) is not None):
        return scope
    early = replace(scope, session=None)
    before = store.view(TEAM, early.key)
    found = before.member(member) if before is not None else None
    return early if found is not None and _is_of_iteration(found, scope) else scope


def find_holding_team(store: Store, scope: Scope, moment: Moment) -> tuple[Scope, TeamState | None]:
    """Return the team of the session, or, if that holds nothing back, the one that joined before the session was known."""
    own = _in_iteration(store, scope, moment)
    early = replace(scope, session=None)
    if scope.session is None or count.is_holding(own):
        return scope, own
    before = _in_iteration(store, early, moment) if scope.run is not None else None
    return (early, before) if count.is_holding(before) else (scope, own)


def _in_iteration(store: Store, scope: Scope, moment: Moment) -> TeamState | None:
    state = read_team(store, scope, moment)
    return count.team_in_iteration(state, scope) if state is not None else None


def record_change(
    guard: Invocation, scope: Scope, change: Change, lease_seconds: float | None = None
) -> TeamChangeResult:
    # Without a lease of its own, the helper gets the configured one.
    lease = lease_seconds or guard.users_config.settings.team.lease_seconds
    return record(guard.writable_store, scope, guard.clock.moment(), [change], lease_seconds=lease)


def clear_session(
    guard: Invocation, session: str | None, reason: str
) -> tuple[Scope, TeamState | None]:
    scope = team_scope(guard, session)
    return scope, clear(guard.writable_store, scope, guard.clock.moment(), reason)


def team_of(guard: Invocation, session: str | None) -> tuple[Scope, TeamState | None]:
    return find_holding_team(guard.store, team_scope(guard, session), guard.clock.moment())


def scope_of_member(guard: Invocation, session: str | None, member: str) -> Scope:
    return find_scope(guard.store, team_scope(guard, session), member)


def spawn_member(
    guard: Invocation, joined: Joined, session: str | None, lease: float | None = None
) -> TeamReport:
    """Count a helper, before it is started; return the team with it."""
    scope = team_scope(guard, session)
    recorded = record_change(guard, scope, joined, lease)
    return team_report(scope, recorded.state, "joined", joined.member)


def report_member(guard: Invocation, change: MemberLeft | Alive, session: str | None) -> TeamReport:
    """Record that a helper left or is alive; return the team after it. Raises `Refused` for an unknown helper."""
    scope = scope_of_member(guard, session, change.member)
    recorded = record_change(guard, scope, change)
    if recorded.state is None or recorded.state.member(change.member) is None:
        raise Refused(
            f"the team has no member {shorten(change.member, 80)}",
            "add it with `guard team spawn`; `guard team show` lists the members",
        )
    kind = TeamMemberLeft if isinstance(change, MemberLeft) else TeamMemberAlive
    word: RecordedAs = "left" if isinstance(change, MemberLeft) else "alive"
    changed = any(
        isinstance(event, kind) and event.member == change.member for event in recorded.events
    )
    return team_report(scope, recorded.state, word if changed else "late", change.member)


@dataclass(frozen=True)
class TeamStanding:
    """The team of an iteration, as evidence for a check."""

    team: "TeamEvidence | None" = None
    living: "tuple[Living, ...]" = ()


def read_standing(store: Store, scope: Scope, moment: Moment) -> TeamStanding:
    from guard.core.check.evidence import TeamEvidence

    name, members = counting_members(store, scope, moment)
    team = TeamEvidence(name=name, active=len(members)) if name is not None else None
    return TeamStanding(team, tuple(_make_living(member, moment) for member in members))


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
        return read_standing(self.guard.store, self.scope, self.guard.clock.moment())

    def record_end_of_host(self) -> None:
        """Record, once, that helpers have ended with the agent's process.

        The guard that followed the agent may have died before it could record this.
        """
        if (
            self._is_settled
            or not has_agent_ended(self.guard, self.iteration)
            or not self.look().living
        ):
            return
        self._is_settled = True
        members = helpers_in_kept_output(self.guard, self.iteration)
        record_host_end(self.guard.writable_store, self.scope, self.guard.clock.moment(), members)


def counting_members(
    store: Store | StoreChange, scope: Scope, moment: Moment
) -> tuple[str | None, list[Member]]:
    """Return the team's name and the members that count for an iteration, also those that joined before its session."""
    early = read_team(store, replace(scope, session=None), moment)
    members = {
        member.member: member
        for member in _members_that_count(early)
        if _is_of_iteration(member, scope)
    }
    joined = early is not None and any(_is_of_iteration(member, scope) for member in early.members)
    name = early.active_team_name if early is not None and joined else None
    own = read_team(store, scope, moment) if scope.session is not None else None
    if own is not None:
        members |= {member.member: member for member in _members_that_count(own)}
        name = own.active_team_name or name
    return name, list(members.values())


def _members_that_count(state: TeamState | None) -> list[Member]:
    return [member for member in state.members if member.counts] if state is not None else []


def _make_living(member: Member, moment: Moment) -> "Living":
    from guard.core.check.evidence import Living

    # An idle sign of life renews the lease, but is no progress.
    return Living(
        kind="member",
        name=shorten(f"{member.kind.replace('_', ' ')} {member.member}", _MOST_LIVING_NAME),
        idle_seconds=max(0.0, count.quiet_seconds(member.worked, moment)),
    )


def _is_of_iteration(member: Member, scope: Scope) -> bool:
    if scope.run is None:
        # No iteration is open: a member that a command named belongs to the session that asks.
        return member.run is None and member.told_by == "command"
    return (member.run, member.iteration) == (scope.run, scope.iteration)


def _view(change: StoreChange, scope: Scope) -> TeamState | None:
    return change.view(TEAM, scope.key)


def _read_at(state: TeamState | None, moment: Moment) -> TeamState | None:
    return count.team_at(state, moment) if state is not None else None
