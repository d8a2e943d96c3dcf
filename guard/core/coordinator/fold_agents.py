"""Fold events of agents, of supporting agents and of the coordinator's session into the board."""

from typing import Any, assert_never

from guard.core.coordinator.agent_events import (
    AgentCheckpoint,
    AgentComplete,
    AgentCrashed,
    AgentDispatched,
    AgentTimeout,
    AgentTimeoutExtended,
    BusinessAnalystDispatched,
    DelegationQueued,
    ExpansionNeedsClarification,
    SupportingAgentComplete,
    SupportingAgentDelegated,
    SupportingAgentFailed,
    SupportingAgentOutOfScope,
    TaskExpanded,
    TaskQualityAssessment,
)
from guard.core.coordinator.builder import Board, Changes, on, time_of
from guard.core.coordinator.entries import (
    AWAITING_CLARIFICATION,
    NEEDS_EXPANSION,
    Delegation,
    OpenQuestion,
    Setback,
    SupportRun,
    SupportStats,
)
from guard.core.coordinator.event_base import Confidence
from guard.core.coordinator.fold_tasks import ON_THE_INFRASTRUCTURE, checkpoint
from guard.core.coordinator.upkeep_events import (
    ContextCompacted,
    FailureWarningIssued,
    OutboxTaken,
    SessionPaused,
    SessionResumed,
    StateReconstructed,
    StateRecoveryNeeded,
    UsageChecked,
)

_WEIGHTS: dict[Confidence, int] = {"LOW": 1, "MEDIUM": 2, "HIGH": 3}
_WORDS: dict[int, Confidence] = {weight: word for word, weight in _WEIGHTS.items()}
_USAGE = ("session_utilisation", "session_remaining", "session_resets_at")
_REQUEST = ("agent_id", "delegating_agent", "task_id", "request_type", "request_summary")

Ended = SupportingAgentComplete | SupportingAgentFailed | SupportingAgentOutOfScope


def _dispatched(board: Board, event: AgentDispatched) -> None:
    about = board.title(event.task_id) if event.task_id else board.infrastructure_issue
    board.enlist(event, event.agent_type, event.task_id, about or "")


def _done(board: Board, event: AgentComplete) -> None:
    agent = board.active_agents.pop(event.agent_id, None)
    if agent is not None and agent.type == "remediation":
        board.health_audit_due = True


def _lost(board: Board, event: AgentTimeout | AgentCrashed) -> None:
    agent = board.active_agents.pop(event.agent_id, None)
    if event.agent_type in ON_THE_INFRASTRUCTURE:
        board.infrastructure_setbacks = event.attempts
        if board.active_remediation == event.agent_id:
            board.active_remediation = None
    if event.task_id is None:
        return
    work = board.in_progress_tasks.get(event.task_id)
    far = agent.last_checkpoint if agent is not None else None
    if event.agent_type == "developer" and work and work.developer_id == event.agent_id:
        far = work.last_checkpoint
        del board.in_progress_tasks[event.task_id]
    if board.pending_expansions.get(event.task_id) == event.agent_id:
        board.pending_expansions[event.task_id] = NEEDS_EXPANSION
    board.setbacks[event.task_id] = Setback.model_construct(
        attempts=event.attempts, last_checkpoint=far
    )
    if isinstance(event, AgentTimeout):
        board.send("abort", event.agent_id, event.task_id, "its time is up", event.at)


def _extended(board: Board, event: AgentTimeoutExtended) -> None:
    agent = board.active_agents.get(event.agent_id)
    if agent is not None:
        news = {"extensions": agent.extensions + 1, "checked": False}
        board.change("active_agents", event.agent_id, **time_of(event), **news)


def _assessed(board: Board, event: TaskQualityAssessment) -> None:
    board.task_quality_assessed = True
    for task_id in event.needs_expansion:
        board.pending_expansions.setdefault(task_id, NEEDS_EXPANSION)
    for task_id in event.implementable:
        if board.pending_expansions.get(task_id) == NEEDS_EXPANSION:
            del board.pending_expansions[task_id]


def _analyst(board: Board, event: BusinessAnalystDispatched) -> None:
    board.enlist(
        event, "business_analyst", event.task_id, event.guidance or board.title(event.task_id)
    )
    board.pending_expansions[event.task_id] = event.agent_id


def _expanded(board: Board, event: TaskExpanded) -> None:
    board.active_agents.pop(event.agent_id, None)
    board.pending_expansions.pop(event.task_id, None)
    board.setbacks.pop(event.task_id, None)
    board.expanded_tasks[event.task_id] = event.specification


def _unclear(board: Board, event: ExpansionNeedsClarification) -> None:
    board.names_given += 1
    board.active_agents.pop(event.agent_id, None)
    board.pending_expansions[event.task_id] = AWAITING_CLARIFICATION
    board.pending_divine_questions[event.question_id] = OpenQuestion.model_construct(
        question_id=event.question_id,
        agent_id=event.agent_id,
        task_id=event.task_id,
        question=event.question,
        about="expansion",
        asked_at=event.at,
        response=None,
    )


def _request(event: SupportingAgentDelegated | DelegationQueued) -> dict[str, Any]:
    return {name: getattr(event, name) for name in _REQUEST}


def _delegated(board: Board, event: SupportingAgentDelegated) -> None:
    board.names_given += 1
    if event.request_id is not None:
        board.pending_delegation_requests.pop(event.request_id, None)
    board.active_supporting_agents[event.run_id] = SupportRun.model_construct(
        **_request(event), dispatched_at=event.at, **time_of(event)
    )
    stats = board.supporting_agent_stats.setdefault(event.agent_id, SupportStats())
    board.change("supporting_agent_stats", event.agent_id, delegations=stats.delegations + 1)
    board.send("start", event.run_id, event.task_id, event.request_summary, event.at)


def _queued(board: Board, event: DelegationQueued) -> None:
    board.names_given += 1
    board.pending_delegation_requests[event.request_id] = Delegation.model_construct(
        **_request(event), request_id=event.request_id, queued_at=event.at
    )
    told = f"{event.request_id} waits for {event.agent_id} at place {event.position}"
    board.send("queued", event.delegating_agent, event.task_id, told, event.at)


def _ended(board: Board, event: Ended) -> None:
    # Also tells the agent that made the request.
    run = board.active_supporting_agents.pop(event.run_id, None)
    if run is None:
        return
    stats = board.supporting_agent_stats.get(run.agent_id, SupportStats())
    match event:
        case SupportingAgentComplete():
            news, told = _completed(stats, event, run), event.result
        case SupportingAgentFailed():
            news, told = {"failures": stats.failures + 1}, f"{run.agent_id} failed: {event.reason}"
        case SupportingAgentOutOfScope():
            news = {"out_of_scope": stats.out_of_scope + 1}
            hint = f" (it suggests {event.suggested})" if event.suggested else ""
            told = f"out of scope for {run.agent_id}: {(event.guidance + hint).strip()}"
            if event.routed_to is not None:
                told = f"out of scope for {run.agent_id}; {event.routed_to} is asked instead"
        case _:
            assert_never(event)
    board.supporting_agent_stats[run.agent_id] = stats.model_copy(update=news)
    board.send("support", run.delegating_agent, run.task_id, told, event.at)


def _completed(
    stats: SupportStats, event: SupportingAgentComplete, run: SupportRun
) -> dict[str, Any]:
    count = stats.completions + 1
    seconds = stats.total_duration_seconds + event.duration_seconds
    weight = stats.total_confidence + _WEIGHTS[event.confidence]
    tasks = stats.tasks_benefited
    if run.task_id is not None and run.task_id not in tasks:
        tasks = (*tasks, run.task_id)
    return {
        "completions": count,
        "total_duration_seconds": seconds,
        "avg_duration_seconds": seconds / count,
        "total_confidence": weight,
        # A mean half-way between two words counts as the lower one.
        "avg_confidence": _WORDS[max(1, (2 * weight + count - 1) // (2 * count))],
        "tasks_benefited": tasks,
    }


def _usage(board: Board, event: UsageChecked) -> None:
    board.last_usage_check = event.at
    for name in _USAGE:
        setattr(board, name, getattr(event, name))


def _compacted(board: Board, event: ContextCompacted) -> None:
    board.compaction_count += 1
    board.save_reason = "compaction"
    board.tokens_remaining_percent = event.tokens_remaining_percent


def _paused(board: Board, event: SessionPaused) -> None:
    board.save_reason = "session_pause"
    board.tokens_remaining_percent = event.tokens_remaining_percent


def _resumed(board: Board, _event: SessionResumed) -> None:
    board.session_resume_count += 1


def _taken(board: Board, event: OutboxTaken) -> None:
    for item in event.items:
        board.outbox.pop(item, None)


def _noted(
    board: Board, event: FailureWarningIssued | StateRecoveryNeeded | StateReconstructed
) -> None:
    """Change nothing: the event is only for the log."""


CHANGES: Changes = dict(
    (
        on(AgentDispatched, _dispatched),
        on(AgentCheckpoint, checkpoint),
        on(AgentComplete, _done),
        on(AgentTimeout, _lost),
        on(AgentCrashed, _lost),
        on(AgentTimeoutExtended, _extended),
        on(TaskQualityAssessment, _assessed),
        on(BusinessAnalystDispatched, _analyst),
        on(TaskExpanded, _expanded),
        on(ExpansionNeedsClarification, _unclear),
        on(SupportingAgentDelegated, _delegated),
        on(DelegationQueued, _queued),
        on(SupportingAgentComplete, _ended),
        on(SupportingAgentFailed, _ended),
        on(SupportingAgentOutOfScope, _ended),
        on(FailureWarningIssued, _noted),
        on(UsageChecked, _usage),
        on(ContextCompacted, _compacted),
        on(SessionPaused, _paused),
        on(SessionResumed, _resumed),
        on(OutboxTaken, _taken),
        on(StateRecoveryNeeded, _noted),
        on(StateReconstructed, _noted),
    )
)
