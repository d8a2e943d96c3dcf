"""Whom a collector looks at, and how far it may go for it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from guard.activity.shared import Period, Shared
from guard.core.activity.assessment import Signal
from guard.core.activity.sources import SourceName
from guard.core.agents import Agent
from guard.core.settings import Activity


class TooMuch(Exception):
    """There was more to look through than a collector may; what it saw until then counts."""


@dataclass(frozen=True)
class Subject:
    """One agent, the work tree in which it works, and the time that counts."""

    agent: Agent
    root: Path | None
    """The work tree, if one is known."""
    alone: bool
    """Whether nobody else is known to work in that work tree: only then is what changes there this agent's."""
    now: datetime
    settings: Activity
    session: tuple[str, str] | None = None
    """Which agent's program it runs, and the id of its session there."""
    environ: Mapping[str, str] = field(default_factory=dict)
    git_seconds: float = 10.0
    shared: Shared = field(default_factory=Shared)

    @property
    def since(self) -> datetime:
        """What is older proves nothing."""
        return self.now - timedelta(minutes=self.settings.lookback_minutes)

    @property
    def period(self) -> Period:
        """The time that counts, for questions that others may ask too."""
        most = self.settings.most_events
        return Period(self.since, self.now, most, self.environ, self.git_seconds)

    def signal(
        self, source: SourceName, seconds: float, detail: str, message: str = ""
    ) -> Signal | None:
        """A sign at this time, in seconds since the epoch; None if that is too long ago to count, or no time at all."""
        try:
            at = datetime.fromtimestamp(seconds, UTC)
        except (OverflowError, ValueError, OSError):
            return None
        if at < self.since:
            return None
        return Signal(source=source, at=at, detail=detail[:512], message=message[:8192])


Collect = Callable[[Subject], Iterable[Signal | None]]


class Collector(NamedTuple):
    """One source of signs. It yields what it finds, and None for what is too old; whatever it raises, it fails alone."""

    source: SourceName
    collect: Collect
