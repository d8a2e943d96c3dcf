"""Decide when a run of the plan ends, and what it reports: every task, what landed, and what a person is to do."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Line, Oid, Report, Text
from guard.core.base.text import escape, fit_line, plural
from guard.core.coordinator.agent_events import AgentCrashed, AgentTimeout
from guard.core.coordinator.report import held_up_by
from guard.core.coordinator.settings import HoldOnQuestion
from guard.core.coordinator.state import Coordinator, task_statuses
from guard.core.coordinator.task_events import (
    CoordinatorEvent,
    InfrastructureBlocked,
    InfrastructureRestored,
)
from guard.core.coordinator.tick import not_landed
from guard.core.cost.budget import BudgetEnd, BudgetReport
from guard.core.cost.text import usage_line
from guard.core.cost.usage import Dollars, Usage
from guard.core.iteration.facts import Seconds
from guard.core.landing.report import TaskLanding

PlanRunEnd = Literal[
    "complete",
    "person_needed",
    "max_time",
    BudgetEnd,
    "max_cost_per_task",
    "breaker_open",
    "stopped",
    "fault",
]
RunPlace = Literal[
    "landed", "complete", "in_progress", "pending_audit", "available", "blocked", "expansion"
]
EXIT_OF_RUN: Mapping[PlanRunEnd, int] = {
    "complete": 0,
    "person_needed": 14,
    "max_time": 12,
    "max_cost": 12,
    "max_tokens": 12,
    "max_cost_without_progress": 12,
    "max_cost_per_task": 12,
    "breaker_open": 20,
    "stopped": 130,
    "fault": 6,
}
_MOST_NEEDS = 100
_PLACES: Mapping[str, RunPlace] = {
    "completed": "complete",
    "in_progress": "in_progress",
    "pending_audit": "pending_audit",
    "available": "available",
    "blocked": "blocked",
    "pending_expansion": "expansion",
}


class PlanNeed(Frozen):
    """Something that only a person can do."""

    kind: Literal["question", "landing", "stuck"]
    task_id: Id | None
    text: Text
    command: Line | None
    """What to type."""


class PlanRunTask(Frozen):
    """Where one task stands."""

    task_id: Id
    name: Line
    title: Line
    place: RunPlace
    sessions: Count
    """How many agents and audits this run has started for it."""
    commit: Oid | None
    """The commit by which it landed."""
    cost_usd: Dollars | None
    """What its agents have cost since the plan was begun; null where their CLIs do not tell."""


class PlanRunReport(Report):
    """How a run of the plan ended."""

    schema_: Literal["guard/plan-run/1"] = Field("guard/plan-run/1", alias="schema")
    ended: PlanRunEnd
    exit_code: int
    detail: Text
    target: Line
    """The branch by its full name."""
    head: Oid | None
    """Its tip."""
    total_tasks: Count
    landed: Count
    sessions: Count
    """How many agents and audits were started."""
    tasks: tuple[PlanRunTask, ...]
    needs_you: tuple[PlanNeed, ...]
    still_working: tuple[Line, ...]
    """Agents that were left to work."""
    usage: Usage
    """What the sessions of this run used."""
    budget: BudgetReport | None
    """The user's limits, and what was spent of them; null without any."""
    elapsed_seconds: Seconds


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the state of the plan does not tell of the run."""

    is_busy: bool
    """Whether a process works, or an agent goes on after a rest."""
    waiting: Sequence[TaskLanding] = ()
    """Tasks that cannot land without a person."""
    limit: Literal["max_time", BudgetEnd] | None = None
    """Which limit of the user's is reached."""
    breaker: str | None = None
    """Why the breaker of the plan is open."""
    others: Sequence[str] = ()
    """Agents of the plan that another program runs."""
    hold: HoldOnQuestion = "all"
    """What an open question holds back."""
    used_up: Collection[str] = ()
    """The tasks that have cost as much as the user allows for one."""


def is_done(state: Coordinator) -> bool:
    """Tell whether every task is complete and all its work has landed."""
    return all(task.id in state.completed_tasks for task in state.tasks) and not not_landed(state)


def find_end(state: Coordinator, facts: RunFacts) -> PlanRunEnd | None:
    """Return why the run ends now; None while there is something to do or to wait for."""
    if facts.is_busy:
        return None
    if is_done(state):
        return "complete"
    if facts.limit is not None:
        return facts.limit
    if facts.breaker is not None:
        return "breaker_open"
    if facts.others:
        return None
    is_asked = state.pending_divine_questions or facts.waiting
    if not is_asked and any(name not in state.completed_tasks for name in facts.used_up):
        return "max_cost_per_task"
    return "person_needed"


def needs_of(state: Coordinator, facts: RunFacts, end: PlanRunEnd) -> tuple[PlanNeed, ...]:
    """Return what only a person can do, the questions first."""
    needs = [*_questions(state), *_landings(state, facts.waiting)]
    if not needs and end == "person_needed":
        needs = [
            PlanNeed(
                kind="stuck",
                task_id=None,
                text=_stuck(state, facts.hold),
                command="guard plan show",
            )
        ]
    return tuple(needs[:_MOST_NEEDS])


def _questions(state: Coordinator) -> Iterator[PlanNeed]:
    for question in state.pending_divine_questions:
        if question.response is None:
            about = f"task {state.task_name(question.task_id)}: " if question.task_id else ""
            yield PlanNeed(
                kind="question",
                task_id=question.task_id,
                text=f"{about}{question.question}",
                command=f"guard plan answer {question.question_id} TEXT",
            )


def _landings(state: Coordinator, waiting: Sequence[TaskLanding]) -> Iterator[PlanNeed]:
    for landing in waiting:
        text = f"task {state.task_name(landing.task_id)} cannot land: {landing.detail}"
        command = f"guard plan land {state.quoted_task_name(landing.task_id)}"
        yield PlanNeed(
            kind="landing", task_id=landing.task_id, text=text, command=fit_line(command)
        )


def _stuck(state: Coordinator, hold: HoldOnQuestion) -> str:
    held = held_up_by(state, hold)
    if held:
        return f"no agent can be sent: {held}"
    names = ", ".join(
        state.task_name(task.id) for task in state.tasks if task.id not in state.completed_tasks
    )
    return f"no agent can be sent to what is left: {names}"[:2000]


def run_tasks(
    state: Coordinator, sessions: Mapping[str, int], costs: Mapping[str, float]
) -> Iterator[PlanRunTask]:
    """Return each task of the plan, in the plan's order, with the number of its sessions and what they cost."""
    places = task_statuses(state)
    for task in state.tasks:
        landed = state.landed_tasks.get(task.id)
        is_landed = landed is not None and places[task.id] == "completed"
        yield PlanRunTask(
            task_id=task.id,
            name=task.name,
            title=task.title,
            place="landed" if is_landed else _PLACES[places[task.id]],
            sessions=sessions.get(task.id, 0),
            commit=landed.commit_sha if landed is not None else None,
            cost_usd=round(costs[task.id], 12) if task.id in costs else None,
        )


def run_text(report: PlanRunReport) -> str:
    """Return the report for people: how it ended, what is there, and what they are to do."""
    branch = escape(report.target.removeprefix("refs/heads/"))
    where = f" on {branch}" + (f", now at {report.head[:10]}" if report.head else "")
    lines = [
        f"{_HEAD_LINES[report.ended]} {report.landed} of {plural(report.total_tasks, 'task')} landed{where}."
    ]
    if report.detail:
        lines.append(escape(report.detail))
    lines += [
        f"  {escape(task.name)} is {task.place.replace('_', ' ')}"
        for task in report.tasks
        if task.place not in ("landed", "blocked", "available")
    ]
    for need in report.needs_you:
        lines.append(f"needs you: {escape(fit_line(' '.join(need.text.split()), 300))}")
        if need.command:
            lines.append(f"    {escape(need.command)}")
    used = usage_line(report.usage)
    lines += [f"used: {used}"] if used is not None else []
    lines += [f"budget: {report.budget.detail}"] if report.budget is not None else []
    if EXIT_OF_RUN[report.ended] in (6, 12, 130):
        lines.append("Nothing is lost: `guard plan run` goes on from here.")
    if report.still_working:
        lines.append(
            f"still at work: {escape(', '.join(report.still_working))}; the next `guard plan run` finds them"
        )
    return "\n".join(lines)


_HEAD_LINES: Mapping[PlanRunEnd, str] = {
    "complete": "The plan is complete:",
    "person_needed": "A person is needed:",
    "max_time": "The time is up:",
    "max_cost": "The budget is used up:",
    "max_tokens": "The budget is used up:",
    "max_cost_without_progress": "The budget for no new work is used up:",
    "max_cost_per_task": "The budget of a task is used up:",
    "breaker_open": "The breaker of the plan is open:",
    "stopped": "Stopped:",
    "fault": "Guard could not go on:",
}


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line of the table of a run."""

    task_id: str
    task: str
    """Its name in the plan."""
    title: str
    standing: str
    """What becomes of the task now, in words."""
    who: str
    since: datetime | None
    rank: int
    """The most urgent have the lowest."""


_AT_WORK = {
    "setup": "its work tree is set up",
    "developer": "at work",
    "auditor": "being audited",
    "audit": "being audited",
    "proof": "being proven",
    "helper": "a helper is at work",
}


def run_rows(
    state: Coordinator, at_work: Mapping[str, tuple[str, str]], waiting: Collection[str]
) -> list[RunRow]:
    """Return a line for each task, what waits for a person first.

    `at_work` has the kind and the name of the agent in whose work tree something runs, by task; `waiting` are the tasks
    that cannot land without a person.
    """
    places, asked = task_statuses(state), _questions_by_task(state)
    rows = []
    for task in state.tasks:
        work, landed = state.work(task.id), state.landed_tasks.get(task.id)
        kind, who = at_work.get(task.id, ("", work.developer_id if work is not None else ""))
        since = work.dispatched_at if work is not None else None
        if task.id in asked:
            standing, rank = f"waits for you: {asked[task.id]}", 0
        elif task.id in waiting:
            standing, rank, since = "waits for you: cannot land", 0, None
        elif kind:
            standing, rank = _AT_WORK[kind], 1
        elif landed is not None and places[task.id] == "completed":
            standing, rank, since = f"landed as {landed.commit_sha[:10]}", 6, landed.landed_at
        elif places[task.id] == "blocked":
            names = (state.task_name(name) for name in state.blocked_tasks[task.id])
            standing, rank = f"after {', '.join(names)}", 5
        else:
            standing, rank = _STANDINGS[places[task.id]]
        rows.append(RunRow(task.id, task.name, task.title, standing, who, since, rank))
    return sorted(rows, key=lambda row: row.rank)


_STANDINGS: Mapping[str, tuple[str, int]] = {
    "pending_audit": ("waits for its audit", 2),
    "in_progress": ("goes on soon", 3),
    "completed": ("passed its audit", 3),
    "available": ("can begin", 4),
    "pending_expansion": ("is being specified", 4),
}


def _questions_by_task(state: Coordinator) -> dict[str | None, str]:
    open_ones = (one for one in state.pending_divine_questions if one.response is None)
    return {one.task_id: one.question_id for one in open_ones}


def event_words(state: Coordinator, event: CoordinatorEvent) -> str | None:
    """Return what a person wants to know of an event; None for the steps of an ordinary course."""
    match event:
        case AgentCrashed() | AgentTimeout():
            task = f"task {state.task_name(event.task_id)}: " if event.task_id else ""
            why = event.reason if isinstance(event, AgentCrashed) else "its time is up"
            return f"{task}{event.agent_id} is lost: {why}"
        case InfrastructureBlocked():
            return f"the infrastructure is blocked: {event.issue}"
        case InfrastructureRestored():
            return "the infrastructure is healthy again"
        case _:
            return None
