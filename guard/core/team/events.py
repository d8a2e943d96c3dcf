"""Events in the life of a team: the helpers of one agent's session in one work tree."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from guard.core.base.fields import BootSeconds, Count, Id, Incarnation, Line
from guard.core.iteration.facts import Seconds
from guard.core.log.events import BaseEvent
from guard.core.team.change import Kind, LeftBecause, Teller

MemberName = Annotated[str, StringConstraints(min_length=1, max_length=512)]
"""What a host calls a helper: never part of a path, so it may be any line."""


class _TeamEvent(BaseEvent):
    """Leases end by the clock, so each event says when it was by the clock that does not jump, too."""

    worktree: Id
    session: Line | None
    """The agent's session; None while it is not known."""
    boot_seconds: BootSeconds
    boot_id: Line | None


class TeamMemberJoined(_TeamEvent):
    """A helper was started, or is about to be."""

    type: Literal["team_member_joined"] = "team_member_joined"
    team: Line
    member: MemberName
    incarnation: Incarnation
    kind: Kind
    description: Line
    lease_seconds: Seconds
    told_by: Teller


class TeamMemberAlive(_TeamEvent):
    """A helper gave a sign of life: its lease begins anew, and one whose lease had run out counts again."""

    type: Literal["team_member_alive"] = "team_member_alive"
    member: MemberName
    incarnation: Incarnation
    idle: bool


class TeamMemberLeft(_TeamEvent):
    """A helper counts no longer."""

    type: Literal["team_member_left"] = "team_member_left"
    member: MemberName
    incarnation: Incarnation
    because: LeftBecause
    detail: Line


class TeamCleared(_TeamEvent):
    """No member counts any more, and the team has no name."""

    type: Literal["team_cleared"] = "team_cleared"
    detail: Line


class CompletionHeld(_TeamEvent):
    """A completion was held back for the team: for those who read the log; nothing is folded from it."""

    type: Literal["completion_held"] = "completion_held"
    name: Line | None
    count: Count
    reason: Line


class CompletionReleased(_TeamEvent):
    """A completion that was held back, or could have been, was let go; nothing is folded from it."""

    type: Literal["completion_released"] = "completion_released"
    name: Line | None
    count: Count
    reason: Line


TeamEvent = TeamMemberJoined | TeamMemberAlive | TeamMemberLeft | TeamCleared
"""What the view of a team folds."""
