"""What is to be delivered, taken from the outbox; and the same once more for whoever was killed before it was delivered."""

from guard.context.invocation import Invocation
from guard.coordinator.facts import terms_of
from guard.coordinator.record import allowed, change_state, loaded, used_for_another
from guard.core.coordinator.decide import decide, take_outbox
from guard.core.coordinator.entries import Parcel
from guard.core.coordinator.state import Coordinator, CoordinatorFold
from guard.core.events.plan import CoordinatorEvent
from guard.core.events.plan_base import PlanEvent
from guard.core.events.plan_upkeep import OutboxTaken
from guard.store import Change, Store

Parcels = tuple[Parcel, ...]


def waiting(state: Coordinator, agent_id: str | None) -> Parcels:
    """What stands in the outbox, or only what is for one agent."""
    return tuple(one for one in state.outbox if agent_id in (None, one.agent_id))


def take(guard: Invocation, agent_id: str | None, event_id: str | None) -> Parcels:
    """Take what is there once the lock is ours; under an id that was used before, what was taken then."""
    loaded(guard)
    terms = terms_of(guard, event_id)
    found: Parcels = ()
    before: OutboxTaken | None = None

    def decided(state: Coordinator, change: Change) -> tuple[CoordinatorEvent, ...] | None:
        nonlocal found, before
        if event_id is not None and (known := change.recorded(event_id)) is not None:
            if not isinstance(known, OutboxTaken):
                raise used_for_another(known, event_id)
            before = known
            return None
        found = waiting(state, agent_id)
        return allowed(decide(state, take_outbox(items=tuple(one.item_id for one in found)), terms))

    change_state(guard, terms, decided)
    if before is None:
        return found
    again = taken_by(guard.store, before)
    if agent_id is not None and any(one.agent_id != agent_id for one in again):
        raise used_for_another(before, before.id)
    return again


def taken_by(store: Store, taken: OutboxTaken) -> Parcels:
    """What left the outbox with this event. The state has forgotten it: it is folded again from the log, up to there."""
    fold = CoordinatorFold("")
    for entry in store.entries():
        event = entry.event
        if isinstance(event, OutboxTaken) and event.id == taken.id:
            break
        if isinstance(event, PlanEvent):
            fold.apply(event)
    wanted = frozenset(taken.items)
    return tuple(one for one in fold.document().outbox if one.item_id in wanted)
