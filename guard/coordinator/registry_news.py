"""Take in what the registries tell of the plan's agents: who started, ended, is blocked, or took a task by itself."""

from collections.abc import Iterator
from dataclasses import replace

from guard.agents.monitor import record_ends
from guard.agents.registry import find_agent
from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.baseline import AGENT_BASELINE, baseline_key
from guard.core.agents.registry import GLOBAL_REGISTRY
from guard.core.base.first_use import dataclass
from guard.core.coordinator.decide import decide
from guard.core.coordinator.decide_tasks import dispatch_developer, is_idle
from guard.core.coordinator.from_registry import planned_agents, request_from_registry
from guard.core.coordinator.requests import DecisionTerms, Refusal, Request
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.store import Change

AgentLife = tuple[str, str, int]
"""The task, the name and the number of one life of an agent."""


@dataclass(frozen=True)
class RegistryLook:
    """What a look at the registries found, before the lock was taken."""

    unplanned: tuple[AgentLife, ...] = ()
    """Agents at work on free tasks of the plan that the plan did not give them."""


def look_at_agents(guard: Invocation, state: Coordinator | None) -> RegistryLook:
    """Look whether the plan's agents are alive, and record in the registries which have ended."""
    if state is None or state.plan_file is None:
        return RegistryLook()
    # One view has every active agent: the registries of the tasks, one by one, would cost as much as there are agents.
    overall = guard.store.view(GLOBAL_REGISTRY)
    active = {
        _name(agent): agent
        for agent in (overall.agents if overall is not None else ())
        if agent.status in ACTIVE
    }
    names = [(planned.registered_in, planned.name) for planned in planned_agents(state)]
    names += [(work.task_id, work.developer_id) for work in state.in_progress_tasks]
    known = {name: active[name] for name in names if name in active}
    others = [agent for name, agent in active.items() if name not in known and _took(state, agent)]
    looks = record_ends(guard, [*known.values(), *others])
    alive = [agent for agent in others if looks[_life(agent)].state == "alive"]
    return RegistryLook(tuple(_life(agent) for agent in alive))


def _took(state: Coordinator, agent: Agent) -> bool:
    return agent.whereabouts.is_known and may_adopt(state, agent.task_id, agent.agent_id)


def may_adopt(state: Coordinator, task_id: str, agent_id: str) -> bool:
    """Tell whether the task is free, so that an agent that took it by itself can be its developer."""
    is_free = task_id in state.available_tasks or is_idle(state, state.work(task_id))
    return is_free and agent_id not in state.active_agents


def _name(agent: Agent) -> tuple[str, str]:
    return agent.task_id, agent.agent_id


def _life(agent: Agent) -> AgentLife:
    return agent.task_id, agent.agent_id, agent.incarnation


def news_requests(
    change: Change, state: Coordinator, look: RegistryLook
) -> Iterator[tuple[Request, str | None]]:
    """Yield what the registries tell now, under the lock; for a task that is taken, with the commit where it began."""
    for planned in planned_agents(state):
        known = find_agent(change, planned.registered_in, planned.name)
        request = request_from_registry(planned, known) if known is not None else None
        if request is not None:
            yield request, None
    for task_id, agent_id, incarnation in look.unplanned:
        known = find_agent(change, task_id, agent_id)
        same = known is not None and known.incarnation == incarnation and known.status in ACTIVE
        if known is not None and same and may_adopt(state, task_id, agent_id):
            base = change.view(AGENT_BASELINE, baseline_key(task_id, agent_id))
            request = dispatch_developer(task_id=task_id, agent_id=agent_id)
            yield request, base.head if base is not None else None


def decide_news(
    state: Coordinator, request: Request, terms: DecisionTerms, head: str | None
) -> tuple[CoordinatorEvent, ...]:
    """Return the events of what a registry tells; none where the state does not allow them."""
    decision = decide(state, request, replace(terms, event_id=new_id(), made=0, head=head))
    return () if isinstance(decision, Refusal) else decision
