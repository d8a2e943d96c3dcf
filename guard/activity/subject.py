"""Whom a collector looks at, and how far it may go for it."""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, NamedTuple, TypeVar, cast

from guard.activity.foreign_json import names_in, objects_in, read_document, read_newest_lines
from guard.claims.changes import tracked_files
from guard.claims.test_traces import find_test_runs
from guard.core.activity.assess import Signal
from guard.core.activity.clocks import Gap, window_start
from guard.core.activity.plan_events import Claim
from guard.core.activity.settings import ActivitySettings
from guard.core.activity.sources import AnySource, Tier, find_source
from guard.core.activity.state import WatchedAgent
from guard.core.agents.agent import Agent
from guard.core.base.text import valid
from guard.core.claims.evidence import TestRun
from guard.git.authors import AuthoredCommit, branches, by_name, commits_since
from guard.git.locate import at
from guard.system.bounded_walk import FolderListing, listing
from guard.system.clock import Clock
from guard.system.process_table import Stat, table

T = TypeVar("T")
_PAUSE_SECONDS = 0.3
Figures = Mapping[int, "ProcessFigures"]


@dataclass(frozen=True)
class ProcessFigures:
    """What one process has done so far."""

    name: str
    parent: int
    start: str
    cpu_seconds: float
    moved: int


class ReportedWord(NamedTuple):
    """Something that an agent reported to guard."""

    seconds: float
    detail: str
    message: str


@dataclass(frozen=True)
class ScanPeriod:
    """The time that counts, and by what a work tree is asked about it."""

    since: datetime
    now: datetime
    environ: Mapping[str, str]
    git_seconds: float


class SharedScan:
    """Answers that are the same for all who ask; each is found out by the first who does, others wait for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._locks: dict[object, Lock] = {}
        self._known: dict[object, Any] = {}

    def commits(self, root: Path, period: ScanPeriod, *, head: bool) -> tuple[AuthoredCommit, ...]:
        """The newest commits of a work tree: of its own history only, or of all branches."""
        ask = partial(commits_since, at(root), period.since, period.environ, period.git_seconds)
        return self._once(("commits", root, head), lambda: tuple(ask(head=head)))

    def branches(self, root: Path, period: ScanPeriod) -> tuple[str, ...]:
        """The branches of a repository."""
        ask = partial(branches, at(root), period.environ, period.git_seconds)
        return self._once(("branches", root), lambda: tuple(ask()))

    def branches_of(self, agent: str, root: Path, period: ScanPeriod) -> list[str]:
        """Those that name an agent."""
        names = self.branches(root, period)
        found = self._once(("named branches", root), lambda: by_name(names))
        return found.get(agent.lower(), [])

    def listing(self, folder: Path, most: int) -> FolderListing | None:
        """What is in a folder that several agents look into."""
        return self._once(("listing", folder), lambda: listing(folder, most))

    def naming(
        self, path: Path, size: int, keys: tuple[str, ...]
    ) -> Mapping[str, list[dict[str, Any]]]:
        """The objects in a file by whom they name: what one agent among many looks for is not searched in all."""

        def read() -> dict[str, list[dict[str, Any]]]:
            found: dict[str, list[dict[str, Any]]] = {}
            lines = path.suffix == ".jsonl"
            for one in read_newest_lines(path) if lines else objects_in(read_document(path, size)):
                for name in names_in(one, keys):
                    found.setdefault(name, []).append(one)
            return found

        return self._once(("naming", path, keys), read)

    def test_runs(self, root: Path, period: ScanPeriod) -> tuple[TestRun, ...]:
        """The traces of test runs in a work tree."""

        def look() -> tuple[TestRun, ...]:
            known = tracked_files(at(root), period.environ, period.git_seconds)
            temporary = Path(period.environ.get("TMPDIR") or tempfile.gettempdir())
            return find_test_runs(root, period.since, period.now, known, temporary) or ()

        return self._once(("tests", root), look)

    def processes(self) -> tuple[Figures, Figures]:
        """What all processes had done a moment ago, and have done now."""
        return self._once("processes", _read_twice)

    def _once(self, key: object, find: Callable[[], T]) -> T:
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            if key not in self._known:
                try:
                    self._known[key] = find()
                except Exception as error:
                    self._known[key] = error
        found = self._known[key]
        if isinstance(found, Exception):
            raise found
        return cast(T, found)


def _read_twice() -> tuple[Figures, Figures]:
    begun, before = monotonic(), _read_processes()
    sleep(max(0.0, begun + _PAUSE_SECONDS - monotonic()))
    return before, _read_processes()


def _read_processes() -> Figures:
    return {stat.pid: _figures_of(stat) for stat in table()}


def _figures_of(stat: Stat) -> ProcessFigures:
    return ProcessFigures(stat.name, stat.parent, stat.start, stat.cpu_seconds, stat.moved)


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
    is_alone: bool
    """Whether no other agent is known to work in that work tree: only then is every change there this agent's."""
    clock: Clock
    settings: ActivitySettings
    reports: tuple[ReportedWord, ...] = ()
    """What it reported to guard lately, the newest last."""
    claims: tuple[Claim, ...] = ()
    """What the coordinator recorded of it lately, the newest last."""
    session: tuple[str, str] | None = None
    """Which agent's program it runs, and the id of its session there."""
    guard_folder: Path | None = None
    """The folder of guard's own state: what changes there is no sign."""
    environ: Mapping[str, str] = field(default_factory=dict)
    git_seconds: float = 10.0
    shared: SharedScan = field(default_factory=SharedScan)
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
    def now_seconds(self) -> float:
        return self.now.timestamp()

    @property
    def since(self) -> datetime:
        """What is older is not gathered; nor is what was before the agent."""
        return max(self._gathered_since, self.agent.spawned_at)

    @property
    def counts_since(self) -> datetime:
        """What is older proves nothing."""
        return max(window_start(self.now, self.settings.lookback_minutes, self.gaps), self.since)

    @property
    def _gathered_since(self) -> datetime:
        counting = window_start(self.now, self.settings.lookback_minutes, self.gaps)
        if self.reach_minutes is None:
            return counting
        return min(counting, self.now - timedelta(minutes=self.reach_minutes))

    @property
    def period(self) -> ScanPeriod:
        """The time that counts, for questions that others may ask too."""
        return ScanPeriod(self._gathered_since, self.now, self.environ, self.git_seconds)

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
        return find_source(self.source, self.custom_tier).tier
