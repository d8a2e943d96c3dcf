"""The agent that a collector looks at, with bounds, and scans of the machine and of work trees that agents share."""

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
from guard.core.base.text import utf8_text
from guard.core.claims.evidence import TestRun
from guard.git.authors import AuthoredCommit, branches_by_agent, list_branches, list_commits_since
from guard.git.locate import repository_at
from guard.git.reader import RepositoryReader
from guard.system.clock import Clock
from guard.system.foreign_files import FolderListing, list_folder
from guard.system.process_table import list_processes
from guard.system.process_work import WorkCounts

T = TypeVar("T")
_PAUSE_SECONDS = 0.3
Figures = Mapping[int, "ProcessFigures"]


@dataclass(frozen=True)
class ProcessFigures:
    """What one process has done so far, read at one moment."""

    name: str
    parent: int
    start: str
    counts: WorkCounts


class ReportedWord(NamedTuple):
    """An update, finding or test run that an agent reported to guard."""

    seconds: float
    detail: str
    message: str


@dataclass(frozen=True)
class ScanPeriod:
    """The time that counts, and how long and with which environment git is asked about it."""

    since: datetime
    now: datetime
    environ: Mapping[str, str]
    git_seconds: float

    def reader(self, root: Path) -> RepositoryReader:
        return RepositoryReader(repository_at(root), self.environ, self.git_seconds)


class SharedScan:
    """Answers that are the same for all agents: the first that asks computes one, and the others wait for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._locks: dict[object, Lock] = {}
        self._known: dict[object, Any] = {}

    def commits(self, root: Path, period: ScanPeriod, *, head: bool) -> tuple[AuthoredCommit, ...]:
        """The newest commits of a work tree, of HEAD only or of all branches."""
        git = period.reader(root)
        ask = partial(list_commits_since, git, period.since, head=head)
        return self._find_once(("commits", root, head), lambda: tuple(ask()))

    def branches(self, root: Path, period: ScanPeriod) -> tuple[str, ...]:
        git = period.reader(root)
        return self._find_once(("branches", root), lambda: tuple(list_branches(git)))

    def branches_of(self, agent: str, root: Path, period: ScanPeriod) -> list[str]:
        names = self.branches(root, period)
        found = self._find_once(("named branches", root), lambda: branches_by_agent(names))
        return found.get(agent.lower(), [])

    def listing(self, folder: Path, most: int) -> FolderListing | None:
        return self._find_once(("listing", folder), lambda: list_folder(folder, most))

    def objects_by_name(
        self, path: Path, size: int, keys: tuple[str, ...]
    ) -> Mapping[str, list[dict[str, Any]]]:
        """The objects in a file by the agent they name, so that each agent need not search all of them."""

        def read() -> dict[str, list[dict[str, Any]]]:
            found: dict[str, list[dict[str, Any]]] = {}
            lines = path.suffix == ".jsonl"
            for item in read_newest_lines(path) if lines else objects_in(read_document(path, size)):
                for name in names_in(item, keys):
                    found.setdefault(name, []).append(item)
            return found

        return self._find_once(("naming", path, keys), read)

    def test_runs(self, root: Path, period: ScanPeriod) -> tuple[TestRun, ...]:
        def find() -> tuple[TestRun, ...]:
            git = RepositoryReader(repository_at(root), period.environ, period.git_seconds)
            known = tracked_files(git)
            temporary = Path(period.environ.get("TMPDIR") or tempfile.gettempdir())
            return find_test_runs(root, period.since, period.now, known, temporary) or ()

        return self._find_once(("tests", root), find)

    def processes(self) -> tuple[Figures, Figures, float]:
        """Return two looks at all processes, and the seconds between them."""
        return self._find_once("processes", _read_twice)

    def _find_once(self, key: object, find: Callable[[], T]) -> T:
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


def _read_twice() -> tuple[Figures, Figures, float]:
    begun, before = monotonic(), _read_processes()
    sleep(max(0.0, begun + _PAUSE_SECONDS - monotonic()))
    return before, _read_processes(), monotonic() - begun


def _read_processes() -> Figures:
    return {
        process.pid: ProcessFigures(
            process.name,
            process.parent,
            process.start,
            WorkCounts(process.cpu_seconds, process.read, process.written),
        )
        for process in list_processes()
    }


class TooMuch(Exception):
    """There is more to look through than a collector may; the signs found until then count."""


class PartialTrouble(NamedTuple):
    """Why one part of a source could not be read; the rest of the source counts."""

    why: str


Sign = Signal | PartialTrouble | None
"""What a collector yields; None for a sign that is too old."""


@dataclass(frozen=True)
class AgentSubject:
    """One agent, its work tree, and the time that counts."""

    agent: Agent
    root: Path | None
    is_alone: bool
    """Whether the work tree is the agent's own: only then is every change there this agent's."""
    clock: Clock
    settings: ActivitySettings
    reports: tuple[ReportedWord, ...] = ()
    """The agent's latest reports to guard, the newest last."""
    claims: tuple[Claim, ...] = ()
    """The agent's latest events in the plan, the newest last."""
    session: tuple[str, str] | None = None
    """Which agent CLI it runs, and the id of its session there."""
    guard_folder: Path | None = None
    """The folder of guard's own state: what changes there is no sign."""
    environ: Mapping[str, str] = field(default_factory=dict)
    git_seconds: float = 10.0
    shared: SharedScan = field(default_factory=SharedScan)
    reach_minutes: float | None = None
    """How far back signs are gathered to learn the rhythm, beyond the time in which they count."""
    watched: WatchedAgent | None = None
    """The prompts that it was sent and the lessons from them, if any."""
    gaps: tuple[Gap, ...] = ()
    """When the machine that it runs on slept or was off."""

    @property
    def now(self) -> datetime:
        return self.clock.now()  # Not fixed: a survey takes time, and each look has its own moment.

    @property
    def now_seconds(self) -> float:
        return self.now.timestamp()

    @property
    def since(self) -> datetime:
        """Signs before this are not gathered, nor are signs from before the agent was spawned."""
        return max(self._gathered_since, self.agent.spawned_at)

    @property
    def counts_since(self) -> datetime:
        """Signs before this prove nothing."""
        return max(window_start(self.now, self.settings.lookback_minutes, self.gaps), self.since)

    @property
    def _gathered_since(self) -> datetime:
        counting = window_start(self.now, self.settings.lookback_minutes, self.gaps)
        if self.reach_minutes is None:
            return counting
        return min(counting, self.now - timedelta(minutes=self.reach_minutes))

    @property
    def period(self) -> ScanPeriod:
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
        """Make a signal from a time in seconds since the epoch; None if that is too old, or no valid time."""
        try:
            at = datetime.fromtimestamp(seconds, UTC)
        except (OverflowError, ValueError, OSError):
            return None
        if at < self.since:
            return None
        return Signal(
            source=source,
            at=at,
            detail=utf8_text(detail)[:512],
            message=utf8_text(message)[:8192],
            custom_tier=tier,
        )


Collect = Callable[[AgentSubject], Iterable[Sign]]


class Collector(NamedTuple):
    """One source of signs. An error that it raises stops it alone, and the signs found before count."""

    source: AnySource
    collect: Collect
    custom_tier: Tier | None = None
    """The tier of a plugin's source; guard's own sources have theirs in a table."""

    @property
    def tier(self) -> Tier:
        return find_source(self.source, self.custom_tier).tier
