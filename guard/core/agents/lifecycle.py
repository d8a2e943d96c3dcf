"""The statuses of an agent, and what counts as its end."""

from typing import get_args

from guard.core.events.agent import AgentStatus
from guard.core.events.run import Status

ACTIVE: frozenset[AgentStatus] = frozenset({"deployed", "running", "working", "blocked"})
TERMINAL: frozenset[AgentStatus] = frozenset({"completed", "terminated", "error", "failed"})
BY_VERDICT: dict[Status, AgentStatus] = {
    "complete": "completed",
    "blocked": "blocked",
    "error": "error",
    "timeout": "failed",
    "interrupted": "error",
}
"""What the verdict on an iteration makes of its agent; under any other verdict it goes on."""
STATUSES: tuple[AgentStatus, ...] = get_args(AgentStatus)


def ends(before: AgentStatus, after: AgentStatus) -> bool:
    """Whether this change of status is the end of the agent: the only change that moves a count."""
    return before in ACTIVE and after in TERMINAL
