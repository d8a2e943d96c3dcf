"""What is looked at once for many agents: the commits of a work tree, its test runs, the processes of the machine."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, NamedTuple, TypeVar, cast

from guard.activity.foreign_json import document, named_in, newest_lines, objects
from guard.claims.changes import tracked_files
from guard.claims.test_traces import find_test_runs
from guard.core.claims.evidence import TestRun
from guard.git.authors import AuthoredCommit, branches, by_name, commits_since
from guard.git.locate import at
from guard.system.bounded_walk import FolderListing, listing
from guard.system.process_table import Stat, table

T = TypeVar("T")
_PAUSE_SECONDS = 0.3

Figures = Mapping[int, "Done"]


@dataclass(frozen=True)
class Done:
    """What one process has done so far."""

    name: str
    parent: int
    start: str
    cpu_seconds: float
    moved: int


class Reported(NamedTuple):
    """Something that an agent reported to guard."""

    seconds: float
    detail: str
    message: str


@dataclass(frozen=True)
class Period:
    """The time that counts, and by what a work tree is asked about it."""

    since: datetime
    now: datetime
    environ: Mapping[str, str]
    git_seconds: float


class Shared:
    """Answers that are the same for all who ask; each is found out by the first who does, others wait for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._locks: dict[object, Lock] = {}
        self._known: dict[object, Any] = {}

    def commits(self, root: Path, period: Period, *, head: bool) -> tuple[AuthoredCommit, ...]:
        """The newest commits of a work tree: of its own history only, or of all branches."""
        ask = partial(commits_since, at(root), period.since, period.environ, period.git_seconds)
        return self._once(("commits", root, head), lambda: tuple(ask(head=head)))

    def branches(self, root: Path, period: Period) -> tuple[str, ...]:
        """The branches of a repository."""
        ask = partial(branches, at(root), period.environ, period.git_seconds)
        return self._once(("branches", root), lambda: tuple(ask()))

    def branches_of(self, agent: str, root: Path, period: Period) -> list[str]:
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
            for one in newest_lines(path) if lines else objects(document(path, size)):
                for name in named_in(one, keys):
                    found.setdefault(name, []).append(one)
            return found

        return self._once(("naming", path, keys), read)

    def test_runs(self, root: Path, period: Period) -> tuple[TestRun, ...]:
        """The traces of test runs in a work tree."""

        def look() -> tuple[TestRun, ...]:
            known = tracked_files(at(root), period.environ, period.git_seconds)
            temporary = Path(period.environ.get("TMPDIR") or tempfile.gettempdir())
            return find_test_runs(root, period.since, period.now, known, temporary) or ()

        return self._once(("tests", root), look)

    def processes(self) -> tuple[Figures, Figures]:
        """What all processes had done a moment ago, and have done now."""
        return self._once("processes", _two_looks)

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


def _two_looks() -> tuple[Figures, Figures]:
    begun, before = monotonic(), _look()
    sleep(max(0.0, begun + _PAUSE_SECONDS - monotonic()))
    return before, _look()


def _look() -> Figures:
    return {stat.pid: _done(stat) for stat in table()}


def _done(stat: Stat) -> Done:
    return Done(stat.name, stat.parent, stat.start, stat.cpu_seconds, stat.moved)
