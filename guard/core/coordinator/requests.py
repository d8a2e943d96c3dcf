"""What the coordinator can be asked to record, each by the name of the event that it leads to."""

from typing import Literal, get_args

from pydantic import JsonValue

from guard.core.base.fields import Frozen, Id, Instant, Line, Percent, Text
from guard.core.events.failure_pattern import FailureWarning
from guard.core.events.plan_base import Confidence
from guard.core.events.plan_model import Plan, RequestType


class _Dispatch(Frozen):
    agent_id: Id
    to_start: bool = False


class LoadPlan(Frozen):
    type: Literal["plan_loaded"] = "plan_loaded"
    plan_file: Line
    plan: Plan


class DispatchDeveloper(_Dispatch):
    type: Literal["developer_dispatched"] = "developer_dispatched"
    task_id: Id
    registered_in: Id | None = None


class DispatchAgent(_Dispatch):
    type: Literal["agent_dispatched"] = "agent_dispatched"
    agent_type: Literal["auditor", "health_auditor"] = "auditor"
    task_id: Id | None = None


class DispatchRemediation(_Dispatch):
    type: Literal["remediation_dispatched"] = "remediation_dispatched"
    issue: Text | None = None


class DispatchAnalyst(_Dispatch):
    type: Literal["business_analyst_dispatched"] = "business_analyst_dispatched"
    task_id: Id


class ReadyForAudit(Frozen):
    type: Literal["developer_ready_for_audit"] = "developer_ready_for_audit"
    task_id: Id
    agent_id: Id | None = None


class Pass(Frozen):
    type: Literal["task_complete"] = "task_complete"
    task_id: Id
    agent_id: Id
    evidence_summary: Text = ""


class Fail(Frozen):
    type: Literal["auditor_fail"] = "auditor_fail"
    task_id: Id
    agent_id: Id
    reason: Text = ""


class Block(Frozen):
    type: Literal["auditor_blocked"] = "auditor_blocked"
    task_id: Id
    agent_id: Id
    issue: Text


class BlockInfrastructure(Frozen):
    type: Literal["infrastructure_blocked"] = "infrastructure_blocked"
    issue: Text


class Healthy(Frozen):
    type: Literal["health_audit_pass"] = "health_audit_pass"
    agent_id: Id


class Unhealthy(Frozen):
    type: Literal["health_audit_fail"] = "health_audit_fail"
    agent_id: Id
    issue: Text | None = None


class Checkpoint(Frozen):
    type: Literal["developer_checkpoint", "agent_checkpoint"] = "developer_checkpoint"
    agent_id: Id
    checkpoint: Line


class Ask(Frozen):
    type: Literal["agent_seeks_guidance"] = "agent_seeks_guidance"
    agent_id: Id | None = None
    question: Text


class Answer(Frozen):
    type: Literal["divine_response_received"] = "divine_response_received"
    question_id: Id
    response: Text


class Assess(Frozen):
    type: Literal["task_quality_assessment"] = "task_quality_assessment"
    needs_expansion: tuple[Id, ...] = ()


class Expand(Frozen):
    type: Literal["task_expanded"] = "task_expanded"
    task_id: Id
    agent_id: Id
    confidence: Literal["HIGH", "MEDIUM"] = "HIGH"
    specification: dict[str, JsonValue]


class Clarify(Frozen):
    type: Literal["expansion_needs_clarification"] = "expansion_needs_clarification"
    task_id: Id
    agent_id: Id
    question: Text


class Delegate(Frozen):
    """The request is queued if the agent has enough to do."""

    type: Literal["supporting_agent_delegated", "delegation_queued"] = "supporting_agent_delegated"
    agent_id: Id
    delegating_agent: Id
    task_id: Id | None = None
    request_type: RequestType
    request_summary: Line


class SupportDone(Frozen):
    type: Literal["supporting_agent_complete"] = "supporting_agent_complete"
    run_id: Id
    confidence: Confidence
    result: Text = ""


class SupportFailed(Frozen):
    type: Literal["supporting_agent_failed"] = "supporting_agent_failed"
    run_id: Id
    reason: Line
    timed_out: bool = False


class OutOfScope(Frozen):
    type: Literal["supporting_agent_out_of_scope"] = "supporting_agent_out_of_scope"
    run_id: Id
    suggested: Line | None = None
    guidance: Text = ""


class AgentDone(Frozen):
    type: Literal["agent_complete"] = "agent_complete"
    agent_id: Id


class AgentLost(Frozen):
    type: Literal["agent_timeout", "agent_crashed"] = "agent_crashed"
    agent_id: Id
    reason: Line = ""


class Notice(Frozen):
    """What is so without any condition."""

    type: Literal["validation_complete", "session_resumed"]


class Tokens(Frozen):
    type: Literal["compaction", "session_paused"]
    tokens_remaining_percent: Percent | None = None


class Usage(Frozen):
    type: Literal["usage_checked"] = "usage_checked"
    session_utilisation: Percent
    session_remaining: Percent | None = None
    """By default what is left of a hundred."""
    session_resets_at: Instant | None = None


class RecordFailure(Frozen):
    type: Literal["failure_pattern_recorded"] = "failure_pattern_recorded"
    failure_type: Id
    task_id: Id
    cause: Line | None = None


class AddPrevention(Frozen):
    type: Literal["failure_pattern_prevention_added"] = "failure_pattern_prevention_added"
    failure_type: Id
    prevention: Line


class IssueWarnings(Frozen):
    type: Literal["failure_warning_issued"] = "failure_warning_issued"
    task_id: Id
    warnings: tuple[FailureWarning, ...]


class TakeOutbox(Frozen):
    type: Literal["outbox_taken"] = "outbox_taken"
    items: tuple[Id, ...]


Request = (
    LoadPlan
    | DispatchDeveloper
    | DispatchAgent
    | DispatchRemediation
    | DispatchAnalyst
    | ReadyForAudit
    | Pass
    | Fail
    | Block
    | BlockInfrastructure
    | Healthy
    | Unhealthy
    | Checkpoint
    | Ask
    | Answer
    | Assess
    | Expand
    | Clarify
    | Delegate
    | SupportDone
    | SupportFailed
    | OutOfScope
    | AgentDone
    | AgentLost
    | Notice
    | Tokens
    | Usage
    | RecordFailure
    | AddPrevention
    | IssueWarnings
    | TakeOutbox
)
REQUESTS: dict[str, type[Frozen]] = {
    name: request
    for request in get_args(Request)
    for name in get_args(request.model_fields["type"].annotation)
}
"""Every request by the name of its event."""
