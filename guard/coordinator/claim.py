"""The next task of the plan for an agent that has nothing to do: looked up, or taken."""

from guard.context.invocation import Invocation
from guard.coordinator.facts import terms_of
from guard.coordinator.record import current, record
from guard.core.agents.agent import Agent
from guard.core.coordinator.decide import decide
from guard.core.coordinator.decide_tasks import dispatch_developer
from guard.core.coordinator.requests import Refusal
from guard.core.coordinator.state import Coordinator
from guard.core.events.plan_model import PlanTask
from guard.errors import Refused

_ATTEMPTS = 5


def preview(guard: Invocation, agent: Agent | None = None) -> PlanTask | None:
    """The task that would be taken next; None without a plan, and while there is none to take."""
    state = current(guard)
    return next_task(state, agent) if state is not None else None


def next_task(state: Coordinator, agent: Agent | None = None) -> PlanTask | None:
    """The task in which the agent is registered, if that is available; otherwise the first that is."""
    if agent is not None and agent.task_id in state.available_tasks:
        return state.task(agent.task_id)
    return state.task(state.available_tasks[0]) if state.available_tasks else None


def claim(guard: Invocation, agent: Agent) -> PlanTask | None:
    """Give the next task to the agent, where the state allows it; None otherwise.

    Another may be quicker: then the next one is tried. The agent stays the one that it is in the registries: a second
    registration would be a second agent, which nobody could reach.
    """
    for _ in range(_ATTEMPTS):
        state = current(guard)
        task = next_task(state, agent) if state is not None else None
        if state is None or task is None:
            return None
        request = dispatch_developer(
            task_id=task.id, agent_id=agent.agent_id, registered_in=agent.task_id
        )
        if isinstance(decide(state, request, terms_of(guard, None)), Refusal):
            return None
        try:
            record(guard, request)
        except Refused:
            continue
        return task
    return None
