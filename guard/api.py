"""Guard for runners written in Python: the same operations as the commands, as functions.

`workspace` and `repo` are what `--workspace` and `--repo` are on the command line. A process that calls often keeps what it
has read, and reads only what is new.
"""

import os
from functools import cache
from pathlib import Path

from guard import agents
from guard.clock import from_environment
from guard.core.events import AgentStatus
from guard.core.reports import AgentReport, AgentsReport
from guard.invocation import Invocation

Where = str | Path | None


def spawn_agent(
    task_id: str,
    agent_id: str,
    agent_type: str = "agent",
    message: str = "",
    *,
    workspace: Where = None,
    repo: Where = None,
) -> AgentReport:
    """Register an agent that has been started."""
    guard = _invocation(workspace, repo)
    return agents.spawn(
        guard.writable_store,
        guard.clock.now(),
        task_id=task_id,
        agent_id=agent_id,
        agent_type=agent_type,
        message=message,
        keep_finished=guard.config.settings.registry.keep_finished,
    )


def update_agent_progress(
    task_id: str,
    agent_id: str,
    status: AgentStatus,
    message: str = "",
    progress: int | None = None,
    *,
    workspace: Where = None,
    repo: Where = None,
) -> AgentReport:
    """Report how an agent fares; the answer tells the counts of its task and of all tasks."""
    guard = _invocation(workspace, repo)
    return agents.update(
        guard.writable_store,
        guard.clock.now(),
        task_id=task_id,
        agent_id=agent_id,
        status=status,
        message=message,
        progress=progress,
    )


def agents_of(
    task_id: str | None = None, *, workspace: Where = None, repo: Where = None
) -> AgentsReport:
    """The agents of a task, or of all tasks."""
    return agents.listed(_invocation(workspace, repo).store, task_id)


def _invocation(workspace: Where, repo: Where) -> Invocation:
    told = os.fspath(workspace) if workspace is not None else None
    place = os.path.abspath(repo) if repo is not None else None
    return _remembered(told, place, os.getcwd(), os.environ.get("GUARD_WORKSPACE"), os.getpid())


@cache
def _remembered(workspace: str | None, repo: str | None, *_around: object) -> Invocation:
    """One per process, folder and environment: a forked child begins with nothing that its parent remembered."""
    place = Path(repo) if repo is not None else None
    return Invocation(repo=place, workspace_option=workspace, clock=from_environment())
