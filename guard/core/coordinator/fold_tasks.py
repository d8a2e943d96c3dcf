"""Fold events of tasks, commits, failures, the infrastructure and questions into the board."""

from collections.abc import Mapping
from dataclasses import fields

from guard.core.base.fast_models import entry_from, make_model
from guard.core.coordinator import entries, task_events, upkeep_events
from guard.core.coordinator.agent_events import AgentCheckpoint
from guard.core.coordinator.builder import Board, Changes, on, time_of
from guard.core.failures.pattern import FailurePattern, add_occurrence
from guard.core.plan.select import downstream_of

ON_THE_INFRASTRUCTURE = ("remediation", "health_auditor")


def _load_plan(board: Board, event: task_events.PlanLoaded) -> None:
    board.plan_file = event.plan_file
    board.plan_head = board.plan_head or event.head
    board.link(event.tasks)
    board.supporting_agents = tuple(
        entry_from(entries.KnownSupport, agent, created_at=event.at)
        for agent in event.supporting_agents
    )
    for place in (board.in_progress_tasks, board.pending_audit, board.pending_expansions):
        for task_id in [placed_id for placed_id in place if placed_id not in board.tasks]:
            place.pop(task_id)
    if any(task_id not in board.completed_tasks for task_id in board.tasks):
        board.plan_complete = False


def _dispatch_developer(board: Board, event: task_events.DeveloperDispatched) -> None:
    before = board.in_progress_tasks.get(event.task_id)
    setback = board.setbacks.get(event.task_id)
    far = before.last_checkpoint if before else setback.last_checkpoint if setback else None
    title = board.title(event.task_id)
    board.enlist(event, "developer", event.task_id, f"{title}\n{far}" if far else title)
    work = {
        "task_id": event.task_id,
        "developer_id": event.agent_id,
        "status": "implementing",
        "last_checkpoint": before.last_checkpoint if before else None,
        "dispatched_at": event.at,
        "base_sha": _base_of_work(board, event),
    }
    board.in_progress_tasks[event.task_id] = make_model(entries.TaskInProgress, work)
    board.own.add(("in_progress_tasks", event.task_id))


def _base_of_work(board: Board, event: task_events.DeveloperDispatched) -> str | None:
    # What is worked on again keeps the commits that it has.
    before = board.in_progress_tasks.get(event.task_id)
    if before is not None:
        return before.base_sha
    refused = board.landing_setbacks.get(event.task_id)
    base = refused.base_sha if refused is not None else None
    return base or event.base_sha


def _submit_for_audit(board: Board, event: task_events.DeveloperReadyForAudit) -> None:
    board.dismiss(event.agent_id)
    board.pending_audit[event.task_id] = None
    board.change("in_progress_tasks", event.task_id, status="awaiting-audit")


def _complete_task(board: Board, event: task_events.TaskComplete) -> None:
    board.dismiss(event.agent_id)
    board.pending_audit.pop(event.task_id, None)
    board.in_progress_tasks.pop(event.task_id, None)
    board.setbacks.pop(event.task_id, None)
    board.rework_reasons.pop(event.task_id, None)
    board.failed_audits_in_a_row.pop(event.task_id, None)
    board.drop_answers(event.task_id)
    board.complete(event.task_id)


def _fail_audit(board: Board, event: task_events.AuditorFail) -> None:
    board.dismiss(event.agent_id)
    board.pending_audit.pop(event.task_id, None)
    for counts in (board.failed_audits, board.failed_audits_in_a_row):
        counts[event.task_id] = counts.get(event.task_id, 0) + 1
    board.rework_reasons[event.task_id] = event.reason
    board.change("in_progress_tasks", event.task_id, status="implementing")
    work = board.in_progress_tasks.get(event.task_id)
    if work is not None and event.timeout_at is not None:
        board.begin_work(event, work.developer_id, "developer", event.task_id)
        board.send("rework", work.developer_id, event.task_id, event.reason, event.at)


def note_checkpoint(board: Board, event: task_events.DeveloperCheckpoint | AgentCheckpoint) -> None:
    agent_id, text = event.agent_id, event.checkpoint
    agent = board.active_agents.get(agent_id)
    if agent is None:
        return
    asked = board.item_for(agent_id, "checkpoint")
    if asked is not None:
        board.remove(asked)
    count = agent.checkpoint_count + 1
    news = {"last_checkpoint": text, "checkpoint_count": count, "checked": True}
    board.change("active_agents", agent_id, **news)
    if agent.type == "developer" and agent.task_id is not None:
        board.change("in_progress_tasks", agent.task_id, last_checkpoint=text)


def _request_checkpoints(board: Board, event: task_events.CheckpointRequested) -> None:
    for agent_id in event.agents:
        agent = board.active_agents.get(agent_id)
        if agent is not None and board.item_for(agent_id, "checkpoint") is None:
            text = "Say how far you are: `CHECKPOINT: what is done, in one line`"
            board.send("checkpoint", agent_id, agent.task_id, text, event.at)


def _complete_plan(board: Board, _event: task_events.PlanComplete) -> None:
    board.plan_complete = True


def _complete_validation(board: Board, _event: task_events.ValidationComplete) -> None:
    board.validation_complete = True


def _block_audit(board: Board, event: task_events.AuditorBlocked) -> None:
    board.dismiss(event.agent_id)
    board.infrastructure_blocked, board.infrastructure_issue = True, event.issue


def _block_infrastructure(board: Board, event: task_events.InfrastructureBlocked) -> None:
    board.infrastructure_blocked, board.infrastructure_issue = True, event.issue
    board.save_reason = "infrastructure_blocked"


def _remediate(board: Board, event: task_events.RemediationDispatched) -> None:
    board.infrastructure_blocked, board.infrastructure_issue = True, event.issue
    board.active_remediation, board.health_audit_due = event.agent_id, False
    board.enlist(event, "remediation", None, event.issue)


def _restore_health(
    board: Board, _event: task_events.HealthAuditPass | task_events.InfrastructureRestored
) -> None:
    _relieve(board)
    board.drop_answers(None)
    board.infrastructure_blocked = False
    board.infrastructure_issue = None
    board.remediation_attempt_count = board.infrastructure_setbacks = 0


def _fail_health_audit(board: Board, event: task_events.HealthAuditFail) -> None:
    _relieve(board)
    board.remediation_attempt_count += 1
    board.infrastructure_issue = event.issue or board.infrastructure_issue


def _relieve(board: Board) -> None:
    # A verdict on the infrastructure ends the agents that repaired or audited it.
    board.health_audit_due, board.active_remediation = False, None
    agents = board.active_agents
    for agent_id in [key for key, agent in agents.items() if agent.type in ON_THE_INFRASTRUCTURE]:
        board.dismiss(agent_id)


def _open_question(board: Board, event: task_events.AgentSeeksGuidance) -> None:
    board.names_given += 1
    board.pending_divine_questions[event.question_id] = entry_from(
        entries.OpenQuestion, event, asked_at=event.at, response=None
    )
    if event.agent_id is not None:
        _set_waiting(board, event.agent_id, waits=True)


def _answer_question(board: Board, event: task_events.DivineResponseReceived) -> None:
    question = board.pending_divine_questions.get(event.question_id)
    if question is None:
        return
    board.keep_answer(question, event.response, event.at)
    if question.about == "remediation":
        board.remediation_attempt_count = board.infrastructure_setbacks = 0
    if question.about == "redispatch" and question.task_id is not None:
        board.setbacks.pop(question.task_id, None)
    if question.about == "audit" and question.task_id is not None:
        board.failed_audits_in_a_row.pop(question.task_id, None)
    if question.about == "landing" and question.task_id is not None:
        board.landing_setbacks.pop(question.task_id, None)
    if is_awaited(question, board.active_agents):
        board.change("pending_divine_questions", event.question_id, response=event.response)
    else:
        del board.pending_divine_questions[event.question_id]


def is_awaited(question: entries.OpenQuestion, active: Mapping[str, entries.ActiveAgent]) -> bool:
    """Tell whether an agent needs the answer; an analyst has left, but is sent again with it."""
    return question.agent_id is not None and (
        question.about == "expansion" or question.agent_id in active
    )


def _resume_agent(board: Board, event: task_events.AgentResumesWithGuidance) -> None:
    question = board.pending_divine_questions.pop(event.question_id, None)
    if question is None:
        return
    others = board.pending_divine_questions.values()
    if not any(other.agent_id == event.agent_id for other in others):
        _set_waiting(board, event.agent_id, waits=False)
        board.change("active_agents", event.agent_id, **time_of(event))
    if question.about != "expansion":
        text = question.response or ""
        board.send("guidance", event.agent_id, question.task_id, text, event.at)


def _set_waiting(board: Board, agent_id: str, *, waits: bool) -> None:
    agent = board.active_agents.get(agent_id)
    if agent is None:
        return
    status = "awaiting-divine-guidance" if waits else "working"
    board.change("active_agents", agent_id, status=status)
    if agent.type == "developer" and agent.task_id is not None:
        own = "awaiting-divine-guidance" if waits else "implementing"
        board.change("in_progress_tasks", agent.task_id, status=own)


def _record_commit(board: Board, event: upkeep_events.TaskCommitRecorded) -> None:
    board.task_commits.pop(event.task_id, None)
    commit = entry_from(entries.TaskCommit, event, completed_at=event.at)
    board.task_commits[event.task_id] = commit


def _start_rollback(board: Board, event: upkeep_events.RollbackStarted) -> None:
    board.rollback_in_progress = entry_from(entries.Rollback, event, started_at=event.at)


def _end_rollback(
    board: Board, _event: upkeep_events.RollbackFailed | upkeep_events.RollbackBlocked
) -> None:
    board.rollback_in_progress = None


def _roll_back(board: Board, event: upkeep_events.TaskRolledBack) -> None:
    begun = board.rollback_in_progress
    commits = begun.commits if begun is not None and begun.task_id == event.task_id else ()
    revert = {"to_sha": event.to_sha, "commits": commits}
    board.reverted_tasks[event.task_id] = make_model(entries.TaskRevert, revert)
    board.rollback_in_progress = None
    board.task_commits.pop(event.task_id, None)
    board.landed_tasks.pop(event.task_id, None)
    board.reopen(event.task_id)
    _abort_dependents(board, event)


def _abort_dependents(board: Board, event: upkeep_events.TaskRolledBack) -> None:
    gone = downstream_of(event.task_id, board.dependents) & board.in_progress_tasks.keys()
    for task_id in gone:
        del board.in_progress_tasks[task_id]
        board.pending_audit.pop(task_id, None)
    agents = board.active_agents
    working = ("developer", "auditor")
    for agent_id, agent in list(agents.items()):
        if agent.type in working and agent.task_id in gone:
            del agents[agent_id]
            text = f"dependency_rolled_back: {event.task_id}"
            board.abort(agent_id, agent, agent.task_id, text, event.at)


def _adopt(board: Board, event: upkeep_events.TasksAdopted) -> None:
    for adopted in event.tasks:
        task_id = adopted.task_id
        board.pending_expansions.pop(task_id, None)
        board.adopted_tasks[task_id] = None
        board.complete(task_id)
        if adopted.commit_sha is not None:
            fields_of_commit = {
                **adopted.model_dump(exclude={"task_id"}),
                "completed_at": event.at,
                "commits": (),
                "shared_with": (),
            }
            board.task_commits[task_id] = make_model(entries.TaskCommit, fields_of_commit)


def _reset(board: Board, _event: upkeep_events.PlanReset) -> None:
    fresh = Board()
    for field in fields(Board):
        if field.name not in _KEPT_BY_A_RESET:
            setattr(board, field.name, getattr(fresh, field.name))
    board.link(tuple(board.tasks.values()))


_KEPT_BY_A_RESET = frozenset(
    (
        *(
            "saved_at",
            "save_reason",
            "recent_events",
            "events_folded",
            "names_given",
            "outbox_count",
        ),
        *("plan_file", "tasks", "supporting_agents", "failure_patterns", "compaction_count"),
        *("session_resume_count", "last_usage_check", "session_utilisation", "session_remaining"),
        *("session_resets_at", "tokens_remaining_percent", "supporting_agent_stats"),
    )
)


def _retry(board: Board, event: upkeep_events.TaskRetried) -> None:
    questions = board.pending_divine_questions
    for question in [one for one in questions.values() if one.task_id == event.task_id]:
        del questions[question.question_id]
    board.setbacks.pop(event.task_id, None)
    board.landing_setbacks.pop(event.task_id, None)
    board.failed_audits_in_a_row.pop(event.task_id, None)


def _record_failure(board: Board, event: upkeep_events.FailurePatternRecorded) -> None:
    pattern = board.failure_patterns.get(event.failure_type, FailurePattern())
    once_more = add_occurrence(pattern, event.failure_type, event.task_id, event.cause)
    board.failure_patterns[event.failure_type] = once_more


def _record_prevention(board: Board, event: upkeep_events.FailurePatternPreventionAdded) -> None:
    pattern = board.failure_patterns.get(event.failure_type, FailurePattern())
    news = {"suggested_prevention": event.prevention}
    board.failure_patterns[event.failure_type] = pattern.model_copy(update=news)


CHANGES: Changes = dict(
    (
        on(task_events.PlanLoaded, _load_plan),
        on(task_events.PlanComplete, _complete_plan),
        on(task_events.ValidationComplete, _complete_validation),
        on(task_events.DeveloperDispatched, _dispatch_developer),
        on(task_events.DeveloperCheckpoint, note_checkpoint),
        on(task_events.CheckpointRequested, _request_checkpoints),
        on(task_events.DeveloperReadyForAudit, _submit_for_audit),
        on(task_events.TaskComplete, _complete_task),
        on(task_events.AuditorFail, _fail_audit),
        on(task_events.AuditorBlocked, _block_audit),
        on(task_events.InfrastructureBlocked, _block_infrastructure),
        on(task_events.RemediationDispatched, _remediate),
        on(task_events.HealthAuditPass, _restore_health),
        on(task_events.InfrastructureRestored, _restore_health),
        on(task_events.HealthAuditFail, _fail_health_audit),
        on(task_events.AgentSeeksGuidance, _open_question),
        on(task_events.DivineResponseReceived, _answer_question),
        on(task_events.AgentResumesWithGuidance, _resume_agent),
        on(upkeep_events.TaskCommitRecorded, _record_commit),
        on(upkeep_events.TasksAdopted, _adopt),
        on(upkeep_events.PlanReset, _reset),
        on(upkeep_events.TaskRetried, _retry),
        on(upkeep_events.RollbackStarted, _start_rollback),
        on(upkeep_events.RollbackFailed, _end_rollback),
        on(upkeep_events.RollbackBlocked, _end_rollback),
        on(upkeep_events.TaskRolledBack, _roll_back),
        on(upkeep_events.FailurePatternRecorded, _record_failure),
        on(upkeep_events.FailurePatternPreventionAdded, _record_prevention),
    )
)
