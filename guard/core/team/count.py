"""Turn news of helpers into events, and tell which helpers count at a moment and whether they hold a completion back.

A helper without a sign of life for the length of its lease is presumed gone: readers drop it at once, and the next change
records it. A sign of life of the same incarnation brings it back.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict, assert_never

from guard.core.base.first_use import dataclass
from guard.core.base.moment import Moment, Reading
from guard.core.team import events
from guard.core.team.change import Alive, Change, Joined, LeftBecause, MemberLeft, Running
from guard.core.team.state import Member, Roll, Scope, TeamState, may_live

_MOST_NAME = 512
_FRESH_SECONDS = 60.0
_HELPERS = ("subagent", "teammate")


def is_holding(state: TeamState | None) -> bool:
    """Tell whether the team holds a completion back: it has a name and a member that counts."""
    return state is not None and bool(state.active_team_name) and state.active_teammate_count > 0


def quiet_seconds(since: Reading, moment: Moment) -> float:
    """Return the seconds since the reading; negative if the clock was set back since."""
    if since.boot_id is not None and since.boot_id == moment.boot_id:
        return moment.boot_seconds - since.boot_seconds
    return (moment.now - since.at).total_seconds()


def has_expired(member: Member, moment: Moment) -> bool:
    """Tell whether the lease ran out; a clock set back by less than the lease extends it, by more ends it."""
    lease = member.lease_seconds
    return member.counts and not -lease < quiet_seconds(member.seen, moment) < lease


def expired_members(state: TeamState | None, moment: Moment) -> tuple[Member, ...]:
    members = state.members if state is not None else ()
    return tuple(member for member in members if has_expired(member, moment))


def team_at(state: TeamState, moment: Moment) -> TeamState:
    """Return the team without the members whose lease ran out, recorded or not."""
    over = {member.member for member in expired_members(state, moment)}
    if not over:
        return state
    members = [
        member.mark_left(moment.now, "lease_expired", _describe_silence(member, moment))
        if member.member in over
        else member
        for member in state.members
    ]
    members.sort(key=lambda member: not member.counts)
    count = sum(member.counts for member in members)
    return state.model_copy(update={"members": tuple(members), "active_teammate_count": count})


def team_in_iteration(state: TeamState, scope: Scope) -> TeamState:
    """Return the team as it counts for an iteration: while the session is unknown, without members of other iterations."""
    if scope.session is not None:
        return state
    members = [
        member
        for member in state.members
        if (member.run, member.iteration) == (scope.run, scope.iteration)
    ]
    news = {
        "members": tuple(members),
        "active_teammate_count": sum(member.counts for member in members),
        "active_team_name": state.active_team_name if members else None,
    }
    return state.model_copy(update=news)


def _is_fresh(member: Member, moment: Moment) -> bool:
    # Hosts list all members at every change: a sign of life soon after another adds nothing.
    return 0 <= quiet_seconds(member.seen, moment) < min(_FRESH_SECONDS, member.lease_seconds / 10)


def _describe_silence(member: Member, moment: Moment) -> str:
    passed = quiet_seconds(member.seen, moment)
    if passed < 0:
        return f"the clock was set back by more than its lease of {member.lease_seconds:g} s"
    return f"no sign of life for {passed:.0f} s; its lease was {member.lease_seconds:g} s"


@dataclass(frozen=True)
class TeamTerms:
    """The fields that all events of one change share."""

    scope: Scope
    moment: Moment
    id: str
    lease_seconds: float
    """The lease of members that join in this change."""


class _TeamStamp(TypedDict):
    """The fields of every event of a team."""

    at: datetime
    id: str
    run: str | None
    iteration: int | None
    worktree: str
    session: str | None
    boot_seconds: float
    boot_id: str | None


def decide(
    state: TeamState | None, changes: Iterable[Change], terms: TeamTerms
) -> tuple[events.TeamEvent, ...]:
    """Return the events for these changes, in order; a change without effect, such as a late report, makes none."""
    ledger = _Ledger(Roll.of(state), terms)
    ledger.expire()
    for change in changes:
        ledger.take(change)
    return tuple(ledger.events)


def clear_events(
    state: TeamState | None, detail: str, terms: TeamTerms
) -> tuple[events.TeamEvent, ...]:
    """Return the event after which no member counts, or none if there is nothing to clear."""
    if state is None or (state.active_team_name is None and not state.active_teammate_count):
        return ()
    return (events.TeamCleared(**_stamp(terms), detail=detail),)


def completion_event(
    name: str | None, count: int, *, held: bool, reason: str, terms: TeamTerms
) -> events.CompletionHeld | events.CompletionReleased:
    """Return the event that a completion was held back, or let go, with the team's name and how many of it count."""
    made = events.CompletionHeld if held else events.CompletionReleased
    return made(**_stamp(terms), name=name, count=count, reason=reason)


class _Ledger:
    """Makes events, each decided on the team as the previous events left it."""

    def __init__(self, roll: Roll, terms: TeamTerms) -> None:
        self.events: list[events.TeamEvent] = []
        self._roll = roll
        self._terms = terms

    def expire(self) -> None:
        moment = self._terms.moment
        for member in list(self._roll.counting.values()):
            if has_expired(member, moment):
                self._leave(member, "lease_expired", _describe_silence(member, moment))

    def take(self, change: Change) -> None:
        match change:
            case Joined():
                self._join(change)
            case MemberLeft():
                member = self._roll.counting.get(change.member)
                if member is not None and change.incarnation in (None, member.incarnation):
                    self._leave(member, change.because, change.detail)
            case Alive():
                self._record_alive(change)
            case Running():
                self._compare(change)
            case _:
                assert_never(change)

    def _join(self, change: Joined) -> None:
        self._append(
            events.TeamMemberJoined(
                **self._next_stamp(),
                team=change.team or default_team_name(self._terms.scope),
                member=change.member,
                incarnation=self._roll.next_incarnation(change.member),
                kind=change.kind,
                description=change.description,
                lease_seconds=self._terms.lease_seconds,
                told_by=change.told_by,
            )
        )
        self._name_call(change)

    def _name_call(self, joined: Joined) -> None:
        """Count a helper once that the stream knows by its call and a hook by its id, whichever comes first."""
        other = {"call": "hook", "hook": "call"}.get(joined.told_by)
        helpers = [member for member in self._roll.counting.values() if member.kind in _HELPERS]
        twin = next((member for member in helpers if member.told_by == other), None)
        if twin is None or joined.kind not in _HELPERS:
            return
        call, name = (
            (twin.member, joined.member) if other == "call" else (joined.member, twin.member)
        )
        self._leave(self._roll.counting[call], "named", name)

    def _record_alive(self, change: Alive) -> None:
        member = self._roll.newest_member(change.member)
        if member is None or not may_live(member):
            return
        if change.incarnation in (None, member.incarnation):
            self._append(
                events.TeamMemberAlive(
                    **self._next_stamp(),
                    member=member.member,
                    incarnation=member.incarnation,
                    idle=change.idle,
                )
            )

    def _compare(self, change: Running) -> None:
        # A list says which members live, not which work: an idle member stays idle.
        listed = {joined.member for joined in change.members}
        named = {call: name for call, name in self._roll.named_calls() if call in listed}
        listed.update(named.values())
        for member in list(self._roll.counting.values()):
            is_listed_by_host = member.told_by != "command" and member.kind in change.kinds
            if is_listed_by_host and member.member not in listed:
                self._leave(member, "ended", "its host lists it no more")
        for joined in change.members:
            known = self._roll.newest_member(named.get(joined.member, joined.member))
            if known is None or not may_live(known):
                self._join(joined)
            elif not (known.counts and _is_fresh(known, self._terms.moment)):
                self._record_alive(Alive(known.member, idle=known.status == "idle"))

    def _leave(self, member: Member, because: LeftBecause, detail: str) -> None:
        self._append(
            events.TeamMemberLeft(
                **self._next_stamp(),
                member=member.member,
                incarnation=member.incarnation,
                because=because,
                detail=detail,
            )
        )

    def _next_stamp(self) -> _TeamStamp:
        return _stamp(self._terms, len(self.events) + 1)

    def _append(self, event: events.TeamEvent) -> None:
        self._roll.apply(event)
        self.events.append(event)


def default_team_name(scope: Scope) -> str:
    # The host gives the team no name.
    return f"session:{scope.session or 'unknown'}"[:_MOST_NAME]


def _stamp(terms: TeamTerms, number: int = 1) -> _TeamStamp:
    scope, moment = terms.scope, terms.moment
    return {
        "at": moment.now,
        "id": terms.id if number == 1 else f"{terms.id}-{number}",
        "run": scope.run,
        "iteration": scope.iteration,
        "worktree": scope.worktree,
        "session": scope.session,
        "boot_seconds": moment.boot_seconds,
        "boot_id": moment.boot_id,
    }
