"""Events of watching agents: prompts that were sent to wake them, what was learned from those that were not needed, and the
clocks of the machine that they were watched on."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import BootSeconds, Digest, Id, Instant, Line
from guard.core.events.agent import Incarnation
from guard.core.events.base import BaseEvent
from guard.core.events.whereabouts import BootSeconds as ClockSeconds

ResumeWay = Literal["tmux", "session", "inbox", "command"]
Minutes = Annotated[float, Field(ge=0, le=60 * 24 * 365)]


class _WatchEvent(BaseEvent):
    task_id: Id
    agent_id: Id
    incarnation: Incarnation


class ResumeSent(_WatchEvent):
    """A prompt went to an agent that was not known to be at work."""

    type: Literal["resume_sent"] = "resume_sent"
    way: ResumeWay
    stall: Digest
    """Names the silence that it was sent in: what was last seen of the agent."""
    last_activity: Instant | None
    lookback_minutes: Minutes
    """By which look-back it was assessed."""
    prompt: Digest
    reason: Line
    boot_seconds: BootSeconds | None = None
    boot_id: Line | None = None


class FalseAlarmLearned(_WatchEvent):
    """An agent that was sent a prompt proved to have been at work."""

    type: Literal["false_alarm_learned"] = "false_alarm_learned"
    resumed_at: Instant
    proof: Line
    silence_minutes: Minutes
    """How long it had seemed silent."""
    lookback_minutes: Minutes
    """How far one looks back for it from now on."""


class ActivityForgotten(_WatchEvent):
    """What was learned of an agent counts no longer."""

    type: Literal["activity_forgotten"] = "activity_forgotten"
    reason: Line = ""


WatchEvent = ResumeSent | FalseAlarmLearned | ActivityForgotten


class ClocksRead(BaseEvent):
    """The clocks of a machine while its agents are watched: their differences tell when it slept."""

    type: Literal["clocks_read"] = "clocks_read"
    machine: Line
    boot_id: Line
    boot_seconds: ClockSeconds
    awake_seconds: ClockSeconds
    """As the boot clock, without the time in which the machine slept."""
