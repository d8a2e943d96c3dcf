"""Events in the life of an agent, as the registries count it."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.agents.whereabouts import BootSeconds, Host, Pid
from guard.core.base.fields import Count, Digest, Id, Incarnation, Instant, Line, Oid, Percent, Text
from guard.core.base.paths import Spelled
from guard.core.claims.completion_validation import CompletionValidation
from guard.core.iteration.facts import DirtyFile
from guard.core.log.events import BaseEvent

AgentStatus = Literal[
    "deployed", "running", "working", "blocked", "completed", "terminated", "error", "failed"
]
Severity = Literal["info", "low", "medium", "high", "critical"]


class _AgentEvent(BaseEvent):
    task_id: Id
    agent_id: Id
    incarnation: Incarnation


class AgentSpawned(_AgentEvent):
    type: Literal["agent_spawned"] = "agent_spawned"
    agent_type: Line
    message: Text = ""


class AgentUpdated(_AgentEvent):
    """What an agent said of itself, or what was said of it: the fold decides what it changes."""

    type: Literal["agent_updated"] = "agent_updated"
    status: AgentStatus
    message: Text = ""
    progress: Percent | None = None


class AgentPlaced(_AgentEvent):
    """Where the agent runs became known, or is another place now."""

    type: Literal["agent_placed"] = "agent_placed"
    host: Host | None
    tmux_session: Line | None
    tmux_socket: Line | None
    tmux_identity: Line | None
    pid: Pid | None
    pid_start: Line | None
    keeper_pid: Pid | None
    keeper_start: Line | None
    boot_seconds: BootSeconds
    """When it became known, on the boot clock of that host: a session may take a while to appear."""


class AgentBaselineRecorded(_AgentEvent):
    """Where the repository stood when the agent was spawned: what comes after may be its work."""

    type: Literal["agent_baseline_recorded"] = "agent_baseline_recorded"
    root: Spelled
    """The work tree."""
    head: Oid | None
    dirty: tuple[DirtyFile, ...]
    tree: Oid | None = None
    branch: Spelled | None = None
    refs: dict[Spelled, Oid] | None = None
    """None in logs of an older guard: then only HEAD is compared."""
    refs_omitted: Count = 0
    stash: tuple[Oid, ...] = ()
    shallow: Digest | None = None
    reflogs: dict[Spelled, Count] = Field(default_factory=dict)


class AgentEndDetected(_AgentEvent):
    """Guard found the agent's session or process gone; no report told of its end."""

    type: Literal["agent_end_detected"] = "agent_end_detected"
    detected_by: Literal["session_gone"] = "session_gone"
    detail: Line
    """How it was found out."""


class AgentKilled(_AgentEvent):
    """The agent was ended on purpose: the only end that does not count as completed."""

    type: Literal["agent_killed"] = "agent_killed"
    reason: Text
    detail: Line
    """What had to be done for it."""


class AgentFindingRecorded(_AgentEvent):
    """Something that the agent found out."""

    type: Literal["agent_finding_recorded"] = "agent_finding_recorded"
    text: Text
    severity: Severity
    file: Spelled | None


class AgentTested(_AgentEvent):
    """Tests were run under guard's eyes."""

    type: Literal["agent_tested"] = "agent_tested"
    command: tuple[Line, ...]
    exit_code: int | None
    """None if it had to be killed."""
    elapsed_seconds: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class AgentClaimValidated(_AgentEvent):
    """Guard compared a claim of completion, or an unreported end, with the evidence."""

    type: Literal["agent_claim_validated"] = "agent_claim_validated"
    refused: bool
    """Whether the completion was refused for its blocking issues: the agent goes on."""
    message: Text
    """What was claimed."""
    validation: CompletionValidation


class AgentImported(_AgentEvent):
    """An agent taken over from a registry that guard did not write."""

    type: Literal["agent_imported"] = "agent_imported"
    agent_type: Line
    status: AgentStatus
    progress: Percent | None
    message: Text
    spawned_at: Instant
    updated_at: Instant
    ended_at: Instant | None
    killed: bool
    tmux_session: Line | None
    pid: Pid | None
    source: Line
    """The file that it came from."""


class AgentTransitioned(_AgentEvent):
    """An agent is in another status than before: for those who read the log; nothing is folded from it."""

    type: Literal["agent_transitioned"] = "agent_transitioned"
    previous_status: AgentStatus | None
    status: AgentStatus
    active_count: Count
    completed_count: Count
    active_agents: Count
    completed_agents: Count


class RetentionSet(BaseEvent):
    """How many finished agents the global registry lists, from here on."""

    type: Literal["retention_set"] = "retention_set"
    keep_finished: Annotated[int, Field(ge=0, le=1_000_000)]


AgentEvent = (
    AgentSpawned
    | AgentUpdated
    | AgentPlaced
    | AgentEndDetected
    | AgentKilled
    | AgentFindingRecorded
    | AgentTested
    | AgentClaimValidated
    | AgentImported
)
"""What both registries fold."""
RegistryEvent = AgentEvent | RetentionSet
AgentLogEvent = RegistryEvent | AgentBaselineRecorded | AgentTransitioned
