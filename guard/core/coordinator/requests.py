"""Requests to the coordinator: the kinds of request, the terms of a decision, and the refusal."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import cached_property
from hashlib import sha256
from inspect import Parameter, signature
from typing import Annotated, Any, Concatenate, Generic, ParamSpec, TypedDict

from pydantic import create_model
from pydantic.fields import FieldInfo

from guard.core.base.fields import Frozen
from guard.core.base.first_use import dataclass
from guard.core.coordinator.event_base import PlanEvent
from guard.core.coordinator.settings import CoordinatorSettings
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.log.events import BaseEvent

P = ParamSpec("P")
Draft = Callable[..., CoordinatorEvent]
"""An event that still lacks its id and time: a `functools.partial` of its class."""
_DIGEST = 10
SHOW = "`guard plan show` shows the state of every task"


@dataclass(frozen=True)
class AuditedCommit:
    """The commit at which a task passed its audit, and which of those up to there are the task's own."""

    sha: str
    files: tuple[str, ...] = ()
    branch: str | None = None
    base: str | None = None
    commits: tuple[str, ...] = ()
    shared_with: tuple[str, ...] = ()


class Timeout(TypedDict):
    """The fields by which an event sets an agent's time limit."""

    timeout_at: datetime
    timeout_boot_seconds: float | None
    timeout_boot_id: str | None


@dataclass(frozen=True)
class DecisionTerms:
    """What a decision gets besides the state."""

    now: datetime
    event_id: str
    """The id of the first event; later ones get a number after it."""
    limits: CoordinatorSettings = field(default_factory=CoordinatorSettings)
    head: str | None = None
    """The commit of HEAD; None before the first commit and without a repository."""
    commit: AuditedCommit | None = None
    boot_seconds: float = 0.0
    boot_id: str | None = None
    """The boot that `boot_seconds` belongs to; without it only the wall clock counts."""
    made: int = 0
    """How many events of this request were made before."""

    def timeout(self, minutes: float | None = None) -> Timeout:
        """Return the time limit of an agent that begins now, on both clocks; by default the configured one."""
        limit = timedelta(minutes=minutes or self.limits.agent_timeout_minutes)
        boot_end = self.boot_seconds + limit.total_seconds()
        return {
            "timeout_at": self.now + limit,
            "timeout_boot_seconds": boot_end if self.boot_id is not None else None,
            "timeout_boot_id": self.boot_id,
        }

    def events(self, drafts: Iterable[Draft]) -> tuple[CoordinatorEvent, ...]:
        return tuple(
            draft(
                at=self.now, id=numbered_id(self.event_id, number) if number > 1 else self.event_id
            )
            for number, draft in enumerate(drafts, self.made + 1)
        )

    def after(self, made: int) -> "DecisionTerms":
        return replace(self, made=made)


def numbered_id(event_id: str, number: int) -> str:
    """Return the id of one of several events under one given id.

    Its digest keeps it apart from ids that a script numbers itself.
    """
    digest = sha256(event_id.encode()).hexdigest()[:_DIGEST]
    return f"{event_id[:100]}-{number}-{digest}"


@dataclass(frozen=True)
class Refusal:
    """Why the state does not allow a request: a stable word, a sentence, and what to do instead."""

    code: str
    message: str
    hint: str


class NotAllowed(Exception):
    """Raised by a decision that refuses."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.refusal = Refusal(code, message, hint)


Decider = Callable[Concatenate[Coordinator, DecisionTerms, P], list[Draft]]


class RequestKind(Generic[P]):
    """A decision that callers can ask for; called with the decision's fields, it returns the request.

    The types and limits of the fields are those of the event.
    """

    def __init__(
        self,
        decide: Decider[P],
        events: tuple[type[PlanEvent], ...],
        cuts: Mapping[str, Callable[[Any], Any]],
    ) -> None:
        self.decide, self.events, self._cuts = decide, events, cuts

    def __call__(self, *_args: P.args, **fields: P.kwargs) -> "Request":
        return self._request(self.fields_class(**fields))

    def parse(self, values: Mapping[str, Any]) -> "Request":
        """Return the request with fields that may be given as text."""
        return self._request(self.fields_class.model_validate(values, strict=False))

    def _request(self, fields: Frozen) -> "Request":
        values = dict(fields)
        for name, cut in self._cuts.items():
            if values[name] is not None:
                values[name] = cut(values[name])
        return Request(self, values)

    @cached_property
    def fields_class(self) -> type[Frozen]:
        # The decision's keyword arguments, with the types that the event gives them.
        event = self.events[0].model_fields
        fields: dict[str, Any] = {
            name: _definition(parameter, event.get(name))
            for name, parameter in signature(self.decide).parameters.items()
            if parameter.kind == parameter.KEYWORD_ONLY
        }
        return create_model(self.events[0].__name__, __base__=Frozen, **fields)


def _definition(parameter: Parameter, field: FieldInfo | None) -> tuple[Any, Any]:
    # A field that the event does not have keeps the type that the decision gives it.
    kind: Any = parameter.annotation
    if field is not None:
        kind = (
            Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        )
    if parameter.default is None:
        kind = kind | None
    return kind, ... if parameter.default is parameter.empty else parameter.default


@dataclass(frozen=True)
class Request:
    """One thing that the coordinator is asked to record."""

    kind: RequestKind[Any]
    fields: Mapping[str, Any]

    def is_recorded_as(self, event: BaseEvent) -> bool:
        """Tell whether the event records this request; a field that was left to guard may have any value."""
        return isinstance(event, self.kind.events) and all(
            value is None or value == getattr(event, name)
            for name, value in self.fields.items()
            if name in type(event).model_fields
        )


def leads_to(
    *events: type[PlanEvent], **cuts: Callable[[Any], Any]
) -> Callable[[Decider[P]], RequestKind[P]]:
    """Make a decision a request kind that leads to one of these events; `cuts` shorten fields before recording."""
    return lambda decide: RequestKind(decide, events, cuts)
