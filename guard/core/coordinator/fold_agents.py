"""Fold events of agents, of supporting agents and of the coordinator's session into the board."""

from typing import Any, assert_never

from guard.core.base.fast_models import entry_from
from guard.core.coordinator import agent_events, entries, upkeep_events
from guard.core.coordinator.builder import Board, Changes, on, time_of
from guard.core.coordinator.event_base import Confidence
from guard.core.coordinator.fold_tasks import ON_THE_INFRASTRUCTURE, note_checkpoint

_WEIGHTS: dict[Confidence, int] = {"LOW": 1, "MEDIUM": 2, "HIGH": 3}
_WORDS: dict[int, Confidence] = {weight: word for word, weight in _WEIGHTS.items()}
_TIME_IS_UP = "its time is up"
_USAGE = ("session_utilisation", "session_remaining", "session_resets_at")

SupportEnd = (
    agent_events.SupportingAgentComplete
    | agent_events.SupportingAgentFailed
    | agent_events.SupportingAgentOutOfScope
)


def _dispatch_agent(board: Board, event: agent_events.AgentDispatched) -> None:
    about = board.title(event.task_id) if event.task_id else board.infrastructure_issue
    board.enlist(event, event.agent_type, event.task_id, about or "")


def _end_agent(board: Board, event: agent_events.AgentComplete) -> None:
    agent = board.dismiss(event.agent_id)
    if agent is not None and agent.type == "remediation":
        board.health_audit_due = True
    if board.active_remediation == event.agent_id:
        board.active_remediation = None


def _lose_agent(board: Board, event: agent_events.AgentTimeout | agent_events.AgentCrashed) -> None:
    agent = board.active_agents.pop(event.agent_id, None)
    if isinstance(event, agent_events.AgentTimeout) and not event.has_ended:
        board.abort(event.agent_id, agent, event.task_id, _TIME_IS_UP, event.at)
    else:
        board.withdraw(event.agent_id)
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
        board.pending_expansions[event.task_id] = entries.NEEDS_EXPANSION
    reason = _TIME_IS_UP if isinstance(event, agent_events.AgentTimeout) else event.reason
    board.setbacks[event.task_id] = entry_from(
        entries.Setback, event, last_checkpoint=far, reason=reason
    )


def _extend_time(board: Board, event: agent_events.AgentTimeoutExtended) -> None:
    agent = board.active_agents.get(event.agent_id)
    if agent is not None:
        extensions = agent.extensions + 1 if event.because == "checkpoint" else 0
        news = {"extensions": extensions, "checked": False}
        board.change("active_agents", event.agent_id, **time_of(event), **news)
    board.change("active_supporting_agents", event.agent_id, **time_of(event))


def _start_agent(board: Board, event: agent_events.AgentStarted) -> None:
    _renew(board, event, started_at=event.at, has_ended=False)
    start = board.item_for(event.agent_id, "start")
    if start is not None:
        board.remove(start)


def _pause_agent(board: Board, event: agent_events.AgentPaused) -> None:
    _renew(board, event, has_ended=event.has_ended)


def _renew(
    board: Board, event: agent_events.AgentStarted | agent_events.AgentPaused, **news: Any
) -> None:
    news |= {**time_of(event), "incarnation": event.incarnation}
    board.change("active_agents", event.agent_id, **news)
    board.change("active_supporting_agents", event.agent_id, **news)


def _assess_tasks(board: Board, event: agent_events.TaskQualityAssessment) -> None:
    board.task_quality_assessed = True
    for task_id in event.needs_expansion:
        board.pending_expansions.setdefault(task_id, entries.NEEDS_EXPANSION)
    for task_id in event.implementable:
        if board.pending_expansions.get(task_id) == entries.NEEDS_EXPANSION:
            del board.pending_expansions[task_id]


def _dispatch_analyst(board: Board, event: agent_events.BusinessAnalystDispatched) -> None:
    board.enlist(
        event, "business_analyst", event.task_id, event.guidance or board.title(event.task_id)
    )
    board.pending_expansions[event.task_id] = event.agent_id


def _expand_task(board: Board, event: agent_events.TaskExpanded) -> None:
    board.dismiss(event.agent_id)
    board.pending_expansions.pop(event.task_id, None)
    board.setbacks.pop(event.task_id, None)
    board.expanded_tasks[event.task_id] = event.specification


def _ask_clarification(board: Board, event: agent_events.ExpansionNeedsClarification) -> None:
    board.names_given += 1
    board.dismiss(event.agent_id)
    board.pending_expansions[event.task_id] = entries.AWAITING_CLARIFICATION
    board.pending_divine_questions[event.question_id] = entry_from(
        entries.OpenQuestion, event, about="expansion", asked_at=event.at, response=None
    )


def _start_run(board: Board, event: agent_events.SupportingAgentDelegated) -> None:
    board.names_given += 1
    if event.request_id is not None:
        board.pending_delegation_requests.pop(event.request_id, None)
    board.active_supporting_agents[event.run_id] = entry_from(
        entries.SupportRun, event, dispatched_at=event.at, started_at=None, has_ended=False
    )
    stats = board.supporting_agent_stats.setdefault(event.agent_id, entries.SupportStats())
    board.change("supporting_agent_stats", event.agent_id, delegations=stats.delegations + 1)
    board.send("start", event.run_id, event.task_id, event.request_summary, event.at)


def _queue_request(board: Board, event: agent_events.DelegationQueued) -> None:
    board.names_given += 1
    board.pending_delegation_requests[event.request_id] = entry_from(
        entries.Delegation, event, queued_at=event.at
    )
    text = f"{event.request_id} waits for {event.agent_id} at place {event.position}"
    board.send("queued", event.delegating_agent, event.task_id, text, event.at)


def _end_run(board: Board, event: SupportEnd) -> None:
    # Also tells the agent that made the request.
    run = board.active_supporting_agents.pop(event.run_id, None)
    if run is None:
        return
    if isinstance(event, agent_events.SupportingAgentFailed) and event.timed_out:
        board.abort(event.run_id, run, run.task_id, _TIME_IS_UP, event.at)
    else:
        board.withdraw(event.run_id)
    stats = board.supporting_agent_stats.get(run.agent_id, entries.SupportStats())
    match event:
        case agent_events.SupportingAgentComplete():
            news, text = _completed_stats(stats, event, run), event.result
        case agent_events.SupportingAgentFailed():
            news, text = {"failures": stats.failures + 1}, f"{run.agent_id} failed: {event.reason}"
        case agent_events.SupportingAgentOutOfScope():
            news = {"out_of_scope": stats.out_of_scope + 1}
            hint = f" (it suggests {event.suggested})" if event.suggested else ""
            text = f"out of scope for {run.agent_id}: {(event.guidance + hint).strip()}"
            if event.routed_to is not None:
                text = f"out of scope for {run.agent_id}; {event.routed_to} is asked instead"
        case _:
            assert_never(event)
    board.supporting_agent_stats[run.agent_id] = stats.model_copy(update=news)
    board.send("support", run.delegating_agent, run.task_id, text, event.at)


def _completed_stats(
    stats: entries.SupportStats,
    event: agent_events.SupportingAgentComplete,
    run: entries.SupportRun,
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


def _note_usage(board: Board, event: upkeep_events.UsageChecked) -> None:
    board.last_usage_check = event.at
    for name in _USAGE:
        setattr(board, name, getattr(event, name))


def _note_compaction(board: Board, event: upkeep_events.ContextCompacted) -> None:
    board.compaction_count += 1
    board.save_reason = "compaction"
    board.tokens_remaining_percent = event.tokens_remaining_percent


def _pause_session(board: Board, event: upkeep_events.SessionPaused) -> None:
    board.save_reason = "session_pause"
    board.tokens_remaining_percent = event.tokens_remaining_percent


def _resume_session(board: Board, _event: upkeep_events.SessionResumed) -> None:
    board.session_resume_count += 1


def _empty_outbox(board: Board, event: upkeep_events.OutboxTaken) -> None:
    for item in event.items:
        parcel = board.outbox.get(item)
        board.remove(item)
        if parcel is not None and parcel.kind == "start" and event.timeout_at is not None:
            for kind in ("active_agents", "active_supporting_agents"):
                board.change(kind, parcel.agent_id, **time_of(event))


def _change_nothing(
    board: Board,
    event: upkeep_events.RollbackRequired
    | upkeep_events.FailureWarningIssued
    | upkeep_events.StateRecoveryNeeded
    | upkeep_events.StateReconstructed,
) -> None:
    """Change nothing: the event is only for the log."""


CHANGES: Changes = dict(
    (
        on(agent_events.AgentDispatched, _dispatch_agent),
        on(agent_events.AgentCheckpoint, note_checkpoint),
        on(agent_events.AgentComplete, _end_agent),
        on(agent_events.AgentTimeout, _lose_agent),
        on(agent_events.AgentCrashed, _lose_agent),
        on(agent_events.AgentTimeoutExtended, _extend_time),
        on(agent_events.AgentStarted, _start_agent),
        on(agent_events.AgentPaused, _pause_agent),
        on(agent_events.TaskQualityAssessment, _assess_tasks),
        on(agent_events.BusinessAnalystDispatched, _dispatch_analyst),
        on(agent_events.TaskExpanded, _expand_task),
        on(agent_events.ExpansionNeedsClarification, _ask_clarification),
        on(agent_events.SupportingAgentDelegated, _start_run),
        on(agent_events.DelegationQueued, _queue_request),
        on(agent_events.SupportingAgentComplete, _end_run),
        on(agent_events.SupportingAgentFailed, _end_run),
        on(agent_events.SupportingAgentOutOfScope, _end_run),
        on(upkeep_events.RollbackRequired, _change_nothing),
        on(upkeep_events.FailureWarningIssued, _change_nothing),
        on(upkeep_events.UsageChecked, _note_usage),
        on(upkeep_events.ContextCompacted, _note_compaction),
        on(upkeep_events.SessionPaused, _pause_session),
        on(upkeep_events.SessionResumed, _resume_session),
        on(upkeep_events.OutboxTaken, _empty_outbox),
        on(upkeep_events.StateRecoveryNeeded, _change_nothing),
        on(upkeep_events.StateReconstructed, _change_nothing),
    )
)
