"""Events in the life of an agent, as the registries count it."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.events.base import BaseEvent
from guard.core.fields import Id, Line, Percent, Text

AgentStatus = Literal[
    "deployed", "running", "working", "blocked", "completed", "terminated", "error", "failed"
]
Incarnation = Annotated[int, Field(ge=1, le=2**31)]


class _AgentEvent(BaseEvent):
    task_id: Id
    agent_id: Id
    incarnation: Incarnation


class AgentSpawned(_AgentEvent):
    type: Literal["agent_spawned"] = "agent_spawned"
    agent_type: Line
    message: Text = ""


class AgentUpdated(_AgentEvent):
    """What an agent said of itself, or what was said of it: the fold decides what it changes."""

    type: Literal["agent_updated"] = "agent_updated"
    status: AgentStatus
    message: Text = ""
    progress: Percent | None = None


class RetentionSet(BaseEvent):
    """How many finished agents the global registry lists, from here on."""

    type: Literal["retention_set"] = "retention_set"
    keep_finished: Annotated[int, Field(ge=0, le=1_000_000)]


AgentEvent = AgentSpawned | AgentUpdated
RegistryEvent = AgentEvent | RetentionSet
