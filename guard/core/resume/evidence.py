"""What is known of an agent that is to be brought back: facts with their origin, each of which may be missing."""

from dataclasses import dataclass
from datetime import datetime

from guard.core.agents.agent import Agent
from guard.core.plan.model import PlanTask


@dataclass(frozen=True, slots=True)
class Silence:
    """How long nothing was seen of the agent, and by what that is known."""

    minutes: float | None
    """None if nothing was ever seen of it."""
    known_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NextTask:
    """The task of the plan that is the agent's to do next."""

    task: PlanTask
    claimed: bool
    """Whether it is the agent's now, or only the next that is free."""


@dataclass(frozen=True, slots=True)
class Mission:
    """What the agent last said of its work that means something."""

    said: str
    at: datetime
    progress: int | None = None


@dataclass(frozen=True, slots=True)
class LeftFiles:
    """Files that are not committed."""

    names: tuple[str, ...]
    more: int = 0
    own: bool = True
    """Whether they are known to be the agent's: nobody else works there, and they changed since it began."""


@dataclass(frozen=True, slots=True)
class LostHelper:
    """A helper of the agent that did not end by itself."""

    name: str
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Failure:
    """How its last iteration, or the run it is in, went wrong."""

    what: str
    """The verdict in its own words, as `limited: usage limit`."""
    kind: str
    """The status of the check, or `breaker`."""
    detail: str = ""
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """Something that the agent had found out."""

    severity: str
    text: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeEvidence:
    """All that a prompt is made from."""

    agent: Agent
    now: datetime
    silence: Silence
    task: NextTask | None = None
    mission: Mission | None = None
    priorities: tuple[str, ...] = ()
    left: LeftFiles | None = None
    lost: tuple[LostHelper, ...] = ()
    failures: tuple[Failure, ...] = ()
    findings: tuple[ReportedFinding, ...] = ()
    findings_more: int = 0
    number: int = 1
    """The how manieth prompt of this silence it is,"""
    of: int = 1
    """and how many there are."""
