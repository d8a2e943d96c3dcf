"""Tell the plan of the agents that guard itself runs: their start, their signals, and the verdict on their iteration."""

from collections.abc import Iterable

from guard.context.invocation import Invocation
from guard.coordinator.batch import EventBatch
from guard.coordinator.record import decision_terms, find_state
from guard.coordinator.register_agents import Register
from guard.core.agents.agent import Agent
from guard.core.agents.events import AgentStatus
from guard.core.coordinator.decide import decide
from guard.core.coordinator.decide_agents import start_agent
from guard.core.coordinator.decide_tasks import dispatch_developer
from guard.core.coordinator.from_registry import (
    IterationEnd,
    PlannedAgent,
    find_planned,
    request_from_end,
)
from guard.core.coordinator.requests import DecisionTerms, Refusal, Request
from guard.core.coordinator.state import COORDINATOR, Coordinator, fold_onto
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.log.events import BaseEvent
from guard.store import Change


def events_at_start(
    guard: Invocation, task_id: str, agent_id: str, change: Change, incarnation: int
) -> Iterable[BaseEvent]:
    """Return the events of an agent that guard starts; one that took a free task by itself becomes its developer."""
    state = change.view(COORDINATOR)
    if state is None or state.plan_file is None:
        return ()
    planned = find_planned(state, task_id, agent_id)
    if planned is not None and is_at_work(planned, incarnation):
        return ()
    terms = decision_terms(guard, None, reads_head=planned is None)
    events: tuple[CoordinatorEvent, ...] = ()
    if planned is None:
        events = _adopt(guard, state, task_id, agent_id, terms)
        if not events:
            return ()
        events = tuple(event.model_copy(update={"incarnation": incarnation}) for event in events)
        state = fold_onto(state, *events)
    started = start_agent(agent_id=agent_id, incarnation=incarnation)
    return (*events, *_decide(guard, state, started, terms.after(len(events))))


def is_at_work(planned: PlannedAgent, incarnation: int) -> bool:
    """Tell whether the plan knows already that this life of the agent has started and goes on."""
    entry = planned.entry
    is_same = entry.incarnation == incarnation
    return is_same and entry.started_at is not None and not entry.has_ended


def _adopt(
    guard: Invocation, state: Coordinator, task_id: str, agent_id: str, terms: DecisionTerms
) -> tuple[CoordinatorEvent, ...]:
    if state.task(task_id) is None:
        return ()
    return _decide(guard, state, dispatch_developer(task_id=task_id, agent_id=agent_id), terms)


def _decide(
    guard: Invocation, state: Coordinator, request: Request, terms: DecisionTerms
) -> tuple[CoordinatorEvent, ...]:
    decision = decide(state, request, terms)
    if isinstance(decision, Refusal):
        guard.output.warn(f"the plan does not take this in: {decision.message}")
        return ()
    return decision


def record_signals(guard: Invocation, agent: Agent, text: str, event_id: str) -> None:
    """Record the signals in the last message of one of the plan's agents; the ids are made of the given one."""
    from guard.coordinator.ingest import record_signals_in

    state = find_state(guard)
    if state is None or find_planned(state, agent.task_id, agent.agent_id) is None:
        return
    report = record_signals_in(guard, agent.agent_id, text, event_id)
    for signal in report.signals:
        if signal.outcome in ("refused", "for_a_person"):
            guard.output.warn(f"line {signal.line}: {signal.kind}: {signal.detail}")


def events_at_end(
    guard: Invocation,
    agent: Agent,
    end: IterationEnd,
    status: AgentStatus,
    message: str,
    change: Change,
    incarnation: int,
) -> Iterable[BaseEvent]:
    """Return what the verdict on an iteration means for the plan, unless the agent's signals told more."""
    state = change.view(COORDINATOR)
    planned = find_planned(state, agent.task_id, agent.agent_id) if state is not None else None
    if state is None or planned is None or planned.entry.incarnation not in (None, incarnation):
        return ()
    # As the registries have the agent after this change.
    after = agent.model_copy(update={"status": status, "message": message})
    request = request_from_end(planned, end, after)
    if request is None:
        return ()
    terms = decision_terms(guard, None)
    keep = guard.config.settings.registry.keep_finished
    register = Register(change, terms.now, None, keep, ended=(agent.task_id, agent.agent_id))
    batch = EventBatch(change, state, register)
    batch.add(_decide(guard, state, request, terms))
    return batch.pending
