"""Read the result of a test run from the files of test runners; any process could have written these files."""

import re
from typing import Any, NamedTuple

from guard.core.base.json_text import loads
from guard.core.base.text import plural

_SUITE = re.compile(rb"<testsuites?(?=[\s/>])([^<>]{0,4096}+)>")
_COUNT = re.compile(rb"\s(tests|failures|errors)\s*=\s*[\"'](\d{1,9})[\"']")
_JEST_FAILED = 0


class Result(NamedTuple):
    """The result of a test run; `passed` is None if the file does not show it."""

    passed: bool | None
    detail: str = ""


def read_junit(data: bytes, *, whole: bool = True) -> Result | None:
    """Read the counts in the opening tags of the suites; return None if there is no suite.

    Only the first tag of a truncated file (`whole=False`) counts for all. No XML parser is used: it would expand the entities
    that the file defines.
    """
    suites = [dict(_COUNT.findall(attributes)) for attributes in _SUITE.findall(data)]
    if not suites:
        return None
    if any(int(suite.get(name, 0)) for suite in suites for name in (b"failures", b"errors")):
        return Result(False, "some failed")
    tests = sum(int(suite.get(b"tests", 0)) for suite in (suites if whole else suites[:1]))
    return Result(True) if tests else Result(None, "no tests" if whole else "too long")


def read_pytest_failures(data: bytes) -> Result:
    # Pytest writes its `lastfailed` file only when the failures change.
    failures = _load_object(data)
    return Result(None, "unreadable") if failures is None else _from_failures(len(failures))


def read_jest_cache(data: bytes, below: str) -> Result | None:
    """Read the last results of the tests whose path begins with `below`; return None if there are none."""
    results = _load_object(data) or {}
    runs = [run for name, run in results.items() if name.startswith(below)]
    if not runs or not all(isinstance(run, list) and run for run in runs):
        return None
    return _from_failures(sum(run[0] == _JEST_FAILED for run in runs))


def _from_failures(failed: int) -> Result:
    return Result(not failed, f"{plural(failed, 'failure')}" if failed else "")


def _load_object(data: bytes) -> dict[str, Any] | None:
    try:
        document = loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
