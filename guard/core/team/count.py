"""What becomes known of helpers, turned into events; and what a team means at a moment: who counts, and whether it holds.

A lease is a presumption: whoever gave no sign of life for so long is taken for gone, by readers at once, and by whoever
writes next for the record. A sign of life of that very life brings it back.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, assert_never

from guard.core.base.moment import Moment, Reading, clock_fields
from guard.core.team.change import Alive, Change, Joined, LeftBecause, MemberLeft, Running
from guard.core.team.events import (
    CompletionHeld,
    CompletionReleased,
    TeamCleared,
    TeamEvent,
    TeamMemberAlive,
    TeamMemberJoined,
    TeamMemberLeft,
)
from guard.core.team.state import Member, Roll, Scope, TeamState, may_live

_MOST_NAME = 512
_FRESH_SECONDS = 60.0


def holds(state: TeamState | None) -> bool:
    """Whether a completion is held back: exactly when a team is named and a member counts."""
    return state is not None and bool(state.active_team_name) and state.active_teammate_count > 0


def quiet_seconds(since: Reading, moment: Moment) -> float:
    """Seconds from then to now; below zero if the clock was set back since."""
    if since.boot_id is not None and since.boot_id == moment.boot_id:
        return moment.boot_seconds - since.boot_seconds
    return (moment.now - since.at).total_seconds()


def has_expired(member: Member, moment: Moment) -> bool:
    """Whether its lease ran out. A clock that was set back by less than the lease makes it longer, by more ends it."""
    lease = member.lease_seconds
    return member.counts and not -lease < quiet_seconds(member.seen, moment) < lease


def expired(state: TeamState | None, moment: Moment) -> tuple[Member, ...]:
    """The members that still count in the record, though their lease ran out."""
    members = state.members if state is not None else ()
    return tuple(one for one in members if has_expired(one, moment))


def as_of(state: TeamState, moment: Moment) -> TeamState:
    """The team as it is to be read now: without those whose lease ran out, whether or not anybody has recorded it."""
    over = {one.member for one in expired(state, moment)}
    if not over:
        return state
    members = [_taken_for_gone(one, moment) if one.member in over else one for one in state.members]
    members.sort(key=lambda one: not one.counts)
    count = sum(one.counts for one in members)
    return state.model_copy(update={"members": tuple(members), "active_teammate_count": count})


def in_iteration(state: TeamState, scope: Scope) -> TeamState:
    """The team as it counts for an iteration: while nobody knows the session, without those who joined another one."""
    if scope.session is not None:
        return state
    members = [
        one for one in state.members if (one.run, one.iteration) == (scope.run, scope.iteration)
    ]
    news = {
        "members": tuple(members),
        "active_teammate_count": sum(one.counts for one in members),
        "active_team_name": state.active_team_name if members else None,
    }
    return state.model_copy(update=news)


def _taken_for_gone(member: Member, moment: Moment) -> Member:
    return member.gone(moment.now, "lease_expired", _silence(member, moment))


def _is_fresh(member: Member, moment: Moment) -> bool:
    """Whether its last sign of life is so new that another tells nothing: a list comes whenever any member changes."""
    return 0 <= quiet_seconds(member.seen, moment) < min(_FRESH_SECONDS, member.lease_seconds / 10)


def _silence(member: Member, moment: Moment) -> str:
    passed = quiet_seconds(member.seen, moment)
    if passed < 0:
        return f"the clock was set back by more than its lease of {member.lease_seconds:g} s"
    return f"no sign of life for {passed:.0f} s; its lease was {member.lease_seconds:g} s"


@dataclass(frozen=True, slots=True)
class TeamTerms:
    """What the events of one change have in common."""

    scope: Scope
    moment: Moment
    id: str
    lease_seconds: float
    """For those who join now."""


def decide(
    state: TeamState | None, changes: Iterable[Change], terms: TeamTerms
) -> tuple[TeamEvent, ...]:
    """The events that these changes come to, in order. What changes nothing, like a late word of an earlier life, is none."""
    ledger = _Ledger(Roll.of(state), terms)
    ledger.expire()
    for change in changes:
        ledger.take(change)
    return tuple(ledger.events)


def clear(state: TeamState | None, detail: str, terms: TeamTerms) -> tuple[TeamEvent, ...]:
    """The event after which nobody counts; none if there is nothing to clear."""
    if state is None or (state.active_team_name is None and not state.active_teammate_count):
        return ()
    return (TeamCleared(**_common(terms), detail=detail),)


def completion(
    state: TeamState | None, *, held: bool, reason: str, terms: TeamTerms
) -> CompletionHeld | CompletionReleased:
    """The record of a completion that was held back, or let go, with the team's name and count."""
    made = CompletionHeld if held else CompletionReleased
    name = state.active_team_name if state is not None else None
    count = state.active_teammate_count if state is not None else 0
    return made(**_common(terms), name=name, count=count, reason=reason)


class _Ledger:
    """Events being made, each decided on the team as the ones before have left it."""

    def __init__(self, roll: Roll, terms: TeamTerms) -> None:
        self.events: list[TeamEvent] = []
        self._roll = roll
        self._terms = terms

    def expire(self) -> None:
        moment = self._terms.moment
        for one in list(self._roll.counting.values()):
            if has_expired(one, moment):
                self._leave(one, "lease_expired", _silence(one, moment))

    def take(self, change: Change) -> None:
        match change:
            case Joined():
                self._join(change)
            case MemberLeft():
                member = self._roll.counting.get(change.member)
                if member is not None and change.incarnation in (None, member.incarnation):
                    self._leave(member, change.because, change.detail)
            case Alive():
                self._alive(change)
            case Running():
                self._compare(change)
            case _:
                assert_never(change)

    def _join(self, change: Joined) -> None:
        self._append(
            TeamMemberJoined(
                **self._own(),
                team=change.team or nameless(self._terms.scope),
                member=change.member,
                incarnation=self._roll.next_incarnation(change.member),
                kind=change.kind,
                description=change.description,
                lease_seconds=self._terms.lease_seconds,
                told_by=change.told_by,
            )
        )

    def _alive(self, change: Alive) -> None:
        member = self._roll.newest(change.member)
        if member is None or not may_live(member):
            return
        if change.incarnation in (None, member.incarnation):
            self._append(
                TeamMemberAlive(
                    **self._own(),
                    member=member.member,
                    incarnation=member.incarnation,
                    idle=change.idle,
                )
            )

    def _compare(self, change: Running) -> None:
        """A list says who lives, not who works: whoever was idle stays so."""
        listed = {one.member for one in change.members}
        for member in list(self._roll.counting.values()):
            told = member.told_by == "host" and member.kind in change.kinds
            if told and member.member not in listed:
                self._leave(member, "ended", "its host lists it no more")
        for joined in change.members:
            known = self._roll.newest(joined.member)
            if known is None or not may_live(known):
                self._join(joined)
            elif not (known.counts and _is_fresh(known, self._terms.moment)):
                self._alive(Alive(joined.member, idle=known.status == "idle"))

    def _leave(self, member: Member, because: LeftBecause, detail: str) -> None:
        self._append(
            TeamMemberLeft(
                **self._own(),
                member=member.member,
                incarnation=member.incarnation,
                because=because,
                detail=detail,
            )
        )

    def _own(self) -> dict[str, Any]:
        return _common(self._terms, len(self.events) + 1)

    def _append(self, event: TeamEvent) -> None:
        self._roll.apply(event)
        self.events.append(event)


def nameless(scope: Scope) -> str:
    """The team of helpers whose host has none."""
    return f"session:{scope.session or 'unknown'}"[:_MOST_NAME]


def _common(terms: TeamTerms, number: int = 1) -> dict[str, Any]:
    scope, moment = terms.scope, terms.moment
    return {
        "at": moment.now,
        "id": terms.id if number == 1 else f"{terms.id}-{number}",
        "run": scope.run,
        "iteration": scope.iteration,
        "worktree": scope.worktree,
        "session": scope.session,
        **clock_fields(moment),
    }
