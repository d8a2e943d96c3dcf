"""The next task of the plan for an agent that is brought back: its own, claimed for it, or only shown."""

from guard.coordinator.claiming import claim, preview
from guard.coordinator.recording import current
from guard.core.agents import Agent
from guard.core.plan.model import PlanTask
from guard.core.resuming.evidence import NextTask
from guard.invocation import Invocation


def next_task(guard: Invocation, agent: Agent, *, claims: bool) -> NextTask | None:
    """None where there is no plan, or nothing in it that is free. Who has a task of the plan goes on with that one."""
    own = _own(guard, agent)
    if own is not None:
        return NextTask(own, claimed=True)
    claimed = claim(guard, agent) if claims else None
    if claimed is not None:
        return NextTask(claimed, claimed=True)
    free = preview(guard)
    return NextTask(free, claimed=False) if free is not None else None


def _own(guard: Invocation, agent: Agent) -> PlanTask | None:
    state = current(guard)
    if state is None:
        return None
    mine = (one for one in state.in_progress_tasks if one.developer_id == agent.agent_id)
    found = next(mine, None)
    return state.task(found.task_id) if found is not None else None
