"""Events of watching agents: prompts that were sent, lessons from needless ones, and the clocks of the machine."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.agents.whereabouts import BootSeconds as ClockSeconds
from guard.core.base.fields import BootSeconds, Digest, Id, Incarnation, Instant, Line
from guard.core.log.events import BaseEvent

ResumeWay = Literal["tmux", "session", "inbox", "command"]
Minutes = Annotated[float, Field(ge=0, le=60 * 24 * 365)]


class _WatchEvent(BaseEvent):
    task_id: Id
    agent_id: Id
    incarnation: Incarnation


class ResumeSent(_WatchEvent):
    """Guard sent a prompt to an agent that was not known to be at work."""

    type: Literal["resume_sent"] = "resume_sent"
    way: ResumeWay
    stall: Digest
    """A digest that identifies the silence in which it was sent."""
    last_activity: Instant | None
    lookback_minutes: Minutes
    """The look-back that the agent was assessed with."""
    prompt: Digest
    reason: Line
    boot_seconds: BootSeconds | None = None
    boot_id: Line | None = None


class FalseAlarmLearned(_WatchEvent):
    """An agent that was sent a prompt turned out to have been at work."""

    type: Literal["false_alarm_learned"] = "false_alarm_learned"
    resumed_at: Instant
    proof: Line
    silence_minutes: Minutes
    """How long the agent had seemed silent."""
    lookback_minutes: Minutes
    """How far guard looks back for the agent from now on."""


class ActivityForgotten(_WatchEvent):
    """The lessons about an agent no longer count."""

    type: Literal["activity_forgotten"] = "activity_forgotten"
    reason: Line = ""


WatchEvent = ResumeSent | FalseAlarmLearned | ActivityForgotten


class ClocksRead(BaseEvent):
    """The clocks of a machine on which agents are watched: their differences show when it slept."""

    type: Literal["clocks_read"] = "clocks_read"
    machine: Line
    boot_id: Line
    boot_seconds: ClockSeconds
    awake_seconds: ClockSeconds
    """Like the boot clock, without the time in which the machine slept."""
