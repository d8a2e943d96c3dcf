"""The traces that runs of tests leave in a work tree: signs that somebody ran them, not proof, because anybody can write them.

Some leave nothing: `go test`, a second `cargo test` of the same code, pytest without its cache.
"""

import os
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from guard.claims.test_caches import (
    CARGO,
    JEST,
    PYTEST,
    CacheFile,
    cargo_tests,
    jest_caches,
    pytest_cache,
)
from guard.core.base.paths import spelled
from guard.core.base.text import plural, visible
from guard.core.claims.evidence import TestRun, TestSource
from guard.core.claims.test_results import Result, jest_perf_cache, junit
from guard.system.bounded_walk import MOST_BYTES, BoundedWalk, FolderListing, contents

MOST_ENTRIES = 50_000
MOST_RUNS = 100
TIME_LIMIT_SECONDS = 2.0
_MOST_DEPTH = 32
_MOST_READ = 2000
_MOST_REPORT = 256 * 1024
_AHEAD_SECONDS = 2
"""A file system on another machine may be ahead by so much."""
_SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "site-packages", "node_modules"}
    | {"__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis", ".gradle", ".idea", PYTEST}
)
_REPORTS = frozenset(
    {"test-results", "test-reports", "surefire-reports", "failsafe-reports", "reports", "junit"}
)
_COVERAGE = (".coverage", ".coverage.*", "coverage.xml", "lcov.info", "coverage-final.json")
_JUNIT = ("junit*.xml", "TEST-*.xml")


class _Trace(NamedTuple):
    source: TestSource
    folder: str
    seen: CacheFile


def test_runs(
    root: Path,
    since: datetime,
    now: datetime,
    tracked: Container[str],
    temporary: Path,
) -> tuple[TestRun, ...] | None:
    """The runs between the two times, one for each tool and folder; None if there was too much to look at, and nothing seen.

    What is `tracked` is no trace: git writes it at a checkout. Jest keeps its cache in a `temporary` folder.
    """
    look = _TraceSearch(root, since.timestamp(), now.timestamp() + _AHEAD_SECONDS, tracked)
    walk = BoundedWalk(root, _entered, MOST_ENTRIES, _MOST_DEPTH, TIME_LIMIT_SECONDS)
    traces = [trace for listing in walk for trace in look.traces(listing)]
    traces += [_Trace("jest", ".", seen) for seen in jest_caches(temporary, root)]
    groups: dict[tuple[TestSource, str], list[_Trace]] = {}
    for trace in filter(look.is_in_time, traces):
        groups.setdefault((trace.source, trace.folder), []).append(trace)
    runs = sorted(map(_run, groups.values()), key=lambda run: run.at)
    return tuple(runs[-MOST_RUNS:]) if runs or walk.whole else None


def _entered(listing: FolderListing) -> Iterable[str]:
    """All but what is skipped, and what cargo built."""
    if CARGO in listing.folders:
        return ()
    return [name for name in listing.folders if name not in _SKIPPED]


def _run(traces: list[_Trace]) -> TestRun:
    """Files of one tool in one folder are of one run."""
    first, said = traces[0], {trace.seen.result.passed for trace in traces}
    passed = False if False in said else None if None in said else True
    details = dict.fromkeys(
        trace.seen.result.detail for trace in traces if trace.seen.result.detail
    )
    files = plural(len(traces), "file")
    detail = ", ".join([f"{files} in {visible(first.folder)[:300]}", *details])
    at = datetime.fromtimestamp(max(trace.seen.at for trace in traces), UTC)
    return TestRun(first.source, at, passed, detail)


@dataclass(frozen=True)
class _TraceSearch:
    root: Path
    since: float
    until: float
    tracked: Container[str]
    _reads: Iterator[int] = field(default_factory=lambda: iter(range(_MOST_READ)))

    def is_in_time(self, trace: _Trace) -> bool:
        return self.since <= trace.seen.at <= self.until

    def traces(self, listing: FolderListing) -> Iterator[_Trace]:
        """What one folder tells; no file is read that is older."""
        folder = listing.folder
        for name, status in listing.files.items():
            source = self._source(folder, name) if status.st_mtime >= self.since else None
            result = self._result(source, folder / name) if source else None
            if source and result:
                yield self._trace(source, folder, CacheFile(status.st_mtime, result))
        kept = pytest_cache(folder, self.since) if PYTEST in listing.folders else None
        if kept is not None:
            yield self._trace("pytest", folder / PYTEST, kept)
        for seen in cargo_tests(folder) if CARGO in listing.folders else ():
            yield self._trace("cargo", folder, seen)

    def _source(self, folder: Path, name: str) -> TestSource | None:
        """The tool that writes files of this name, unless git has written this one."""
        is_report = name.endswith(".xml") and not _REPORTS.isdisjoint(self._relative(folder).parts)
        found: TestSource | None = (
            "coverage"
            if _matches(name, _COVERAGE)
            else "junit"
            if is_report or _matches(name, _JUNIT)
            else "jest"
            if fnmatchcase(name, JEST)
            else None
        )
        return found if found and self._name(folder / name) not in self.tracked else None

    def _result(self, source: TestSource, path: Path) -> Result | None:
        """What the file says; a great many are not all read."""
        if source == "coverage":
            return Result(None)
        if next(self._reads, None) is None:
            return Result(None, "not all were read")
        data = contents(path, _MOST_REPORT if source == "junit" else MOST_BYTES) or b""
        if source == "junit":
            return junit(data, whole=len(data) < _MOST_REPORT)
        return jest_perf_cache(data, "")

    def _trace(self, source: TestSource, folder: Path, seen: CacheFile) -> _Trace:
        return _Trace(source, self._name(folder), seen)

    def _relative(self, path: Path) -> Path:
        return path.relative_to(self.root)

    def _name(self, path: Path) -> str:
        return spelled(os.fsencode(self._relative(path)))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
