"""What commits, rollbacks, failure patterns and the coordinator's own session do to the board."""

from guard.core.coordinator.builder import Board, Takers, on
from guard.core.coordinator.entries import Rollback, TaskCommit
from guard.core.events.failure_pattern import FailurePattern, recorded
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
    UsageChecked,
)

_COMMIT = ("commit_sha", "base_sha", "files_modified", "branch")
_ROLLBACK = ("task_id", "commits", "head", "to_sha", "branch", "reason")
_USAGE = ("session_utilisation", "session_remaining", "session_resets_at")


def _committed(board: Board, event: TaskCommitRecorded) -> None:
    fields = {name: getattr(event, name) for name in _COMMIT}
    board.task_commits.pop(event.task_id, None)
    commit = TaskCommit.model_construct(**fields, completed_at=event.at)
    board.task_commits[event.task_id] = commit


def _rollback_starts(board: Board, event: RollbackStarted) -> None:
    fields = {name: getattr(event, name) for name in _ROLLBACK}
    board.rollback_in_progress = Rollback.model_construct(**fields, started_at=event.at)


def _rollback_ends(board: Board, _event: RollbackFailed | RollbackBlocked) -> None:
    board.rollback_in_progress = None


def _rolled_back(board: Board, event: TaskRolledBack) -> None:
    board.rollback_in_progress = None
    board.task_commits.pop(event.task_id, None)
    board.reopen(event.task_id)
    _abort_dependents(board, event)


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


def _pattern(board: Board, event: FailurePatternRecorded) -> None:
    pattern = board.failure_patterns.get(event.failure_type, FailurePattern())
    once_more = recorded(pattern, event.task_id, event.cause)
    board.failure_patterns[event.failure_type] = once_more


def _prevention(board: Board, event: FailurePatternPreventionAdded) -> None:
    pattern = board.failure_patterns.get(event.failure_type, FailurePattern())
    news = {"suggested_prevention": event.prevention}
    board.failure_patterns[event.failure_type] = pattern.model_copy(update=news)


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
    """It stands in the log, and changes nothing."""


TAKERS: Takers = dict(
    (
        on(TaskCommitRecorded, _committed),
        on(RollbackStarted, _rollback_starts),
        on(RollbackFailed, _rollback_ends),
        on(RollbackBlocked, _rollback_ends),
        on(TaskRolledBack, _rolled_back),
        on(FailurePatternRecorded, _pattern),
        on(FailurePatternPreventionAdded, _prevention),
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
