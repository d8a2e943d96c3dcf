"""Whom a collector looks at, and how far it may go for it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from guard.activity.shared_scan import Period, Reported, Shared
from guard.core.activity.assess import Signal
from guard.core.activity.gaps import Gap, oldest
from guard.core.activity.plan_events import Claim
from guard.core.activity.settings import ActivitySettings
from guard.core.activity.sources import AnySource, Tier, worth
from guard.core.activity.watched import WatchedAgent
from guard.core.agents.agent import Agent
from guard.core.base.text import valid
from guard.system.clock import Clock


class TooMuch(Exception):
    """There was more to look through than a collector may; what it saw until then counts."""


class PartialTrouble(NamedTuple):
    """A part of a source that could not tell; the rest of it can."""

    why: str


Sign = Signal | PartialTrouble | None
"""What a collector yields; None for what is too old to count."""


@dataclass(frozen=True)
class AgentSubject:
    """One agent, the work tree in which it works, and the time that counts."""

    agent: Agent
    root: Path | None
    """The work tree, if one is known."""
    alone: bool
    """Whether nobody else is known to work in that work tree: only then is what changes there this agent's."""
    clock: Clock
    settings: ActivitySettings
    reports: tuple[Reported, ...] = ()
    """What it reported to guard lately, the newest last."""
    claims: tuple[Claim, ...] = ()
    """What the coordinator recorded of it lately, the newest last."""
    session: tuple[str, str] | None = None
    """Which agent's program it runs, and the id of its session there."""
    not_its: Path | None = None
    """A folder that is guard's own, wherever it lies."""
    environ: Mapping[str, str] = field(default_factory=dict)
    git_seconds: float = 10.0
    shared: Shared = field(default_factory=Shared)
    reach_minutes: float | None = None
    """How far back signs are gathered, where that is further than they count: the rhythm is in the older ones."""
    watched: WatchedAgent | None = None
    """What is known from watching it until now."""
    gaps: tuple[Gap, ...] = ()
    """When the machine that it runs on slept or was off."""

    @property
    def now(self) -> datetime:
        """The time of the look: others that were looked at before have taken some."""
        return self.clock.now()

    @property
    def latest(self) -> float:
        """The same in seconds since the epoch."""
        return self.now.timestamp()

    @property
    def since(self) -> datetime:
        """What is older is not gathered; nor is what was before the agent."""
        return max(self._reached, self.agent.spawned_at)

    @property
    def counts_since(self) -> datetime:
        """What is older proves nothing."""
        return max(oldest(self.now, self.settings.lookback_minutes, self.gaps), self.since)

    @property
    def _reached(self) -> datetime:
        counting = oldest(self.now, self.settings.lookback_minutes, self.gaps)
        if self.reach_minutes is None:
            return counting
        return min(counting, self.now - timedelta(minutes=self.reach_minutes))

    @property
    def period(self) -> Period:
        """The time that counts, for questions that others may ask too."""
        return Period(self._reached, self.now, self.environ, self.git_seconds)

    def signal(
        self,
        source: AnySource,
        seconds: float,
        detail: str,
        message: str = "",
        *,
        tier: Tier | None = None,
    ) -> Signal | None:
        """A sign at this time, in seconds since the epoch; None if that is too long ago to count, or no time at all."""
        try:
            at = datetime.fromtimestamp(seconds, UTC)
        except (OverflowError, ValueError, OSError):
            return None
        if at < self.since:
            return None
        return Signal(
            source=source,
            at=at,
            detail=valid(detail)[:512],
            message=valid(message)[:8192],
            custom_tier=tier,
        )


Collect = Callable[[AgentSubject], Iterable[Sign]]


class Collector(NamedTuple):
    """One source of signs. Whatever it raises, it fails alone, and what it found before counts."""

    source: AnySource
    collect: Collect
    custom_tier: Tier | None = None
    """Of a source that is not guard's own."""

    @property
    def tier(self) -> Tier:
        return worth(self.source, self.custom_tier).tier
