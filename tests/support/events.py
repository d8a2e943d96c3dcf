"""Events made short."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from guard.core.agents.agent import Agent, AgentDraft
from guard.core.agents.events import (
    AgentEndDetected,
    AgentImported,
    AgentKilled,
    AgentSpawned,
    AgentStatus,
    AgentUpdated,
)
from guard.core.iteration.events import IterationEnded, IterationStarted, RunEnded, RunStarted
from guard.core.iteration.facts import Status

MOMENT = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
_numbers = count(1)


def _next() -> dict[str, Any]:
    number = next(_numbers)
    return {"id": f"event-{number}", "at": MOMENT + timedelta(seconds=number)}


def _agent(agent: str, task: str, incarnation: int) -> dict[str, Any]:
    return {"task_id": task, "agent_id": agent, "incarnation": incarnation}


def spawned(agent: str = "a1", task: str = "T1", incarnation: int = 1) -> AgentSpawned:
    return AgentSpawned(**_next(), **_agent(agent, task, incarnation), agent_type="builder")


def working_agent(at: datetime, **fields: Any) -> Agent:
    """An agent that was spawned at this time and is at work."""
    draft = AgentDraft.begin(spawned())
    for name, value in {"spawned_at": at, "updated_at": at, "status": "working", **fields}.items():
        setattr(draft, name, value)
    return draft.freeze()


def updated(
    status: AgentStatus = "working",
    agent: str = "a1",
    task: str = "T1",
    incarnation: int = 1,
    message: str = "",
) -> AgentUpdated:
    return AgentUpdated(
        **_next(),
        **_agent(agent, task, incarnation),
        status=status,
        message=message,
    )


def end_detected(agent: str = "a1", task: str = "T1", incarnation: int = 1) -> AgentEndDetected:
    return AgentEndDetected(
        **_next(), **_agent(agent, task, incarnation), detail="tmux session a1 is gone"
    )


def killed(agent: str = "a1", task: str = "T1", incarnation: int = 1) -> AgentKilled:
    return AgentKilled(
        **_next(), **_agent(agent, task, incarnation), reason="stuck", detail="asked"
    )


def imported(
    status: AgentStatus = "working",
    agent: str = "a1",
    task: str = "T1",
    incarnation: int = 1,
    killed: bool = False,
) -> AgentImported:
    return AgentImported(
        **_next(),
        **_agent(agent, task, incarnation),
        agent_type="builder",
        status=status,
        progress=None,
        message="",
        spawned_at=MOMENT,
        updated_at=MOMENT,
        ended_at=None,
        killed=killed,
        tmux_session=None,
        pid=None,
        source="registry.json",
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
