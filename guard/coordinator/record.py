"""One change of the coordinator's state: decided under the lock, recorded with what it means for the registries."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pydantic import ValidationError

from guard.agents.report import ground_of
from guard.context.ids import checked_id, new_id
from guard.context.invocation import Invocation
from guard.coordinator.facts import commit_of, terms_of
from guard.coordinator.register_agents import Register
from guard.core.agents.baseline import Ground
from guard.core.base.fields import first_problem
from guard.core.coordinator.decide import decide
from guard.core.coordinator.decide_tasks import dispatch_developer, pass_audit
from guard.core.coordinator.requests import DecisionTerms, Refusal, Request
from guard.core.coordinator.state import COORDINATOR, Coordinator, empty_state, fold_onto
from guard.core.events import Event
from guard.core.events.base import BaseEvent
from guard.core.events.plan import CoordinatorEvent
from guard.core.events.plan_upkeep import StateReconstructed, StateRecoveryNeeded
from guard.errors import Refused, WrongUsage
from guard.store import Change


@dataclass(frozen=True)
class RequestResult:
    """What a request came to."""

    events: tuple[CoordinatorEvent, ...]
    state: Coordinator
    repeated: bool = False
    """Whether it had been recorded before, under the same id: then nothing happened."""


def current(guard: Invocation) -> Coordinator | None:
    """The state as it stands; None if nothing was ever recorded."""
    return guard.store.view(COORDINATOR)


def loaded(guard: Invocation) -> Coordinator:
    """The same, refused without a plan."""
    state = current(guard)
    if state is None or state.plan_file is None:
        raise Refused("no plan is loaded", "`guard plan load FILE` takes one")
    return state


def record(guard: Invocation, request: Request, event_id: str | None = None) -> RequestResult:
    """What the request leads to, recorded; refused where the state does not allow it."""
    if event_id is not None:
        checked_id("an event id", event_id)
    begins = request.kind is dispatch_developer
    terms = terms_of(guard, event_id, looks=begins)
    ground = ground_of(guard) if begins else None

    def decided(state: Coordinator, change: Change) -> tuple[CoordinatorEvent, ...] | None:
        if event_id is not None and (known := change.recorded(event_id)) is not None:
            _refuse_other(request, known, event_id)
            return None
        own = terms
        if request.kind is pass_audit:
            own = replace(terms, commit=commit_of(guard, state, request.fields["task_id"]))
        return allowed(decide(state, request, own))

    return change_state(guard, terms, decided, ground)


def recorded_under(guard: Invocation, event_id: str) -> Event | None:
    """The event that has this id, if one has."""
    with guard.writable_store.change() as change:
        return change.recorded(event_id)


def change_state(
    guard: Invocation,
    terms: DecisionTerms,
    decided: Callable[[Coordinator, Change], tuple[CoordinatorEvent, ...] | None],
    ground: Ground | None = None,
) -> RequestResult:
    """Decide by the state as it is under the lock, and record it; None means that it was recorded before."""
    keep = guard.lenient_settings.registry.keep_finished
    with guard.writable_store.change() as change, usable():
        state = _recovered(change, terms)
        events = decided(state, change)
        if events is None:
            return RequestResult((), state, repeated=True)
        change.append(*_with_registries(state, events, Register(change, terms.now, ground, keep)))
        return RequestResult(events, change.view(COORDINATOR) or state)


def _with_registries(
    state: Coordinator, events: Iterable[CoordinatorEvent], register: Register
) -> list[Event]:
    """All that is appended in one: a crash leaves either nothing of it or everything."""
    whole: list[Event] = []
    for event in events:
        later = fold_onto(state, event)
        whole += [event, *register.told(state, event, later)]
        state = later
    return whole


def _recovered(change: Change, terms: DecisionTerms) -> Coordinator:
    """The state; that its file could not be used is recorded by whoever finds out and may write."""
    state = change.view(COORDINATOR)
    if state is None:
        return empty_state()
    reason = change.recovered(COORDINATOR)
    if reason is None:
        return state
    replayed = state.events_folded
    change.append(
        StateRecoveryNeeded(at=terms.now, id=new_id(), reason=reason),
        StateReconstructed(at=terms.now, id=new_id(), events_replayed=replayed),
    )
    return change.view(COORDINATOR) or state


def _refuse_other(request: Request, known: BaseEvent, event_id: str) -> None:
    if not request.is_recorded_as(known):
        raise used_for_another(known, event_id)


def used_for_another(known: BaseEvent, event_id: str) -> Refused:
    """The id of a request is that of something else."""
    return Refused(
        f"the id {event_id} was used for another {known.type}", "give each request an id of its own"
    )


def allowed(decision: tuple[CoordinatorEvent, ...] | Refusal) -> tuple[CoordinatorEvent, ...]:
    """What was decided; a refusal is raised."""
    if isinstance(decision, Refusal):
        raise Refused(decision.message, decision.hint)
    return decision


@contextmanager
def usable() -> Iterator[None]:
    """What cannot be an event is the caller's fault."""
    try:
        yield
    except ValidationError as error:
        raise WrongUsage(
            f"this cannot be recorded: {first_problem(error)}",
            "texts are valid and bounded: a line has at most 512 characters",
        ) from None
