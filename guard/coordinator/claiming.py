"""The next task of the plan for an agent that has nothing to do: looked up, or taken."""

from guard.coordinator.facts import terms_of
from guard.coordinator.recording import current, record
from guard.core.agents import Agent
from guard.core.coordinator.deciding import decide
from guard.core.coordinator.requests import DispatchDeveloper
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.terms import Refusal
from guard.core.plan.model import PlanTask
from guard.errors import Refused
from guard.invocation import Invocation

_ATTEMPTS = 5


def preview(guard: Invocation) -> PlanTask | None:
    """The task that would be taken next; None without a plan, and while there is none to take."""
    state = current(guard)
    return next_task(state) if state is not None else None


def next_task(state: Coordinator) -> PlanTask | None:
    """The first of the available tasks."""
    return state.task(state.available_tasks[0]) if state.available_tasks else None


def claim(guard: Invocation, agent: Agent) -> PlanTask | None:
    """Give the next task to the agent, where the state allows it; None otherwise.

    Another may be quicker: then the next one is tried.
    """
    for _ in range(_ATTEMPTS):
        state = current(guard)
        task = next_task(state) if state is not None else None
        if state is None or task is None:
            return None
        request = DispatchDeveloper(task_id=task.id, agent_id=agent.agent_id)
        if isinstance(decide(state, request, terms_of(guard, None)), Refusal):
            return None
        try:
            record(guard, request)
        except Refused:
            continue
        return task
    return None
