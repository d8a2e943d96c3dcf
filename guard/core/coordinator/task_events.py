"""Events of the plan: tasks from dispatch to audit, the infrastructure, and questions to a person."""

from typing import Literal

from guard.core.base.fields import Count, Id, Instant, Line, Oid, Text
from guard.core.coordinator.agent_events import AgentsEvent
from guard.core.coordinator.event_base import Dispatched, PlanEvent, TimedEvent
from guard.core.coordinator.landing_events import LandingEvent
from guard.core.coordinator.upkeep_events import UpkeepEvent
from guard.core.plan.model import PlanTask, SupportingAgent

QuestionAbout = Literal[
    "task", "expansion", "remediation", "redispatch", "audit", "landing", "rollback"
]


class PlanLoaded(PlanEvent):
    """The plan is this from now on; what was done stays done."""

    type: Literal["plan_loaded"] = "plan_loaded"
    plan_file: Line
    tasks: tuple[PlanTask, ...]
    supporting_agents: tuple[SupportingAgent, ...]
    head: Oid | None = None
    """The commit of HEAD."""


class PlanComplete(PlanEvent):
    """Every task of the plan has passed its audit."""

    type: Literal["plan_complete"] = "plan_complete"
    total_tasks: Count


class ValidationComplete(PlanEvent):
    """The validation at the start of a session has finished."""

    type: Literal["validation_complete"] = "validation_complete"


class DeveloperDispatched(Dispatched):
    type: Literal["developer_dispatched"] = "developer_dispatched"
    task_id: Id
    base_sha: Oid | None
    """Where the repository stood."""
    registered_in: Id | None = None
    """The task in which the agent is registered, if this one was claimed for it: it stays registered there."""


class DeveloperCheckpoint(PlanEvent):
    type: Literal["developer_checkpoint"] = "developer_checkpoint"
    agent_id: Id
    checkpoint: Line


class CheckpointRequested(PlanEvent):
    """All developers at work are asked how far they are."""

    type: Literal["checkpoint_requested"] = "checkpoint_requested"
    agents: tuple[Id, ...]


class DeveloperReadyForAudit(PlanEvent):
    """The developer says that it is done: the task is not."""

    type: Literal["developer_ready_for_audit"] = "developer_ready_for_audit"
    task_id: Id
    agent_id: Id


class TaskComplete(PlanEvent):
    """A task passed its audit: the only way in which one becomes complete."""

    type: Literal["task_complete"] = "task_complete"
    task_id: Id
    agent_id: Id
    """The auditor."""
    evidence_summary: Text


class AuditorFail(TimedEvent):
    """A task did not pass its audit, and is worked on again."""

    type: Literal["auditor_fail"] = "auditor_fail"
    task_id: Id
    agent_id: Id
    reason: Text
    timeout_at: Instant | None
    """Until when its developer works on it again; None if there is no place free for it."""


class AuditorBlocked(PlanEvent):
    """An audit could not be made, for failures that were there before the task."""

    type: Literal["auditor_blocked"] = "auditor_blocked"
    task_id: Id
    agent_id: Id
    issue: Text


class InfrastructureBlocked(PlanEvent):
    """The coordinator dispatches no agent until the infrastructure is healthy again."""

    type: Literal["infrastructure_blocked"] = "infrastructure_blocked"
    issue: Text


class RemediationDispatched(Dispatched):
    type: Literal["remediation_dispatched"] = "remediation_dispatched"
    issue: Text


class HealthAuditPass(PlanEvent):
    type: Literal["health_audit_pass"] = "health_audit_pass"
    agent_id: Id


class InfrastructureRestored(PlanEvent):
    type: Literal["infrastructure_restored"] = "infrastructure_restored"


class HealthAuditFail(PlanEvent):
    type: Literal["health_audit_fail"] = "health_audit_fail"
    agent_id: Id
    issue: Text | None
    """What is wrong now; None if it is what was wrong before."""


class AgentSeeksGuidance(PlanEvent):
    """A person is asked."""

    type: Literal["agent_seeks_guidance"] = "agent_seeks_guidance"
    question_id: Id
    agent_id: Id | None
    """Who waits for the answer; None if guard itself asks."""
    task_id: Id | None
    question: Text
    about: QuestionAbout


class DivineResponseReceived(PlanEvent):
    type: Literal["divine_response_received"] = "divine_response_received"
    question_id: Id
    response: Text


class AgentResumesWithGuidance(TimedEvent):
    """The answer goes to the agent that waits for it."""

    type: Literal["agent_resumes_with_guidance"] = "agent_resumes_with_guidance"
    question_id: Id
    agent_id: Id
    timeout_at: Instant


TaskEvent = (
    PlanLoaded
    | PlanComplete
    | ValidationComplete
    | DeveloperDispatched
    | DeveloperCheckpoint
    | CheckpointRequested
    | DeveloperReadyForAudit
    | TaskComplete
    | AuditorFail
    | AuditorBlocked
    | InfrastructureBlocked
    | RemediationDispatched
    | HealthAuditPass
    | InfrastructureRestored
    | HealthAuditFail
    | AgentSeeksGuidance
    | DivineResponseReceived
    | AgentResumesWithGuidance
)
CoordinatorEvent = TaskEvent | AgentsEvent | UpkeepEvent | LandingEvent
"""What the coordinator folds."""
