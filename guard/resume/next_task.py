"""The next task of the plan for an agent that is brought back: its own, claimed for it, or only shown."""

from guard.context.invocation import Invocation
from guard.coordinator.claim import claim, preview
from guard.coordinator.record import current
from guard.core.agents.agent import Agent
from guard.core.resume.evidence import NextTask


def next_task(guard: Invocation, agent: Agent, *, claims: bool) -> NextTask | None:
    """None where there is no plan, or nothing in it for the agent. Who has something to do goes on with that."""
    if _is_busy(guard, agent):
        return _own(guard, agent)
    claimed = claim(guard, agent) if claims else None
    if claimed is not None:
        return NextTask(claimed, claimed=True)
    if _is_busy(guard, agent):  # Another guard claimed it for the agent a moment ago.
        return _own(guard, agent)
    free = preview(guard, agent)
    return NextTask(free, claimed=False) if free is not None else None


def _is_busy(guard: Invocation, agent: Agent) -> bool:
    """Whether the coordinator has it at work, as what ever, or waiting for the verdict on its task."""
    state = current(guard)
    return state is not None and (
        agent.agent_id in state.active_agents
        or any(one.developer_id == agent.agent_id for one in state.in_progress_tasks)
    )


def _own(guard: Invocation, agent: Agent) -> NextTask | None:
    """The task that it develops."""
    state = current(guard)
    mine = (
        one.task_id
        for one in (state.in_progress_tasks if state is not None else ())
        if one.developer_id == agent.agent_id
    )
    found = next(mine, None)
    task = state.task(found) if state is not None and found is not None else None
    return NextTask(task, claimed=True) if task is not None else None
