"""What the commands print that keep the registries."""

from typing import Any, Literal, TypedDict

from pydantic import Field

from guard.core.agents.agent import Agent
from guard.core.agents.findings import FoundOut
from guard.core.base.fields import Count, Frozen, Id, Line
from guard.core.base.report import Report
from guard.core.events.agent import AgentStatus
from guard.core.events.validation import CompletionValidation

Liveness = Literal["alive", "ended", "unknown"]
RecordedAs = Literal[
    "spawned", "updated", "late", "refused", "ended", "killed", "finding", "test_run"
]


class AgentReport(Report):
    """One agent after a change, with the counts of its task and of all tasks."""

    schema_: Literal["guard/agent/1"] = Field("guard/agent/1", alias="schema")
    agent: Agent
    previous_status: AgentStatus | None
    recorded_as: RecordedAs
    active_count: Count
    completed_count: Count
    total_spawned: Count
    active_agents: Count
    completed_agents: Count
    total_agents_spawned: Count
    completion_validation: CompletionValidation | None
    """Of the claim that this report was, if it was one."""


class ListedAgent(Agent):
    """An agent, and whether it was found alive just now."""

    liveness: Liveness
    seen: Line
    """How that was found out."""


class AgentsReport(Report):
    """Agents with the counts over all tasks, or of one task."""

    schema_: Literal["guard/agents/1"] = Field("guard/agents/1", alias="schema")
    task_id: str | None
    active: Count
    completed: Count
    spawned: Count
    agents: tuple[ListedAgent, ...]


class AgentDetailReport(Report):
    """One agent with everything that is known of it."""

    schema_: Literal["guard/agent-detail/1"] = Field("guard/agent-detail/1", alias="schema")
    agent: ListedAgent
    findings: tuple[FoundOut, ...]
    score: tuple[Line, ...]
    """The confidence in its claim of completion, line by line."""


class AgentName(Frozen):
    task_id: Id
    agent_id: Id


class ImportReport(Report):
    """What became of the agents in a registry that guard did not write."""

    schema_: Literal["guard/agent-import/1"] = Field("guard/agent-import/1", alias="schema")
    source: Line
    imported: tuple[AgentName, ...]
    known: tuple[AgentName, ...]
    """Registered here already, and left as they are."""
    warnings: tuple[Line, ...]


class TaskAgents(TypedDict):
    """The agents of a task: how many, and which."""

    active: int
    completed: int
    spawned: int
    by_status: dict[str, int]
    list: list[dict[str, Any]]


class TaskStatus(TypedDict):
    """A task as its agents stand, in plain values: `status["agents"]["active"]`."""

    task_id: str
    agents: TaskAgents
