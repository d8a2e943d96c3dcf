"""One agent: frozen in the registries, a draft while events are folded into it; and its statuses."""

from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import ConfigDict

from guard.core.agents.events import AgentImported, AgentSpawned, AgentStatus
from guard.core.agents.whereabouts import BootSeconds, Host, Pid, Whereabouts
from guard.core.base.fields import Count, Frozen, Id, Incarnation, Instant, Line, Percent, Text
from guard.core.claims.completion_validation import CompletionValidation
from guard.core.iteration.facts import Status
from guard.core.log.events import IterationNumber

ACTIVE: frozenset[AgentStatus] = frozenset({"deployed", "running", "working", "blocked"})
TERMINAL: frozenset[AgentStatus] = frozenset({"completed", "terminated", "error", "failed"})
BY_VERDICT: dict[Status, AgentStatus] = {
    "complete": "completed",
    "blocked": "blocked",
    "error": "error",
    "timeout": "failed",
    "interrupted": "error",
    "refuted": "failed",
}
"""The status of the agent after the verdict on its iteration; after any other verdict it goes on."""
STATUSES: tuple[AgentStatus, ...] = get_args(AgentStatus)


def is_end(before: AgentStatus, after: AgentStatus) -> bool:
    """Tell whether this change of status ends the agent: no other change moves a count."""
    return before in ACTIVE and after in TERMINAL


DetectedBy = Literal["self_report", "session_gone", "kill", "import"]
"""How guard learned of the end."""


class LastTest(Frozen):
    """The newest test run under `guard agent test`."""

    at: Instant
    exit_code: int | None


class Agent(Frozen):
    """One agent of one task."""

    agent_id: Id
    task_id: Id
    incarnation: Incarnation
    agent_type: Line
    status: AgentStatus
    progress: Percent | None
    message: Text
    run: Id | None
    iteration: IterationNumber | None
    """The iteration that the agent last reported from; a waiting agent ends with it."""
    spawned_at: Instant
    updated_at: Instant
    completed_at: Instant | None
    """When the agent ended, unless it was killed."""
    terminated_at: Instant | None
    """When the agent was killed."""
    detected_by: DetectedBy | None
    reason: Text | None
    """Why the agent was killed."""
    detail: Line | None
    """How guard detected or caused the end, if it was not reported."""
    host: Host | None
    tmux_session: Line | None
    tmux_socket: Line | None
    tmux_identity: Line | None
    pid: Pid | None
    pid_start: Line | None
    keeper_pid: Pid | None
    keeper_start: Line | None
    placed_at: Instant | None
    """When guard learned where the agent runs."""
    placed_boot_seconds: BootSeconds | None
    """The same time on the boot clock."""
    updates: Count
    working_updates: Count
    late_reports: Count
    findings: Count
    test_runs: Count
    last_test: LastTest | None
    refused_claims: Count
    completion_validation: CompletionValidation | None

    @property
    def whereabouts(self) -> Whereabouts:
        return Whereabouts(**{name: getattr(self, name) for name in Whereabouts.model_fields})


_COUNTS = ("updates", "working_updates", "late_reports", "findings", "test_runs", "refused_claims")
_BLANK: dict[str, Any] = dict.fromkeys(Agent.model_fields) | dict.fromkeys(_COUNTS, 0)


class AgentDraft(Agent):
    """An agent while events are folded into it: its values are validated already, and may be set."""

    model_config = ConfigDict(frozen=False)

    if not TYPE_CHECKING:
        # A replay sets millions of values, and pydantic's own way takes four times as long.
        __setattr__ = object.__setattr__

    @staticmethod
    def of(agent: Agent) -> "AgentDraft":
        return AgentDraft.model_construct(**vars(agent))

    @staticmethod
    def begin(event: AgentSpawned | AgentImported) -> "AgentDraft":
        draft = AgentDraft.model_construct(**_BLANK)
        for name in ("agent_id", "task_id", "incarnation", "agent_type", "message"):
            setattr(draft, name, getattr(event, name))
        draft.status, draft.spawned_at, draft.updated_at = "deployed", event.at, event.at
        if isinstance(event, AgentImported):
            draft._take_over(event)
        return draft

    def _take_over(self, event: AgentImported) -> None:
        for name in ("status", "progress", "spawned_at", "updated_at", "tmux_session", "pid"):
            setattr(self, name, getattr(event, name))
        if event.status in TERMINAL:
            self.detected_by, self.detail = "import", event.source
        if event.killed:
            self.terminated_at = event.ended_at
        else:
            self.completed_at = event.ended_at

    def freeze(self) -> Agent:
        return Agent.model_construct(**vars(self))
