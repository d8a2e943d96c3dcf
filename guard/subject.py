"""What a check is about: one iteration in one work tree, with what is known of its agent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from guard.baselines import Baseline
from guard.core.classify import Classification
from guard.core.evidence import Cutoff
from guard.git.locate import Repository


@dataclass(frozen=True)
class Subject:
    """The iteration, where it happens, and whom to ask about it."""

    repository: Repository
    workspace: Path
    environ: Mapping[str, str]
    baseline: Baseline
    run: str
    iteration: int
    agent: str | None = None
    session: str | None = None
    spec: str | None = None
    output: Classification | None = None
    """What the agent's output means, where guard saw it."""
    agent_ended: Callable[[], bool] = bool
    """Whether the agent's own process is known to have ended."""
    ended_by_guard: Cutoff | None = None
    watched_until: float | None = None
    """When guard last watched over it, if it was left alone since: what changed later may be somebody else's."""
    aside: frozenset[str] = frozenset()
    """What earlier checks found to have changed while nobody watched."""
    others: Callable[[], frozenset[str]] = frozenset
    """The refs on which other iterations work, as of now."""
