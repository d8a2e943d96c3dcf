"""Events made short."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from guard.core.events import (
    AgentSpawned,
    AgentStatus,
    AgentUpdated,
    IterationEnded,
    IterationStarted,
    RunEnded,
    RunStarted,
    Status,
)

MOMENT = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
_numbers = count(1)


def _next() -> dict[str, Any]:
    number = next(_numbers)
    return {"id": f"event-{number}", "at": MOMENT + timedelta(seconds=number)}


def spawned(agent: str = "a1", task: str = "T1", incarnation: int = 1) -> AgentSpawned:
    return AgentSpawned(
        **_next(), task_id=task, agent_id=agent, incarnation=incarnation, agent_type="builder"
    )


def updated(
    status: AgentStatus = "working",
    agent: str = "a1",
    task: str = "T1",
    incarnation: int = 1,
    message: str = "",
) -> AgentUpdated:
    return AgentUpdated(
        **_next(),
        task_id=task,
        agent_id=agent,
        incarnation=incarnation,
        status=status,
        message=message,
    )


def run_started(run: str = "r1", worktree: str = "w1") -> RunStarted:
    return RunStarted(**_next(), run=run, worktree=worktree, command=("agent", "--go"))


def iteration_started(number: int = 1, run: str = "r1", worktree: str = "w1") -> IterationStarted:
    return IterationStarted(**_next(), run=run, worktree=worktree, iteration=number)


def iteration_ended(
    number: int = 1, run: str = "r1", worktree: str = "w1", status: Status = "complete"
) -> IterationEnded:
    return IterationEnded(
        **_next(),
        run=run,
        worktree=worktree,
        iteration=number,
        status=status,
        reason="commits",
        elapsed_seconds=1.5,
    )


def run_ended(run: str = "r1", worktree: str = "w1") -> RunEnded:
    return RunEnded(**_next(), run=run, worktree=worktree, reason="done")
