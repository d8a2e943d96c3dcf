"""What the commands print that keep the registries."""

from typing import Literal

from pydantic import Field

from guard.core.events.agent import AgentStatus
from guard.core.fields import Count
from guard.core.reports.base import Report
from guard.core.roster import Agent


class AgentReport(Report):
    """One agent after a change, with the counts of its task and of all tasks."""

    schema_: Literal["guard/agent/1"] = Field("guard/agent/1", alias="schema")
    agent: Agent
    previous_status: AgentStatus | None
    recorded_as: Literal["spawned", "updated", "late"]
    active_count: Count
    completed_count: Count
    total_spawned: Count
    active_agents: Count
    total_agents_spawned: Count


class AgentsReport(Report):
    """Agents with the counts over all tasks, or of one task."""

    schema_: Literal["guard/agents/1"] = Field("guard/agents/1", alias="schema")
    task_id: str | None
    active: Count
    completed: Count
    spawned: Count
    agents: tuple[Agent, ...]
