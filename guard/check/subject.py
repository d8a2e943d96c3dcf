"""What a check is about: one iteration in one work tree, with what is known of its agent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from guard.core.check.evidence import Cutoff
from guard.core.check.settings import CheckSettings
from guard.core.classify import Classification
from guard.git.locate import Repository
from guard.iteration.baseline import Baseline
from guard.team import TeamStanding

if TYPE_CHECKING:
    from guard.probe import ProbeQuestion, Topic


@dataclass(frozen=True)
class CheckSubject:
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
    team: Callable[[], TeamStanding] = TeamStanding
    """The team of its session, as of now."""

    def question(
        self, check: CheckSettings, now: datetime, most: float = inf, topic: "Topic | None" = None
    ) -> "ProbeQuestion":
        """What to ask its agent, in at most so many seconds: about the session's state, or about another topic."""
        from guard.probe import ProbeQuestion

        assert self.agent is not None
        return ProbeQuestion(
            agent=self.agent,
            session=self.session,
            command=check.probe_command or None,
            model=check.probe_model or None,
            cwd=self.repository.root,
            time_limit=min(check.probe_timeout_seconds, most),
            environ=self.environ,
            now=now,
            topic=topic,
        )
