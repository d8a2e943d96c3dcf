"""The coordinator's state: the document `state.json` and its fold."""

from shlex import quote
from typing import Any, Literal, get_args

from pydantic import Field, JsonValue

from guard.core.base.fields import Count, Id, Instant, Line, Oid, Percent, Text
from guard.core.coordinator import entries, fold_agents, fold_landings, fold_tasks
from guard.core.coordinator.builder import Board
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.failures.pattern import FailurePattern
from guard.core.log.view import Fold, ViewDocument, ViewKind
from guard.core.plan.model import PlanTask

SaveReason = Literal["compaction", "session_pause", "infrastructure_blocked", "event"]


class Coordinator(ViewDocument):
    """The plan and all that is under way."""

    schema_: Literal["guard/coordinator/3"] = Field("guard/coordinator/3", alias="schema")
    saved_at: Instant
    save_reason: SaveReason
    tokens_remaining_percent: Percent | None
    compaction_count: Count
    session_resume_count: Count
    plan_file: Line | None
    plan_head: Oid | None
    """The commit of HEAD when the plan was loaded first: a repository without it is another one."""
    total_tasks: Count
    completed_tasks: tuple[Id, ...]
    """Those that passed their audit, in the order in which they did."""
    adopted_tasks: tuple[Id, ...]
    """Those of them that a person took over as done, without an audit."""
    in_progress_tasks: tuple[entries.TaskInProgress, ...]
    pending_audit: tuple[Id, ...]
    """Also in progress: the one kind of task that stands in two places."""
    blocked_tasks: dict[Id, tuple[Id, ...]]
    failed_audits: dict[Id, Count]
    failed_audits_in_a_row: dict[Id, Count]
    """The same since a task last passed, or since a person last answered a question about its audits."""
    available_tasks: tuple[Id, ...]
    """In the order in which they are to be taken."""
    next_available_tasks: tuple[Id, ...]
    """The first of them."""
    infrastructure_blocked: bool
    infrastructure_issue: Text | None
    active_remediation: Id | None
    remediation_attempt_count: Count
    last_usage_check: Instant | None
    session_utilisation: Percent | None
    session_remaining: Percent | None
    session_resets_at: Instant | None
    pending_divine_questions: tuple[entries.OpenQuestion, ...]
    answered_questions: tuple[entries.AnsweredQuestion, ...]
    """Answers that agents may still need; those about a task leave with its completion."""
    supporting_agents: tuple[entries.KnownSupport, ...]
    active_supporting_agents: dict[Id, entries.SupportRun]
    pending_delegation_requests: tuple[entries.Delegation, ...]
    supporting_agent_stats: dict[Id, entries.SupportStats]
    active_developers: dict[Id, Id]
    active_auditors: dict[Id, Id]
    active_actor_count: Count
    plan_complete: bool
    validation_complete: bool
    task_quality_assessed: bool
    pending_expansions: dict[Id, Line]
    """The analyst of each task, or what it waits for: `needs-expansion`, `awaiting-clarification`."""
    active_business_analysts: dict[Id, Id]
    expanded_tasks: dict[Id, dict[str, JsonValue]]
    task_commits: dict[Id, entries.TaskCommit]
    reverted_tasks: dict[Id, entries.TaskRevert]
    """Tasks that were rolled back and have not landed since."""
    landing_target: Line | None
    """The branch that tasks land on, by its full name."""
    landing_in_progress: entries.Landing | None
    landed_tasks: dict[Id, entries.LandedTask]
    landing_setbacks: dict[Id, entries.LandingSetback]
    """Tasks that passed their audit and could not land."""
    failure_patterns: dict[Id, FailurePattern]
    active_agents: dict[Id, entries.ActiveAgent]
    rollback_in_progress: entries.Rollback | None
    rework_reasons: dict[Id, Text]
    """Why each task came back from its last audit or landing, until it is complete."""
    setbacks: dict[Id, entries.Setback]
    """Tasks whose agents timed out or crashed."""
    infrastructure_setbacks: Count
    """The same for agents that work on the infrastructure."""
    health_audit_due: bool
    """Whether a remediation is done and its result has not been audited yet."""
    outbox: tuple[entries.Parcel, ...]
    outbox_count: Count
    """How much ever stood there."""
    names_given: Count
    events_folded: Count
    recent_events: tuple[Id, ...]
    """Those that were folded last: one that comes again changes nothing."""
    tasks: tuple[PlanTask, ...]

    def task(self, task_id: str) -> PlanTask | None:
        return next((task for task in self.tasks if task.id == task_id), None)

    def work(self, task_id: str) -> entries.TaskInProgress | None:
        return next((work for work in self.in_progress_tasks if work.task_id == task_id), None)

    def places(self) -> dict[str, entries.Place]:
        places: dict[str, entries.Place] = {task.id: "available" for task in self.tasks}
        places |= {task_id: "completed" for task_id in self.completed_tasks if task_id in places}
        places |= dict.fromkeys(self.blocked_tasks, "blocked")
        places |= dict.fromkeys(self.pending_expansions, "pending_expansion")
        return places | {work.task_id: "in_progress" for work in self.in_progress_tasks}

    def place(self, task_id: str) -> entries.Place | None:
        return self.places().get(task_id)

    def question(self, question_id: str) -> entries.OpenQuestion | None:
        questions = self.pending_divine_questions
        return next(
            (question for question in questions if question.question_id == question_id), None
        )

    def task_name(self, task_id: str) -> str:
        """Return the task's name in the plan; its id if the plan no longer has it."""
        task = self.task(task_id)
        return task.name if task is not None else task_id

    def quoted_task_name(self, task_id: str) -> str:
        """Return the task as a word for a shell command; a name that looks like an option is replaced by the id."""
        name = self.task_name(task_id)
        return task_id if name.startswith("-") else quote(name)

    def new_name(self, stem: str, offset: int = 0) -> str:
        """Return a numbered name that no agent has; `offset` counts the names given in the same decision."""
        number = self.names_given + 1 + offset
        while f"{stem}-{number}" in self.active_agents:
            number += 1
        return f"{stem}-{number}"


class CoordinatorFold(Fold[Coordinator]):
    document_class = Coordinator

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._board = Board()

    def restore(self, document: Coordinator) -> None:
        self.reached = document.position()
        self._board = Board.of(document, document.tasks)

    def apply(self, event: CoordinatorEvent) -> None:
        if self._board.remember(event):
            CHANGES[type(event)](self._board, event)

    def contents(self) -> dict[str, Any]:
        return self._board.contents()


CHANGES = {**fold_tasks.CHANGES, **fold_agents.CHANGES, **fold_landings.CHANGES}

COORDINATOR: ViewKind[Coordinator, CoordinatorFold] = ViewKind(
    document=Coordinator,
    fold=CoordinatorFold,
    events=get_args(CoordinatorEvent),
    key=lambda _event: "",
    folder="",
    file="state.json",
    needles=lambda _key: (b'"view":"coordinator"',),
)


def empty_state() -> Coordinator:
    return CoordinatorFold("").document()


def fold_onto(state: Coordinator, *events: CoordinatorEvent) -> Coordinator:
    fold = CoordinatorFold("")
    fold.restore(state)
    for event in events:
        fold.apply(event)
    return fold.document()


def task_statuses(state: Coordinator) -> dict[str, str]:
    """Return the place of each task by its id; `pending_audit` replaces `in_progress` for tasks that await an audit."""
    return {**state.places(), **dict.fromkeys(state.pending_audit, "pending_audit")}


def waiting_work(state: Coordinator | None) -> frozenset[tuple[str, str]]:
    """Return the tasks, with their developers, that wait for an audit or an answer."""
    work = state.in_progress_tasks if state is not None else ()
    return frozenset(
        (entry.task_id, entry.developer_id) for entry in work if entry.status != "implementing"
    )
