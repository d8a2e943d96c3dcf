"""What pytest, cargo and jest keep for themselves about the tests that they ran or built."""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from guard.core.claims.test_results import Result, jest_perf_cache, pytest_lastfailed
from guard.system.bounded_walk import contents, listing

PYTEST, CARGO, JEST = ".pytest_cache", ".fingerprint", "perf-cache-*"
_MOST_ENTRIES = 10_000
_HASH = 16
_BINARY = re.compile(r"[^.]+-[0-9a-f]{16}")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class CacheFile(NamedTuple):
    """A file that a run wrote, by its time, and what it says."""

    at: float
    result: Result


def pytest_cache(folder: Path, since: float) -> CacheFile | None:
    """The last run: each writes the list of known tests, and that of the failures only if it changed.

    So failures that are older than `since` may have been repaired by whoever did not run them again, or not.
    """
    cache = folder / PYTEST / "v" / "cache"
    found = None if _is_led_elsewhere(folder, cache) else listing(cache, _MOST_ENTRIES)
    files = found.files if found else {}
    times = [
        files[name].st_mtime for name in ("nodeids", "stepwise", "lastfailed") if name in files
    ]
    if not times:
        return None
    failed = Result(True)
    if "lastfailed" in files:
        failed = pytest_lastfailed(contents(cache / "lastfailed") or b"")
        if failed.passed is False and files["lastfailed"].st_mtime < since:
            failed = Result(None, f"{failed.detail} before")
    return CacheFile(max(times), failed)


def _is_led_elsewhere(folder: Path, inner: Path) -> bool:
    return os.path.realpath(inner) != os.path.join(
        os.path.realpath(folder), inner.relative_to(folder)
    )


def cargo_tests(folder: Path) -> Iterator[CacheFile]:
    """The tests that were built in a folder of cargo's; whether they were run, and how that went, is kept nowhere.

    A check makes no program, and a second run of the same code writes nothing.
    """
    programs = listing(folder / "deps", _MOST_ENTRIES)
    built = {
        name[-_HASH:]: status.st_mtime
        for name, status in (programs.files.items() if programs else ())
        if _BINARY.fullmatch(name)
    }
    units = listing(folder / CARGO, _MOST_ENTRIES)
    for name in units.folders if units else ():
        at = built.get(name[-_HASH:])
        if at is not None and _is_of_a_test(folder / CARGO / name):
            yield CacheFile(at, Result(None, "built, perhaps run"))


def _is_of_a_test(unit: Path) -> bool:
    found = listing(unit, _MOST_ENTRIES)
    return found is not None and any(name.startswith("test-") for name in found.files)


def jest_caches(temporary: Path, root: Path) -> Iterator[CacheFile]:
    """The runs of tests below `root`, as jest keeps them unless it is told where to."""
    found = listing(temporary / f"jest_{_in_base_36(os.getuid())}", _MOST_ENTRIES)
    below = os.path.realpath(root) + os.sep
    for name, status in found.files.items() if found else ():
        if fnmatchcase(name, JEST):
            result = jest_perf_cache(contents(found.folder / name) or b"", below) if found else None
            if result is not None:
                yield CacheFile(status.st_mtime, result)


def _in_base_36(number: int) -> str:
    rest, digit = divmod(number, 36)
    return (_in_base_36(rest) if rest else "") + _DIGITS[digit]
