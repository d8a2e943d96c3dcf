"""Events of agents other than developers: auditors, analysts and supporting agents."""

from typing import Literal

from pydantic import JsonValue

from guard.core.base.fields import Count, Id, Instant, Line, Text
from guard.core.coordinator.event_base import (
    AgentType,
    Confidence,
    Dispatched,
    PlanEvent,
    Seconds,
    TimedEvent,
)
from guard.core.plan.model import RequestType


class AgentDispatched(Dispatched):
    """An agent of a kind that has no event of its own: an auditor, or one that audits the infrastructure."""

    type: Literal["agent_dispatched"] = "agent_dispatched"
    agent_type: Literal["auditor", "health_auditor"]
    task_id: Id | None


class AgentCheckpoint(PlanEvent):
    """An agent that is no developer told how far it is."""

    type: Literal["agent_checkpoint"] = "agent_checkpoint"
    agent_id: Id
    checkpoint: Line


class AgentComplete(PlanEvent):
    """An agent is done, whose end has no event of its own."""

    type: Literal["agent_complete"] = "agent_complete"
    agent_id: Id


class AgentTimeout(PlanEvent):
    """An agent had its time; its task is free again."""

    type: Literal["agent_timeout"] = "agent_timeout"
    agent_id: Id
    agent_type: AgentType
    task_id: Id | None
    attempts: Count
    """How often agents of this task timed out or crashed, this time included."""
    has_ended: bool = False
    """Whether the agent is known to have ended: then it needs no abort."""


class AgentCrashed(PlanEvent):
    """An agent could not go on; treated like a time-out."""

    type: Literal["agent_crashed"] = "agent_crashed"
    agent_id: Id
    agent_type: AgentType
    task_id: Id | None
    attempts: Count
    reason: Line


class AgentTimeoutExtended(TimedEvent):
    """An agent was at work when its time was up, and got all of it again; or half of it, for a checkpoint."""

    type: Literal["agent_timeout_extended"] = "agent_timeout_extended"
    agent_id: Id
    timeout_at: Instant
    because: Literal["checkpoint", "activity"]


class AgentStarted(TimedEvent):
    """An agent was seen to start, or to start again: its time runs from here."""

    type: Literal["agent_started"] = "agent_started"
    agent_id: Id
    timeout_at: Instant


class AgentPaused(TimedEvent):
    """An iteration of an agent ended without an end of its work: its task stays with it, and nothing is counted."""

    type: Literal["agent_paused"] = "agent_paused"
    agent_id: Id
    because: Line
    """The verdict on the iteration, such as `limited`."""
    has_ended: bool
    """Whether this life of the agent is over; another one goes on with the task."""
    timeout_at: Instant


class TaskQualityAssessment(PlanEvent):
    type: Literal["task_quality_assessment"] = "task_quality_assessment"
    implementable: tuple[Id, ...]
    needs_expansion: tuple[Id, ...]


class BusinessAnalystDispatched(Dispatched):
    type: Literal["business_analyst_dispatched"] = "business_analyst_dispatched"
    task_id: Id
    guidance: Text | None
    """The answer to what an earlier analyst asked."""


class TaskExpanded(PlanEvent):
    """An analyst made a task implementable."""

    type: Literal["task_expanded"] = "task_expanded"
    task_id: Id
    agent_id: Id
    confidence: Literal["HIGH", "MEDIUM"]
    specification: dict[str, JsonValue]


class ExpansionNeedsClarification(PlanEvent):
    """An analyst could not make a task implementable without an answer."""

    type: Literal["expansion_needs_clarification"] = "expansion_needs_clarification"
    task_id: Id
    agent_id: Id
    question_id: Id
    question: Text


class SupportingAgentDelegated(TimedEvent):
    """A supporting agent takes up a request."""

    type: Literal["supporting_agent_delegated"] = "supporting_agent_delegated"
    run_id: Id
    """This piece of its work."""
    agent_id: Id
    delegating_agent: Id
    task_id: Id | None
    request_type: RequestType
    request_summary: Line
    timeout_at: Instant
    request_id: Id | None
    """The request in the queue that this was, if it was one."""


class DelegationQueued(PlanEvent):
    """The supporting agent has as much to do as it may."""

    type: Literal["delegation_queued"] = "delegation_queued"
    request_id: Id
    agent_id: Id
    delegating_agent: Id
    task_id: Id | None
    request_type: RequestType
    request_summary: Line
    position: Count


class SupportingAgentComplete(PlanEvent):
    type: Literal["supporting_agent_complete"] = "supporting_agent_complete"
    run_id: Id
    confidence: Confidence
    duration_seconds: Seconds
    result: Text


class SupportingAgentFailed(PlanEvent):
    type: Literal["supporting_agent_failed"] = "supporting_agent_failed"
    run_id: Id
    reason: Line
    timed_out: bool


class SupportingAgentOutOfScope(PlanEvent):
    """The request is none for this agent."""

    type: Literal["supporting_agent_out_of_scope"] = "supporting_agent_out_of_scope"
    run_id: Id
    suggested: Line | None
    """Who it says could do it;"""
    routed_to: Id | None
    """who gets it."""
    guidance: Text


AgentsEvent = (
    AgentDispatched
    | AgentCheckpoint
    | AgentComplete
    | AgentTimeout
    | AgentCrashed
    | AgentTimeoutExtended
    | AgentStarted
    | AgentPaused
    | TaskQualityAssessment
    | BusinessAnalystDispatched
    | TaskExpanded
    | ExpansionNeedsClarification
    | SupportingAgentDelegated
    | DelegationQueued
    | SupportingAgentComplete
    | SupportingAgentFailed
    | SupportingAgentOutOfScope
)
