"""The reports of `guard plan` and `guard event`, and their text."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Instant, Line, Report
from guard.core.base.text import escape, plural
from guard.core.coordinator.decide_tasks import refuse_while_held_up, tasks_apart
from guard.core.coordinator.entries import Parcel, WorkStatus
from guard.core.coordinator.event_base import AgentType
from guard.core.coordinator.requests import NotAllowed
from guard.core.coordinator.settings import HoldOnQuestion
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.plan.model import PlanTask
from guard.core.plan.signals import SignalKind

_NAMES = ("task_id", "agent_id", "question_id", "run_id", "request_id")
_SHOWN = 20
_WORK_WORDS: Mapping[WorkStatus, str] = {
    "implementing": "at work",
    "awaiting-audit": "waits for its audit",
    "awaiting-divine-guidance": "waits for an answer",
}
_AGENT_WORDS: Mapping[AgentType, str] = {
    "developer": "at work",
    "auditor": "is being audited by",
    "business_analyst": "is being expanded by",
    "remediation": "is being repaired by",
    "health_auditor": "is being checked by",
}


class RecordedEvent(Frozen):
    """One event, and whom it is about."""

    type: Line
    id: Id
    task_id: Id | None
    agent_id: Id | None
    question_id: Id | None
    run_id: Id | None
    request_id: Id | None


class PlanChangeReport(Report):
    """What was recorded, and how the plan stands after it."""

    schema_: Literal["guard/plan-change/1"] = Field("guard/plan-change/1", alias="schema")
    recorded_as: Literal["recorded", "repeated", "nothing"]
    """`repeated`: the same was recorded before under this id, and nothing happened now."""
    events: tuple[RecordedEvent, ...]
    total_tasks: Count
    completed: Count
    in_progress: Count
    pending_audit: Count
    available: Count
    active_actor_count: Count
    plan_complete: bool
    held_up_by: Line | None
    """Why the coordinator dispatches no agent; None if nothing holds it up."""
    outbox: Count
    """How many items wait to be delivered."""
    outbox_oldest_at: Instant | None
    """Since when the oldest of them does."""


class PlanNextReport(Report):
    """The task that comes next."""

    schema_: Literal["guard/plan-next/1"] = Field("guard/plan-next/1", alias="schema")
    task: PlanTask | None
    suggested_agents: tuple[Id, ...]
    """Supporting agents that may help with it."""
    next_available_tasks: tuple[Id, ...]
    kept_apart: dict[Id, Id]
    """Available tasks that change the same files as a task under way, and which task that is."""
    held_up_by: Line | None
    plan_complete: bool


class PlanGraphReport(Report):
    """The plan as a graph, in the notation of a drawing program."""

    schema_: Literal["guard/plan-graph/1"] = Field("guard/plan-graph/1", alias="schema")
    notation: Literal["mermaid", "dot"]
    text: str


class PlanOutboxReport(Report):
    """What is to be delivered to agents."""

    schema_: Literal["guard/plan-outbox/1"] = Field("guard/plan-outbox/1", alias="schema")
    taken: bool
    """Whether it has left the outbox with this."""
    items: tuple[Parcel, ...]


def change_report(
    events: Iterable[CoordinatorEvent],
    state: Coordinator,
    *,
    repeated: bool = False,
    hold: HoldOnQuestion = "all",
) -> PlanChangeReport:
    recorded = tuple(_recorded_event(event) for event in events)
    return PlanChangeReport(
        recorded_as="repeated" if repeated else "recorded" if recorded else "nothing",
        events=recorded,
        total_tasks=state.total_tasks,
        completed=_completed_count(state),
        in_progress=len(state.in_progress_tasks),
        pending_audit=len(state.pending_audit),
        available=len(state.available_tasks),
        active_actor_count=state.active_actor_count,
        plan_complete=state.plan_complete,
        held_up_by=held_up_by(state, hold),
        outbox=len(state.outbox),
        outbox_oldest_at=state.outbox[0].at if state.outbox else None,
    )


def _recorded_event(event: CoordinatorEvent) -> RecordedEvent:
    names = {name: getattr(event, name, None) for name in _NAMES}
    return RecordedEvent(type=event.type, id=event.id, **names)


def _completed_count(state: Coordinator) -> int:
    # Completed tasks that only an earlier plan had do not count.
    done = set(state.completed_tasks)
    return sum(task.id in done for task in state.tasks)


def held_up_by(state: Coordinator, hold: HoldOnQuestion) -> str | None:
    """Return why no task is given out, as a stable word."""
    try:
        refuse_while_held_up(state, hold)
    except NotAllowed as error:
        return error.refusal.code
    return None


def change_text(report: PlanChangeReport, state: Coordinator) -> str:
    names = task_names(state)
    lines = [_line(event, names) for event in report.events]
    if report.recorded_as == "repeated":
        lines = ["recorded before under this id; nothing changed"]
    elif not lines:
        lines = ["nothing to do"]
    done = f"{report.completed} of {plural(report.total_tasks, 'task')} complete"
    more = f"{report.in_progress} in progress, {report.pending_audit} to audit, {report.available} available"
    lines.append(
        f"{done}; {more}" + (f"; held up: {report.held_up_by}" if report.held_up_by else "")
    )
    return "\n".join(map(escape, lines))


def describe_event(state: Coordinator, event: CoordinatorEvent) -> str:
    return escape(_line(_recorded_event(event), task_names(state)))


def task_names(state: Coordinator) -> dict[str, str]:
    return {task.id: task.name for task in state.tasks}


def _line(event: RecordedEvent, names: Mapping[str, str]) -> str:
    named = {name: value for name in _NAMES if (value := getattr(event, name))}
    if event.task_id:
        named["task_id"] = names.get(event.task_id, event.task_id)
    words = [f"{name.removesuffix('_id')} {value}" for name, value in named.items()]
    return "  ".join([event.type, *words])


def next_text(report: PlanNextReport) -> str:
    if report.task is None:
        if report.kept_apart:
            waits = ", ".join(
                f"{name} waits for {other}" for name, other in report.kept_apart.items()
            )
            return escape(f"every available task changes files of one under way: {waits}")
        return "the plan is complete" if report.plan_complete else "no task is available"
    held = f" (held up: {report.held_up_by})" if report.held_up_by else ""
    return escape(f"{report.task.name}: {report.task.title}{held}")


def outbox_text(report: PlanOutboxReport, state: Coordinator) -> str:
    names = task_names(state)
    lines = [
        f"{item.item_id}  {item.kind}  {item.agent_id}"
        + (f"  task {names.get(item.task_id, item.task_id)}" if item.task_id else "")
        + (f": {text.splitlines()[0]}" if (text := _headline(item, state)).strip() else "")
        for item in report.items
    ]
    return "\n".join(map(escape, lines)) or "the outbox is empty"


def _headline(item: Parcel, state: Coordinator) -> str:
    # The text of a start is a whole prompt; people want to know what it is about.
    if item.kind != "start":
        return item.text
    run = state.active_supporting_agents.get(item.agent_id)
    if run is not None:
        return run.request_summary
    task = state.task(item.task_id) if item.task_id is not None else None
    return (task.title if task is not None else state.infrastructure_issue) or item.text


def state_text(state: Coordinator, now: datetime) -> str:
    """Return the state as text: one line on the plan, then work, queues, and open questions.

    Tasks have the names that the plan gives them.
    """
    names = task_names(state)
    done = f"{_completed_count(state)} of {plural(state.total_tasks, 'task')} complete"
    whole = "; the plan is complete" if state.plan_complete else ""
    lines = [
        f"{state.plan_file}: {done}{whole}",
        *_work_lines(state, names),
        *_waiting_lines(state, names),
    ]
    lines += [
        f"{question.question_id} asks: {question.question}"
        for question in state.pending_divine_questions
    ]
    lines += [
        f"{names.get(task_id, task_id)} waits for {names.get(other.task_id, other.task_id)}: both touch {other.path}"
        for task_id, other in tasks_apart(state).items()
    ]
    if state.infrastructure_blocked:
        lines.append(f"the infrastructure is blocked: {state.infrastructure_issue}")
    if state.outbox:
        oldest = _age(now - state.outbox[0].at)
        lines.append(f"{plural(len(state.outbox), 'item')} in the outbox, the oldest for {oldest}")
    return "\n".join(map(escape, lines))


def _age(waited: timedelta) -> str:
    # A clock that was set back gives no negative age.
    minutes = max(0, int(waited.total_seconds()) // 60)
    days, hours = divmod(minutes // 60, 24)
    if days:
        return f"{plural(days, 'day')} {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


def _work_lines(state: Coordinator, names: Mapping[str, str]) -> Iterator[str]:
    for work in state.in_progress_tasks:
        far = f": {work.last_checkpoint}" if work.last_checkpoint else ""
        failed = state.failed_audits.get(work.task_id, 0)
        again = f"  ({plural(failed, 'failed audit')})" if failed else ""
        name = names.get(work.task_id, work.task_id)
        yield f"  {name}  {_WORK_WORDS[work.status]}  {work.developer_id}{again}{far}"
    for agent_id, agent in state.active_agents.items():
        if agent.type != "developer":
            what = names.get(agent.task_id, agent.task_id) if agent.task_id else "infrastructure"
            yield f"  {what}  {_AGENT_WORDS[agent.type]}  {agent_id}"
    for run_id, run in state.active_supporting_agents.items():
        yield f"  {run.agent_id}  helps {run.delegating_agent}  {run_id}: {run.request_summary}"


def _waiting_lines(state: Coordinator, names: Mapping[str, str]) -> Iterator[str]:
    if state.pending_delegation_requests:
        yield f"{plural(len(state.pending_delegation_requests), 'request')} for help in the queue"
    if state.next_available_tasks:
        yield f"next: {', '.join(names.get(task_id, task_id) for task_id in state.next_available_tasks)}"
    for task_id, waits in list(state.blocked_tasks.items())[:_SHOWN]:
        awaited = ", ".join(names.get(awaited_id, awaited_id) for awaited_id in waits[:5])
        yield f"blocked: {names.get(task_id, task_id)} waits for {awaited}"
    if len(state.blocked_tasks) > _SHOWN:
        yield f"blocked: {len(state.blocked_tasks) - _SHOWN} more"
    for task_id, analyst in state.pending_expansions.items():
        yield f"to expand: {names.get(task_id, task_id)} ({analyst})"


SignalOutcome = Literal["recorded", "repeated", "refused", "for_a_person"]


class IngestedSignal(Frozen):
    """One signal, and what came of it."""

    kind: SignalKind
    line: Count
    task: Line
    """As the agent spelled it."""
    outcome: SignalOutcome
    detail: Line
    events: tuple[Line, ...]


class PlanIngestReport(Report):
    """What an agent's output told the coordinator."""

    schema_: Literal["guard/plan-ingest/1"] = Field("guard/plan-ingest/1", alias="schema")
    agent_id: Id
    signals: tuple[IngestedSignal, ...]
    refused: Count


def ingest_text(report: PlanIngestReport) -> str:
    if not report.signals:
        return f"{report.agent_id} gave no signal"
    lines = [f"{report.agent_id} gave {plural(len(report.signals), 'signal')}"]
    lines += [
        f"line {signal.line}: {signal.kind}{escape(f' of {signal.task}' if signal.task else '')}: "
        f"{signal.outcome.replace('_', ' ')}{escape(f', {signal.detail}' if signal.detail else '')}"
        for signal in report.signals
    ]
    return "\n".join(lines)
