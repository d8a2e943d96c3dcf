"""Everything that can happen, as one tagged union.

To add an event type: write its class in the module of its family and put it into the family's union there. The views that
fold that family then fail to type-check, or to pass their test, until they say what it means for them; the schema is made
anew by `python -m guard.schemas`.

The coordinator's events are nearly half of all, and most commands meet none of them: they are loaded when somebody asks for
one, or for all.
"""

from functools import cache
from typing import TYPE_CHECKING, TypeAlias, get_args

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

_Early: TypeAlias = (
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
    | ClocksRead
)
if TYPE_CHECKING:
    from guard.core.events.plan import CoordinatorEvent

    Event: TypeAlias = _Early | CoordinatorEvent
else:
    Event = BaseEvent


def _tagged(classes: tuple[type[BaseEvent], ...]) -> dict[str, type[BaseEvent]]:
    return {cls.model_fields["type"].default: cls for cls in classes}


_EARLY = _tagged(get_args(_Early))


@cache
def event_types() -> dict[str, type[BaseEvent]]:
    """Every event by its tag."""
    from guard.core.events.plan import CoordinatorEvent

    return {**_EARLY, **_tagged(get_args(CoordinatorEvent))}


def event_class(tag: str) -> type[BaseEvent] | None:
    """The event of this tag; None for one that only a newer guard knows."""
    return _EARLY.get(tag) or event_types().get(tag)


__all__ = [
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
    "event_class",
    "event_types",
]
