"""What is due, found and recorded in one change."""

from collections.abc import Callable

from guard.agents.report import ground_of
from guard.context.invocation import Invocation
from guard.coordinator.facts import terms_of
from guard.coordinator.record import RequestResult, change_state, loaded, used_for_another
from guard.core.coordinator.entries import ActiveAgent
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.tick import is_due, is_of_a_tick, tick
from guard.core.events.plan import CoordinatorEvent
from guard.store import Change


def ticked(
    guard: Invocation,
    is_at_work: Callable[[str, ActiveAgent], bool],
    *,
    fills: bool = True,
    event_id: str | None = None,
) -> RequestResult:
    """Time out, extend, and send out. Whether an agent is at work is looked at before the lock is taken."""
    state = loaded(guard)
    terms = terms_of(guard, event_id, looks=fills)
    working = {
        agent_id
        for agent_id, agent in state.active_agents.items()
        if is_due(agent, terms) and not agent.checked and is_at_work(agent_id, agent)
    }

    def decided(now: Coordinator, change: Change) -> tuple[CoordinatorEvent, ...] | None:
        if event_id is not None and (known := change.recorded(event_id)) is not None:
            if not is_of_a_tick(known):
                raise used_for_another(known, event_id)
            return None
        return tick(now, terms, working.__contains__, fills=fills)

    return change_state(guard, terms, decided, ground_of(guard) if fills else None)
