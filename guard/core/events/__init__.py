"""Everything that can happen, as one tagged union.

To add an event type: write its class in the module of its family and put it into the family's union there. The views that
fold that family then fail to type-check until they say what it means for them; the schema is made anew by
`python -m guard.schemas`.
"""

from functools import cache
from typing import Annotated, TypeAlias, get_args

from pydantic import Discriminator, TypeAdapter

from guard.core.events.activity import (
    ActivityForgotten,
    ClocksRead,
    FalseAlarmLearned,
    ResumeSent,
    WatchEvent,
)
from guard.core.events.agent import (
    AgentBaselineRecorded,
    AgentClaimValidated,
    AgentEndDetected,
    AgentEvent,
    AgentFindingRecorded,
    AgentImported,
    AgentKilled,
    AgentLogEvent,
    AgentPlaced,
    AgentSpawned,
    AgentStatus,
    AgentTested,
    AgentTransitioned,
    AgentUpdated,
    RegistryEvent,
    RetentionSet,
)
from guard.core.events.base import BaseEvent
from guard.core.events.baseline import BaselineEvent, BaselineRecorded
from guard.core.events.breaker import (
    BreakerClosed,
    BreakerEvent,
    BreakerOpened,
    BreakerRecorded,
    CooldownRestarted,
    TrialClaimed,
    TrialReturned,
)
from guard.core.events.check import CheckEvent, CheckMade
from guard.core.events.commit import CommitEvent, CommitRecorded, CommitsRewritten
from guard.core.events.hook import HookEvent, HookSessionStarted, HooksFolded, StopDecided
from guard.core.events.log import LogEvent, LogSalvaged, SegmentOpened
from guard.core.events.plan import CoordinatorEvent
from guard.core.events.rescue import RescueEvent, RescueMade
from guard.core.events.run import (
    IterationEnded,
    IterationStarted,
    Process,
    RunEnded,
    RunEvent,
    RunStarted,
    SessionSeen,
    Status,
)
from guard.core.events.team import (
    CompletionHeld,
    CompletionReleased,
    TeamCleared,
    TeamEvent,
    TeamLogEvent,
    TeamMemberAlive,
    TeamMemberJoined,
    TeamMemberLeft,
)

Event: TypeAlias = (
    LogEvent
    | RunEvent
    | AgentLogEvent
    | BreakerEvent
    | CheckEvent
    | RescueEvent
    | BaselineEvent
    | TeamLogEvent
    | HookEvent
    | CommitEvent
    | WatchEvent
    | CoordinatorEvent
    | ClocksRead
)

EVENT_CLASSES: tuple[type[BaseEvent], ...] = get_args(Event)
EVENT_TYPES: dict[str, type[BaseEvent]] = {
    cls.model_fields["type"].default: cls for cls in EVENT_CLASSES
}


@cache
def event_adapter() -> TypeAdapter[Event]:
    """What tells an event by its tag; made once, by those who read the log."""
    return TypeAdapter(Annotated[Event, Discriminator("type")])


__all__ = [
    "EVENT_CLASSES",
    "EVENT_TYPES",
    "ActivityForgotten",
    "AgentBaselineRecorded",
    "AgentClaimValidated",
    "AgentEndDetected",
    "AgentEvent",
    "AgentFindingRecorded",
    "AgentImported",
    "AgentKilled",
    "AgentPlaced",
    "AgentSpawned",
    "AgentStatus",
    "AgentTested",
    "AgentTransitioned",
    "AgentUpdated",
    "BaseEvent",
    "BaselineEvent",
    "BaselineRecorded",
    "BreakerClosed",
    "BreakerEvent",
    "BreakerOpened",
    "BreakerRecorded",
    "CheckEvent",
    "CheckMade",
    "ClocksRead",
    "CommitEvent",
    "CommitRecorded",
    "CommitsRewritten",
    "CompletionHeld",
    "CompletionReleased",
    "CooldownRestarted",
    "CoordinatorEvent",
    "Event",
    "FalseAlarmLearned",
    "HookEvent",
    "HookSessionStarted",
    "HooksFolded",
    "IterationEnded",
    "IterationStarted",
    "LogEvent",
    "LogSalvaged",
    "Process",
    "RegistryEvent",
    "RescueEvent",
    "RescueMade",
    "ResumeSent",
    "RetentionSet",
    "RunEnded",
    "RunEvent",
    "RunStarted",
    "SegmentOpened",
    "SessionSeen",
    "Status",
    "StopDecided",
    "TeamCleared",
    "TeamEvent",
    "TeamMemberAlive",
    "TeamMemberJoined",
    "TeamMemberLeft",
    "TrialClaimed",
    "TrialReturned",
    "WatchEvent",
    "event_adapter",
]
