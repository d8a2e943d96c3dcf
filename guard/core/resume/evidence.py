"""The evidence about a stalled agent that a prompt is written from; any part of it may be missing."""

from dataclasses import dataclass
from datetime import datetime

from guard.core.agents.agent import Agent
from guard.core.agents.findings import FoundOut
from guard.core.plan.model import PlanTask


@dataclass(frozen=True, slots=True)
class Silence:
    """How long no sign of the agent was seen, and how that is known."""

    minutes: float | None
    """None if no sign was ever seen."""
    known_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NextTask:
    """The task of the plan that the agent is to do next."""

    task: PlanTask
    claimed: bool
    """Whether it is claimed for the agent, or only the next free one."""


@dataclass(frozen=True, slots=True)
class Mission:
    """The agent's last meaningful words about its work."""

    said: str
    at: datetime
    progress: int | None = None


@dataclass(frozen=True, slots=True)
class LeftFiles:
    """Files that are not committed."""

    names: tuple[str, ...]
    more: int = 0
    own: bool = True
    """Whether they are known to be the agent's: it works alone there, and they changed since it began."""
    for_secrets: tuple[str, ...] = ()
    """Those whose names are made for secrets: they are to stay uncommitted."""


@dataclass(frozen=True, slots=True)
class LostHelper:
    """A helper of the agent that did not end by itself."""

    name: str
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Failure:
    """How the agent's last iteration, or its run, went wrong."""

    what: str
    """The verdict and its reason, as `stalled: no_commits`."""
    kind: str
    """The status of the check, or `breaker`."""
    detail: str = ""
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ResumeEvidence:
    """All that a prompt is written from."""

    agent: Agent
    now: datetime
    silence: Silence
    task: NextTask | None = None
    mission: Mission | None = None
    priorities: tuple[str, ...] = ()
    left: LeftFiles | None = None
    lost: tuple[LostHelper, ...] = ()
    failures: tuple[Failure, ...] = ()
    findings: tuple[FoundOut, ...] = ()
    findings_more: int = 0
    warnings: tuple[str, ...] = ()
    """What the last check found committed with a secret in it, and what its rescue held back."""
    number: int = 1
    """Which prompt of this silence it is."""
    of: int = 1
    """How many prompts one silence may get."""
