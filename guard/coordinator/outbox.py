"""Take parcels from the outbox, or read again those that an earlier call took."""

from dataclasses import dataclass
from typing import cast

from guard.context.invocation import Invocation
from guard.coordinator.record import (
    change_state,
    decision_terms,
    require_state,
    reused_id_error,
    unwrap_decision,
)
from guard.core.coordinator.decide import decide, take_outbox
from guard.core.coordinator.entries import Parcel
from guard.core.coordinator.event_base import PlanEvent
from guard.core.coordinator.state import Coordinator, CoordinatorFold, empty_state
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.coordinator.upkeep_events import OutboxTaken
from guard.store import Store

Parcels = tuple[Parcel, ...]


def parcels_for(state: Coordinator, agent_id: str | None) -> Parcels:
    return tuple(parcel for parcel in state.outbox if agent_id in (None, parcel.agent_id))


@dataclass(frozen=True)
class TakenParcels:
    """What was taken, and the state just before."""

    parcels: Parcels
    state: Coordinator


def take_parcels(
    guard: Invocation, agent_id: str | None, event_id: str | None, items: tuple[str, ...] = ()
) -> TakenParcels:
    """Take the parcels of the outbox; for an event id that was used before, return those that were taken then.

    A caller that was killed before it delivered its parcels asks again with the same id. With `items`, only those are
    taken; one that was taken or withdrawn before is passed over.
    """
    require_state(guard)
    terms = decision_terms(guard, event_id)
    found = TakenParcels((), empty_state())

    def decide_now(state: Coordinator) -> tuple[CoordinatorEvent, ...]:
        nonlocal found
        parcels = tuple(p for p in parcels_for(state, agent_id) if not items or p.item_id in items)
        found = TakenParcels(parcels, state)
        wanted = items or tuple(parcel.item_id for parcel in parcels)
        return unwrap_decision(decide(state, take_outbox(items=wanted), terms))

    before = change_state(
        guard, terms, decide_now, event_id, is_repeat=lambda event: isinstance(event, OutboxTaken)
    ).earlier
    if not isinstance(before, OutboxTaken):
        return found
    again = replay_parcels(guard.store, before)
    if agent_id is not None and any(parcel.agent_id != agent_id for parcel in again.parcels):
        raise reused_id_error(before, before.id)
    return again


def replay_parcels(store: Store, taken: OutboxTaken) -> TakenParcels:
    # The state no longer has these parcels, so it is folded again from the log up to the event.
    fold = CoordinatorFold("")
    for entry in store.entries():
        event = entry.event
        if isinstance(event, OutboxTaken) and event.id == taken.id:
            break
        if isinstance(event, PlanEvent):
            fold.apply(cast("CoordinatorEvent", event))
    state, wanted = fold.document(), frozenset(taken.items)
    return TakenParcels(tuple(p for p in state.outbox if p.item_id in wanted), state)
