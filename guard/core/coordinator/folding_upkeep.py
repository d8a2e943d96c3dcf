"""What commits, rollbacks, failure patterns and the coordinator's own session do to the board."""

from typing import assert_never

from guard.core.coordinator.board import Board
from guard.core.coordinator.entries import Rollback, TaskCommit
from guard.core.events.plan_upkeep import (
    ContextCompacted,
    FailurePatternPreventionAdded,
    FailurePatternRecorded,
    FailureWarningIssued,
    OutboxTaken,
    RollbackBlocked,
    RollbackFailed,
    RollbackStarted,
    SessionPaused,
    SessionResumed,
    StateReconstructed,
    StateRecoveryNeeded,
    TaskCommitRecorded,
    TaskRolledBack,
    UpkeepEvent,
    UsageChecked,
)
from guard.core.failure_patterns import FailurePattern, recorded

_COMMIT = ("commit_sha", "base_sha", "files_modified", "branch")
_ROLLBACK = ("task_id", "commits", "head", "to_sha", "branch", "reason")
_USAGE = ("session_utilisation", "session_remaining", "session_resets_at")

Patterns = FailurePatternRecorded | FailurePatternPreventionAdded | FailureWarningIssued
Session = UsageChecked | ContextCompacted | SessionPaused | SessionResumed
Rolling = RollbackStarted | TaskRolledBack | RollbackFailed | RollbackBlocked


def take(board: Board, event: UpkeepEvent) -> None:
    """Fold one event in."""
    match event:
        case TaskCommitRecorded():
            fields = {name: getattr(event, name) for name in _COMMIT}
            commit = TaskCommit.model_construct(**fields, completed_at=event.at)
            board.task_commits.pop(event.task_id, None)
            board.task_commits[event.task_id] = commit
        case RollbackStarted() | TaskRolledBack() | RollbackFailed() | RollbackBlocked():
            _rolled(board, event)
        case FailurePatternRecorded() | FailurePatternPreventionAdded() | FailureWarningIssued():
            _pattern(board, event)
        case UsageChecked() | ContextCompacted() | SessionPaused() | SessionResumed():
            _session(board, event)
        case OutboxTaken():
            for item in event.items:
                board.outbox.pop(item, None)
        case StateRecoveryNeeded() | StateReconstructed():
            pass
        case _:
            assert_never(event)


def _rolled(board: Board, event: Rolling) -> None:
    match event:
        case RollbackStarted():
            fields = {name: getattr(event, name) for name in _ROLLBACK}
            board.rollback_in_progress = Rollback.model_construct(**fields, started_at=event.at)
        case TaskRolledBack():
            board.rollback_in_progress = None
            board.task_commits.pop(event.task_id, None)
            board.reopen(event.task_id)
            _abort_dependents(board, event)
        case RollbackFailed() | RollbackBlocked():
            board.rollback_in_progress = None
        case _:
            assert_never(event)


def _abort_dependents(board: Board, event: TaskRolledBack) -> None:
    """Whoever built on what is gone stops; the task waits for its dependency again."""
    gone = board.downstream(event.task_id) & board.in_progress_tasks.keys()
    for task_id in gone:
        del board.in_progress_tasks[task_id]
        board.pending_audit.pop(task_id, None)
    agents = board.active_agents
    working = ("developer", "auditor")
    for agent_id, agent in list(agents.items()):
        if agent.type in working and agent.task_id in gone:
            del agents[agent_id]
            told = f"dependency_rolled_back: {event.task_id}"
            board.send("abort", agent_id, agent.task_id, told, event.at)


def _pattern(board: Board, event: Patterns) -> None:
    match event:
        case FailurePatternRecorded():
            pattern = board.failure_patterns.get(event.failure_type, FailurePattern())
            once_more = recorded(pattern, event.task_id, event.cause)
            board.failure_patterns[event.failure_type] = once_more
        case FailurePatternPreventionAdded():
            pattern = board.failure_patterns.get(event.failure_type, FailurePattern())
            news = {"suggested_prevention": event.prevention}
            board.failure_patterns[event.failure_type] = pattern.model_copy(update=news)
        case FailureWarningIssued():
            pass
        case _:
            assert_never(event)


def _session(board: Board, event: Session) -> None:
    match event:
        case UsageChecked():
            board.last_usage_check = event.at
            for name in _USAGE:
                setattr(board, name, getattr(event, name))
        case ContextCompacted():
            board.compaction_count += 1
            board.save_reason = "compaction"
            board.tokens_remaining_percent = event.tokens_remaining_percent
        case SessionPaused():
            board.save_reason = "session_pause"
            board.tokens_remaining_percent = event.tokens_remaining_percent
        case SessionResumed():
            board.session_resume_count += 1
        case _:
            assert_never(event)
