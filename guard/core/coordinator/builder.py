"""Hold the coordinator's state while events are folded: mutable, so that a step costs only what it changes."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import JsonValue

from guard.core.base.fast_models import copy_model, entry_from, make_model, update_model
from guard.core.coordinator import entries
from guard.core.coordinator.event_base import AgentType, Dispatched, PlanEvent, TimedEvent
from guard.core.failures.pattern import FailurePattern
from guard.core.log.view import ViewDocument
from guard.core.plan.model import PlanTask
from guard.core.plan.select import dependents_by_task, selection_order

NEXT_TASKS = 10
MOST_RECENT_EVENTS = 200
MOST_PARCELS = 1000
MOST_ANSWERS = 200
_START = datetime(1970, 1, 1, tzinfo=UTC)


_TIME = ("timeout_at", "timeout_boot_seconds", "timeout_boot_id")


def time_of(event: TimedEvent) -> dict[str, Any]:
    return {name: getattr(event, name) for name in _TIME}


@dataclass(slots=True)
class Board:
    """The state under construction; lists of the document are ordered maps here."""

    saved_at: datetime = _START
    save_reason: str = "event"
    tokens_remaining_percent: int | None = None
    compaction_count: int = 0
    session_resume_count: int = 0
    plan_file: str | None = None
    plan_head: str | None = None
    infrastructure_blocked: bool = False
    infrastructure_issue: str | None = None
    active_remediation: str | None = None
    remediation_attempt_count: int = 0
    last_usage_check: datetime | None = None
    session_utilisation: int | None = None
    session_remaining: int | None = None
    session_resets_at: datetime | None = None
    plan_complete: bool = False
    validation_complete: bool = False
    task_quality_assessed: bool = False
    rollback_in_progress: entries.Rollback | None = None
    landing_target: str | None = None
    landing_in_progress: entries.Landing | None = None
    infrastructure_setbacks: int = 0
    health_audit_due: bool = False
    outbox_count: int = 0
    names_given: int = 0
    events_folded: int = 0
    supporting_agents: tuple[entries.KnownSupport, ...] = ()
    failed_audits: dict[str, int] = field(default_factory=dict)
    failed_audits_in_a_row: dict[str, int] = field(default_factory=dict)
    active_supporting_agents: dict[str, entries.SupportRun] = field(default_factory=dict)
    supporting_agent_stats: dict[str, entries.SupportStats] = field(default_factory=dict)
    pending_expansions: dict[str, str] = field(default_factory=dict)
    expanded_tasks: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    task_commits: dict[str, entries.TaskCommit] = field(default_factory=dict)
    reverted_tasks: dict[str, entries.TaskRevert] = field(default_factory=dict)
    landed_tasks: dict[str, entries.LandedTask] = field(default_factory=dict)
    landing_setbacks: dict[str, entries.LandingSetback] = field(default_factory=dict)
    failure_patterns: dict[str, FailurePattern] = field(default_factory=dict)
    active_agents: dict[str, entries.ActiveAgent] = field(default_factory=dict)
    rework_reasons: dict[str, str] = field(default_factory=dict)
    setbacks: dict[str, entries.Setback] = field(default_factory=dict)
    completed_tasks: dict[str, None] = field(default_factory=dict)
    adopted_tasks: dict[str, None] = field(default_factory=dict)
    pending_audit: dict[str, None] = field(default_factory=dict)
    recent_events: OrderedDict[str, None] = field(default_factory=OrderedDict)
    in_progress_tasks: dict[str, entries.TaskInProgress] = field(default_factory=dict)
    pending_divine_questions: dict[str, entries.OpenQuestion] = field(default_factory=dict)
    answered_questions: OrderedDict[str, entries.AnsweredQuestion] = field(
        default_factory=OrderedDict
    )
    pending_delegation_requests: dict[str, entries.Delegation] = field(default_factory=dict)
    outbox: OrderedDict[str, entries.Parcel] = field(default_factory=OrderedDict)
    tasks: dict[str, PlanTask] = field(default_factory=dict)
    dependents: dict[str, list[str]] = field(default_factory=dict)
    missing: dict[str, set[str]] = field(default_factory=dict)
    """The dependencies of each task that are not complete."""
    rank: dict[str, int] | None = None
    """The place of each task in the order of selection; None until it is first needed."""
    letters: dict[str, set[str]] = field(default_factory=dict)
    """The items in the outbox, by the agent that they are for."""
    own: set[tuple[str, str]] = field(default_factory=set)
    """Entries made since the last document: no document shares them, so they can be changed in place."""

    @staticmethod
    def of(document: ViewDocument, tasks: Iterable[PlanTask]) -> "Board":
        # This module knows only the names of the document's fields, not its class.
        board = Board(**{name: getattr(document, name) for name in _PLAIN})
        for name in _MAPS:
            getattr(board, name).update(getattr(document, name))
        for name in _LISTS:
            getattr(board, name).update(dict.fromkeys(getattr(document, name)))
        for name, key in _KEYED.items():
            listed = getattr(document, name)
            getattr(board, name).update({getattr(entry, key): entry for entry in listed})
        board.link(tasks)
        for parcel in board.outbox.values():
            board.letters.setdefault(parcel.agent_id, set()).add(parcel.item_id)
        return board

    def link(self, tasks: Iterable[PlanTask]) -> None:
        self.tasks = {task.id: task for task in tasks}
        self.dependents, self.rank = dependents_by_task(self.tasks.values()), None
        self.missing = {
            task.id: {
                dependency for dependency in task.depends if dependency not in self.completed_tasks
            }
            for task in self.tasks.values()
        }

    def remember(self, event: PlanEvent) -> bool:
        """Remember the event, and tell whether it is new; an event that was folded before changes nothing."""
        if event.id in self.recent_events:
            return False
        self.recent_events[event.id] = None
        if len(self.recent_events) > MOST_RECENT_EVENTS:
            self.recent_events.popitem(last=False)
        self.events_folded += 1
        self.saved_at, self.save_reason = event.at, "event"
        return True

    def complete(self, task_id: str) -> None:
        self.completed_tasks[task_id] = None
        for dependent in self.dependents.get(task_id, ()):
            self.missing[dependent].discard(task_id)

    def reopen(self, task_id: str) -> None:
        self.completed_tasks.pop(task_id, None)
        self.adopted_tasks.pop(task_id, None)
        for dependent in self.dependents.get(task_id, ()):
            self.missing[dependent].add(task_id)
        self.plan_complete = False

    def title(self, task_id: str | None) -> str:
        task = self.tasks.get(task_id) if task_id is not None else None
        return task.title if task is not None else ""

    def enlist(self, event: Dispatched, kind: AgentType, task_id: str | None, text: str) -> None:
        """Put the agent to work; an agent that must still be started also gets a parcel in the outbox."""
        self.names_given += 1
        registered_in = getattr(event, "registered_in", None)
        self.begin_work(event, event.agent_id, kind, task_id, registered_in)
        if event.to_start:
            self.send("start", event.agent_id, task_id, text, event.at)

    def begin_work(
        self,
        event: TimedEvent,
        agent_id: str,
        kind: AgentType,
        task_id: str | None,
        registered_in: str | None = None,
    ) -> None:
        agent = {
            "dispatched_at": event.at,
            **time_of(event),
            "incarnation": event.incarnation,
            "started_at": None,
            "has_ended": False,
            "registered_in": registered_in,
            "type": kind,
            "task_id": task_id,
            "last_checkpoint": None,
            "checkpoint_count": 0,
            "status": "working",
            "extensions": 0,
            "checked": False,
        }
        self.withdraw(agent_id)
        self.active_agents[agent_id] = make_model(entries.ActiveAgent, agent)
        self.own.add(("active_agents", agent_id))

    def dismiss(self, agent_id: str) -> entries.ActiveAgent | None:
        """End the agent's work, withdraw what the outbox has for it, and return what it was."""
        agent = self.active_agents.pop(agent_id, None)
        if agent is not None:
            self.withdraw(agent_id)
        return agent

    def abort(
        self,
        agent_id: str,
        agent: entries.Timed | None,
        task_id: str | None,
        text: str,
        at: datetime,
    ) -> None:
        """Withdraw what the outbox has for the agent, and have it stopped, unless it was never started."""
        is_started = agent is None or agent.started_at is not None
        is_started = is_started or self.item_for(agent_id, "start") is None
        self.withdraw(agent_id)
        if is_started:
            self.send("abort", agent_id, task_id, text, at, agent.incarnation if agent else None)

    def item_for(self, agent_id: str, kind: entries.ParcelKind) -> str | None:
        items = self.letters.get(agent_id, ())
        return next((item for item in items if self.outbox[item].kind == kind), None)

    def withdraw(self, agent_id: str) -> None:
        """Take what is to be delivered to the agent out of the outbox, as its cause is gone."""
        for item in tuple(self.letters.get(agent_id, ())):
            self.remove(item)

    def remove(self, item_id: str) -> None:
        parcel = self.outbox.pop(item_id, None)
        if parcel is not None:
            items = self.letters[parcel.agent_id]
            items.discard(item_id)
            if not items:
                del self.letters[parcel.agent_id]

    def life_of(self, agent_id: str) -> int | None:
        agent = self.active_agents.get(agent_id) or self.active_supporting_agents.get(agent_id)
        return agent.incarnation if agent is not None else None

    def send(
        self,
        kind: entries.ParcelKind,
        agent_id: str,
        task_id: str | None,
        text: str,
        at: datetime,
        incarnation: int | None = None,
    ) -> None:
        # If no caller takes parcels, the oldest are dropped.
        self.outbox_count += 1
        item_id = f"item-{self.outbox_count}"
        parcel = {
            "item_id": item_id,
            "kind": kind,
            "agent_id": agent_id,
            "incarnation": incarnation or self.life_of(agent_id),
            "task_id": task_id,
            "text": text,
            "at": at,
        }
        self.outbox[item_id] = make_model(entries.Parcel, parcel)
        self.letters.setdefault(agent_id, set()).add(item_id)
        if len(self.outbox) > MOST_PARCELS:
            self.remove(next(iter(self.outbox)))

    def keep_answer(
        self, question: entries.OpenQuestion, response: str, answered_at: datetime
    ) -> None:
        self.answered_questions[question.question_id] = entry_from(
            entries.AnsweredQuestion, question, response=response, answered_at=answered_at
        )
        if len(self.answered_questions) > MOST_ANSWERS:
            self.answered_questions.popitem(last=False)

    def drop_answers(self, task_id: str | None) -> None:
        """Drop the answers about a task; without one, those about the infrastructure."""
        done = [
            question_id
            for question_id, answer in self.answered_questions.items()
            if answer.task_id == task_id and (task_id or answer.about == "remediation")
        ]
        for question_id in done:
            del self.answered_questions[question_id]

    def change(self, kind: str, key: str, **news: Any) -> None:
        known = getattr(self, kind)
        if key not in known:
            return
        if (kind, key) in self.own:
            update_model(known[key], news)
        else:
            known[key] = copy_model(known[key], news)
            self.own.add((kind, key))

    def contents(self) -> dict[str, Any]:
        self.own.clear()
        free, blocked = [], {}
        for task_id, missing in self.missing.items():
            if self._is_elsewhere(task_id):
                continue
            if missing:
                blocked[task_id] = tuple(
                    dependency
                    for dependency in self.tasks[task_id].depends
                    if dependency in missing
                )
            else:
                free.append(task_id)
        available = (
            tuple(sorted(free, key=self._ranks().__getitem__)) if len(free) > 1 else tuple(free)
        )
        actors = {kind: dict(self._agents_of_type(kind)) for kind in ("developer", "auditor")}
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            **{name: dict(getattr(self, name)) for name in _MAPS},
            **{name: tuple(getattr(self, name)) for name in _LISTS},
            **{name: tuple(getattr(self, name).values()) for name in _KEYED},
            "tasks": tuple(self.tasks.values()),
            "total_tasks": len(self.tasks),
            "blocked_tasks": blocked,
            "available_tasks": available,
            "next_available_tasks": available[:NEXT_TASKS],
            "active_developers": actors["developer"],
            "active_auditors": actors["auditor"],
            "active_actor_count": sum(map(len, actors.values())),
            "active_business_analysts": dict(self._agents_of_type("business_analyst")),
        }

    def _is_elsewhere(self, task_id: str) -> bool:
        return (
            task_id in self.completed_tasks
            or task_id in self.in_progress_tasks
            or task_id in self.pending_expansions
        )

    def _ranks(self) -> dict[str, int]:
        if self.rank is None:
            order = selection_order(tuple(self.tasks.values()), self.tasks.keys())
            self.rank = {task_id: number for number, task_id in enumerate(order)}
        return self.rank

    def _agents_of_type(self, kind: str) -> Iterator[tuple[str, str | None]]:
        for agent_id, agent in self.active_agents.items():
            if agent.type == kind:
                yield agent_id, agent.task_id


_LISTS = ("completed_tasks", "adopted_tasks", "pending_audit", "recent_events")
_KEYED = {
    "in_progress_tasks": "task_id",
    "pending_divine_questions": "question_id",
    "answered_questions": "question_id",
    "pending_delegation_requests": "request_id",
    "outbox": "item_id",
}
_INNER = ("tasks", "dependents", "missing", "rank", "letters", "own")
_AS_IN_THE_DOCUMENT = [
    board_field
    for board_field in fields(Board)
    if board_field.name not in (*_LISTS, *_KEYED, *_INNER)
]
_MAPS = tuple(
    board_field.name for board_field in _AS_IN_THE_DOCUMENT if board_field.default_factory is dict
)
_PLAIN = tuple(
    board_field.name for board_field in _AS_IN_THE_DOCUMENT if board_field.name not in _MAPS
)

E = TypeVar("E", bound=PlanEvent)
Changes = dict[type[PlanEvent], Callable[[Board, Any], None]]


def on(
    event: type[E], take: Callable[[Board, E], None]
) -> tuple[type[PlanEvent], Callable[[Board, Any], None]]:
    # A table and not a `match`, because a long log makes a hundred thousand lookups.
    return event, take
