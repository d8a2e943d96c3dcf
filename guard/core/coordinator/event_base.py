"""Base classes of the coordinator's events."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import BootSeconds, Id, Incarnation, Instant, Line
from guard.core.log.events import BaseEvent

AgentType = Literal["developer", "auditor", "business_analyst", "remediation", "health_auditor"]
Confidence = Literal["HIGH", "MEDIUM", "LOW"]
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class PlanEvent(BaseEvent):
    """The view that it belongs to is named in the line, so that the line is found by one word."""

    view: Literal["coordinator"] = "coordinator"


class TimedEvent(PlanEvent):
    """One that gives an agent its time: the end of it is on the boot clock too, which never jumps."""

    timeout_boot_seconds: BootSeconds | None = None
    timeout_boot_id: Line | None = None
    incarnation: Incarnation | None = None
    """Which life of the agent in the registries gets the time; None if the registries do not have it."""


class Dispatched(TimedEvent):
    """An agent is to work on something."""

    agent_id: Id
    timeout_at: Instant
    to_start: bool
    """Whether the agent still has to be started, by the program that empties the outbox."""
