"""Keep the view of a team: the helpers of one session in one work tree."""

from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, assert_never, get_args

from pydantic import Field

from guard.core.base.fast_models import entry_from
from guard.core.base.fields import Count, Frozen, Id, Incarnation, Instant, Line
from guard.core.base.first_use import dataclass
from guard.core.base.moment import Reading
from guard.core.iteration.facts import Seconds
from guard.core.log.adoption import ADOPTED
from guard.core.log.events import IterationNumber
from guard.core.log.view import Fold, ViewDocument, ViewKind
from guard.core.team import events
from guard.core.team.change import Kind, LeftBecause, Teller

MOST_LEFT = 100

MemberStatus = Literal["active", "idle", "left"]


@dataclass(frozen=True)
class Scope:
    """The owner of a team: one session in one work tree. Teams of other sessions in the same folder are not meant."""

    worktree: str
    session: str | None = None
    """None while the session is not known."""
    run: str | None = None
    iteration: int | None = None
    """The iteration that is open in the work tree, if one is."""

    @property
    def key(self) -> str:
        return team_key(self.worktree, self.session)


def team_key(worktree: str, session: str | None) -> str:
    """Return one id for a work tree and a session, whatever the session's name is."""
    named = worktree if session is None else f"{worktree}\n{session}"
    return sha256(named.encode()).hexdigest()[:32]


class Member(Frozen):
    """A helper in its newest incarnation."""

    member: events.MemberName
    incarnation: Incarnation
    kind: Kind
    description: Line
    team: Line
    """The team that it was started for; the team's name is that of the first who counted."""
    status: MemberStatus
    """An idle member has nothing to do, but has not ended: it counts."""
    run: Id | None
    iteration: IterationNumber | None
    joined_at: Instant
    seen: Reading
    """Its last sign of life: the lease counts from here."""
    worked: Reading
    """Its last sign of life that did not say it was idle."""
    lease_seconds: Seconds
    told_by: Teller
    """What its host did not tell of, its host does not list, and need not end with it."""
    left_at: Instant | None
    left_because: LeftBecause | None
    left_detail: Line

    @property
    def counts(self) -> bool:
        return self.status != "left"

    def mark_left(self, at: datetime | None, because: LeftBecause, detail: str) -> "Member":
        news = {"left_at": at, "left_because": because, "left_detail": detail}
        return self.model_copy(update={"status": "left", **news})


class TeamState(ViewDocument):
    """The team of one session."""

    schema_: Literal["guard/team/2"] = Field("guard/team/2", alias="schema")
    worktree: Id
    session: Line | None
    active_team_name: Line | None
    """The first name, kept while any member counts; None before the first member and after a clear."""
    active_teammate_count: Count
    highest_forgotten_incarnation: Count
    """Of members that are not listed any more: a new life of one of them gets a higher number."""
    members: tuple[Member, ...]
    """All that count, then the newest that left, in the order in which they did."""

    def key(self) -> str:
        return team_key(self.worktree, self.session)

    def member(self, name: str) -> Member | None:
        return next((member for member in self.members if member.member == name), None)


class Roll:
    """A team while events are folded into it; its counts follow from its members."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.counting: dict[str, Member] = {}
        self.left: dict[str, Member] = {}
        self.forgotten = 0

    @classmethod
    def of(cls, state: TeamState | None) -> "Roll":
        roll = cls()
        if state is not None:
            roll.name, roll.forgotten = state.active_team_name, state.highest_forgotten_incarnation
            roll.counting = {member.member: member for member in state.members if member.counts}
            roll.left = {member.member: member for member in state.members if not member.counts}
        return roll

    def newest_member(self, member: str) -> Member | None:
        return self.counting.get(member) or self.left.get(member)

    def next_incarnation(self, member: str) -> int:
        known = self.newest_member(member)
        return (known.incarnation if known else self.forgotten) + 1

    def apply(self, event: events.TeamEvent) -> None:
        match event:
            case events.TeamMemberJoined():
                self._join(_new_member(event))
            case events.TeamMemberAlive():
                self._mark_alive(event)
            case events.TeamMemberLeft():
                member = self.counting.get(event.member)
                if member is not None and member.incarnation == event.incarnation:
                    self._leave(member.mark_left(event.at, event.because, event.detail))
                    self._name(event)
            case events.TeamCleared():
                self._clear(event)
            case _:
                assert_never(event)

    def _join(self, member: Member) -> None:
        if not self.counting or self.name is None:
            self.name = member.team
        self.left.pop(member.member, None)
        self.counting[member.member] = member

    def _mark_alive(self, event: events.TeamMemberAlive) -> None:
        member = self.newest_member(event.member)
        if member is None or member.incarnation != event.incarnation or not may_live(member):
            return
        now = _reading(event)
        news: dict[str, Any] = {"status": "idle" if event.idle else "active", "seen": now}
        if not event.idle:
            news["worked"] = now
        news.update(left_at=None, left_because=None, left_detail="")
        self._join(member.model_copy(update=news))

    def _name(self, event: events.TeamMemberLeft) -> None:
        # From now on the host knows the helper by its own name, and no other call can be meant.
        helper = self.counting.get(event.detail) if event.because == "named" else None
        if helper is not None:
            self.counting[helper.member] = helper.model_copy(update={"told_by": "host"})

    def named_calls(self) -> Iterator[tuple[str, str]]:
        """Yield each call whose helper counts, or counted, under another name, with that name."""
        for member in self.left.values():
            if member.left_because == "named":
                yield member.member, member.left_detail

    def _clear(self, event: events.TeamCleared) -> None:
        # No member comes back after a clear, not even one that was presumed gone.
        for member in list(self.counting.values()):
            self._leave(member.mark_left(event.at, "cleared", event.detail))
        for member in [left for left in self.left.values() if may_live(left)]:
            self.left[member.member] = member.mark_left(
                member.left_at, "cleared", member.left_detail
            )
        self.name = None

    def _leave(self, member: Member) -> None:
        del self.counting[member.member]
        self.left[member.member] = member
        while len(self.left) > MOST_LEFT:
            oldest = self.left.pop(next(iter(self.left)))
            self.forgotten = max(self.forgotten, oldest.incarnation)

    def contents(self) -> dict[str, Any]:
        return {
            "active_team_name": self.name,
            "active_teammate_count": len(self.counting),
            "highest_forgotten_incarnation": self.forgotten,
            "members": (*self.counting.values(), *self.left.values()),
        }


def may_live(member: Member) -> bool:
    """Tell whether a sign of life can be genuine: a member with an expired lease was only presumed gone."""
    return member.counts or member.left_because == "lease_expired"


class TeamFold(Fold[TeamState]):
    document_class = TeamState

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._roll = Roll()
        self._whose: dict[str, Any] = {}

    def restore(self, document: TeamState) -> None:
        self.reached = document.position()
        self._roll = Roll.of(document)
        self._whose = {"worktree": document.worktree, "session": document.session}

    def apply(self, event: events.TeamEvent) -> None:
        self._whose = {"worktree": event.worktree, "session": event.session}
        self._roll.apply(event)

    def contents(self) -> dict[str, Any]:
        return {**self._whose, **self._roll.contents()}


def _new_member(event: events.TeamMemberJoined) -> Member:
    now = _reading(event)
    return entry_from(
        Member,
        event,
        status="active",
        joined_at=event.at,
        seen=now,
        worked=now,
        left_at=None,
        left_because=None,
        left_detail="",
    )


def _reading(event: events.TeamMemberJoined | events.TeamMemberAlive) -> Reading:
    return Reading(at=event.at, boot_seconds=event.boot_seconds, boot_id=event.boot_id)


TEAM: ViewKind[TeamState, TeamFold] = ViewKind(
    document=TeamState,
    fold=TeamFold,
    events=get_args(events.TeamEvent),
    key=lambda event: team_key(event.worktree, event.session),
    folder="teams.d/",
    file="/team.json",
    needles=lambda _key: (b'"type":"team_', ADOPTED),
)
