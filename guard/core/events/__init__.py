"""Everything that can happen, as one tagged union.

To add an event type: write its class in the module of its family and put it into the family's union there. The views that
fold that family then fail to type-check until they say what it means for them; the schema is made anew by
`python -m guard.schemas`.
"""

from typing import Annotated, TypeAlias, get_args

from pydantic import Discriminator, TypeAdapter

from guard.core.events.agent import (
    AgentEvent,
    AgentSpawned,
    AgentStatus,
    AgentUpdated,
    RegistryEvent,
    RetentionSet,
)
from guard.core.events.base import BaseEvent
from guard.core.events.log import LogEvent, LogSalvaged, SegmentOpened
from guard.core.events.run import (
    IterationEnded,
    IterationStarted,
    RunEnded,
    RunEvent,
    RunStarted,
    Status,
)

Event: TypeAlias = LogEvent | RunEvent | RegistryEvent

EVENT_CLASSES: tuple[type[BaseEvent], ...] = get_args(Event)
EVENT_TYPES: dict[str, type[BaseEvent]] = {
    cls.model_fields["type"].default: cls for cls in EVENT_CLASSES
}
EVENT_ADAPTER: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Discriminator("type")])

__all__ = [
    "EVENT_ADAPTER",
    "EVENT_CLASSES",
    "EVENT_TYPES",
    "AgentEvent",
    "AgentSpawned",
    "AgentStatus",
    "AgentUpdated",
    "BaseEvent",
    "Event",
    "IterationEnded",
    "IterationStarted",
    "LogEvent",
    "LogSalvaged",
    "RegistryEvent",
    "RetentionSet",
    "RunEnded",
    "RunEvent",
    "RunStarted",
    "SegmentOpened",
    "Status",
]
