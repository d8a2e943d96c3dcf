"""Find the traces that test runs leave in a work tree: signs of a run, not proof, because any process can write them.

Some runs leave none: `go test`, a second `cargo test` of the same code, pytest without its cache.
"""

import os
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from guard.core.base.paths import spell
from guard.core.base.text import escape, plural
from guard.core.claims.evidence import TestRun, TestSource
from guard.core.claims.test_results import Result, read_jest_cache, read_junit, read_pytest_failures
from guard.system.foreign_files import (
    MOST_BYTES,
    BoundedWalk,
    FolderListing,
    list_folder,
    read_beginning,
)

PYTEST, CARGO, JEST = ".pytest_cache", ".fingerprint", "perf-cache-*"
_MOST_ENTRIES = 10_000
_HASH = 16
_BINARY = re.compile(r"[^.]+-[0-9a-f]{16}")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class CacheFile(NamedTuple):
    """A file written by a test run: when, and with which result."""

    at: float
    result: Result


def read_pytest_cache(folder: Path, since: float) -> CacheFile | None:
    # Each run writes the list of known tests, but the failures only if they changed.
    cache = folder / PYTEST / "v" / "cache"
    found = None if _leads_elsewhere(folder, cache) else list_folder(cache, _MOST_ENTRIES)
    files = found.files if found else {}
    times = [
        files[name].st_mtime for name in ("nodeids", "stepwise", "lastfailed") if name in files
    ]
    if not times:
        return None
    failed = Result(True)
    if "lastfailed" in files:
        failed = read_pytest_failures(read_beginning(cache / "lastfailed") or b"")
        # Older failures may have been fixed without another run, or not.
        if failed.passed is False and files["lastfailed"].st_mtime < since:
            failed = Result(None, f"{failed.detail} before")
    return CacheFile(max(times), failed)


def _leads_elsewhere(folder: Path, inner: Path) -> bool:
    return os.path.realpath(inner) != os.path.join(
        os.path.realpath(folder), inner.relative_to(folder)
    )


def find_cargo_tests(folder: Path) -> Iterator[CacheFile]:
    # Cargo builds the test programs, but does not record whether they were run.
    # `cargo check` builds no program, and a second run of the same code writes nothing.
    programs = list_folder(folder / "deps", _MOST_ENTRIES)
    built = {
        name[-_HASH:]: status.st_mtime
        for name, status in (programs.files.items() if programs else ())
        if _BINARY.fullmatch(name)
    }
    units = list_folder(folder / CARGO, _MOST_ENTRIES)
    for name in units.folders if units else ():
        at = built.get(name[-_HASH:])
        if at is not None and _is_test_unit(folder / CARGO / name):
            yield CacheFile(at, Result(None, "built, perhaps run"))


def _is_test_unit(unit: Path) -> bool:
    found = list_folder(unit, _MOST_ENTRIES)
    return found is not None and any(name.startswith("test-") for name in found.files)


def find_jest_caches(temporary: Path, root: Path) -> Iterator[CacheFile]:
    # Jest's default cache folder lies in the temporary folder.
    found = list_folder(temporary / f"jest_{_in_base_36(os.getuid())}", _MOST_ENTRIES)
    if found is None:
        return
    below = os.path.realpath(root) + os.sep
    for name, status in found.files.items():
        if fnmatchcase(name, JEST):
            result = read_jest_cache(read_beginning(found.folder / name) or b"", below)
            if result is not None:
                yield CacheFile(status.st_mtime, result)


def _in_base_36(number: int) -> str:
    rest, digit = divmod(number, 36)
    return (_in_base_36(rest) if rest else "") + _DIGITS[digit]


MOST_ENTRIES = 50_000
MOST_RUNS = 100
TIME_LIMIT_SECONDS = 2.0
_MOST_DEPTH = 32
_MOST_READ = 2000
_MOST_REPORT = 256 * 1024
_AHEAD_SECONDS = 2
"""The clock of a remote file system may be ahead by so much."""
_SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "site-packages", "node_modules"}
    | {"__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis", ".gradle", ".idea", PYTEST}
)
_REPORTS = frozenset(
    {"test-results", "test-reports", "surefire-reports", "failsafe-reports", "reports", "junit"}
)
_NAMES: dict[TestSource, tuple[str, ...]] = {
    "coverage": (".coverage", ".coverage.*", "coverage.xml", "lcov.info", "coverage-final.json"),
    "junit": ("junit*.xml", "TEST-*.xml"),
    "jest": (JEST,),
}


class _Trace(NamedTuple):
    source: TestSource
    folder: str
    seen: CacheFile


def find_test_runs(
    root: Path,
    since: datetime,
    now: datetime,
    tracked: Container[str],
    temporary: Path,
) -> tuple[TestRun, ...] | None:
    """Find the runs between the two times, one per tool and folder; None if the search was cut short and found nothing.

    A `tracked` file is no trace, because git writes it at a checkout. Jest keeps its cache in the `temporary` folder.
    """
    look = _TraceSearch(root, since.timestamp(), now.timestamp() + _AHEAD_SECONDS, tracked)
    walk = BoundedWalk(root, _folders_to_enter, MOST_ENTRIES, _MOST_DEPTH, TIME_LIMIT_SECONDS)
    traces = [trace for listing in walk for trace in look.traces(listing)]
    traces += [_Trace("jest", ".", seen) for seen in find_jest_caches(temporary, root)]
    groups: dict[tuple[TestSource, str], list[_Trace]] = {}
    for trace in filter(look.is_in_time, traces):
        groups.setdefault((trace.source, trace.folder), []).append(trace)
    runs = sorted(map(_combine, groups.values()), key=lambda run: run.at)
    return tuple(runs[-MOST_RUNS:]) if runs or walk.whole else None


def _folders_to_enter(listing: FolderListing) -> Iterable[str]:
    if CARGO in listing.folders:
        return ()
    return [name for name in listing.folders if name not in _SKIPPED]


def _combine(traces: list[_Trace]) -> TestRun:
    first, verdicts = traces[0], {trace.seen.result.passed for trace in traces}
    passed = False if False in verdicts else None if None in verdicts else True
    details = dict.fromkeys(
        trace.seen.result.detail for trace in traces if trace.seen.result.detail
    )
    files = plural(len(traces), "file")
    detail = ", ".join([f"{files} in {escape(first.folder)[:300]}", *details])
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
        # Older files are not read.
        folder = listing.folder
        for name, status in listing.files.items():
            source = self._source(folder, name) if status.st_mtime >= self.since else None
            result = self._result(source, folder / name) if source else None
            if source and result:
                yield self._trace(source, folder, CacheFile(status.st_mtime, result))
        kept = read_pytest_cache(folder, self.since) if PYTEST in listing.folders else None
        if kept is not None:
            yield self._trace("pytest", folder / PYTEST, kept)
        for seen in find_cargo_tests(folder) if CARGO in listing.folders else ():
            yield self._trace("cargo", folder, seen)

    def _source(self, folder: Path, name: str) -> TestSource | None:
        # None if the file is tracked, or no tool writes files of this name.
        found = next((tool for tool, names in _NAMES.items() if _matches(name, names)), None)
        is_report = name.endswith(".xml") and not _REPORTS.isdisjoint(
            self._relative_path(folder).parts
        )
        if is_report and found != "coverage":
            found = "junit"
        return found if found and self._name(folder / name) not in self.tracked else None

    def _result(self, source: TestSource, path: Path) -> Result | None:
        if source == "coverage":
            return Result(None)
        if next(self._reads, None) is None:
            return Result(None, "not all were read")
        data = read_beginning(path, _MOST_REPORT if source == "junit" else MOST_BYTES) or b""
        if source == "junit":
            return read_junit(data, whole=len(data) < _MOST_REPORT)
        return read_jest_cache(data, "")

    def _trace(self, source: TestSource, folder: Path, seen: CacheFile) -> _Trace:
        return _Trace(source, self._name(folder), seen)

    def _relative_path(self, path: Path) -> Path:
        return path.relative_to(self.root)

    def _name(self, path: Path) -> str:
        return spell(os.fsencode(self._relative_path(path)))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
