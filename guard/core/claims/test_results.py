"""What the files of test runners say of how a run went; each is taken from a file that anybody can have written."""

import re
from typing import Any, NamedTuple

from guard.core.base.strict_json import loads
from guard.core.base.text import plural

_SUITE = re.compile(rb"<testsuites?(?=[\s/>])([^<>]{0,4096}+)>")
_COUNT = re.compile(rb"\s(tests|failures|errors)\s*=\s*[\"'](\d{1,9})[\"']")
_JEST_FAILED = 0


class Result(NamedTuple):
    """How a run went; `passed` is None if that cannot be told."""

    passed: bool | None
    detail: str = ""


def junit(data: bytes, *, whole: bool = True) -> Result | None:
    """By the counts in the first tags of its suites; None if it has no suites.

    Of a file that was cut off, only the first tag can speak for all. No parser of XML reads it: that would expand what the
    file defines.
    """
    suites = [dict(_COUNT.findall(attributes)) for attributes in _SUITE.findall(data)]
    if not suites:
        return None
    if any(int(suite.get(name, 0)) for suite in suites for name in (b"failures", b"errors")):
        return Result(False, "some failed")
    tests = sum(int(suite.get(b"tests", 0)) for suite in (suites if whole else suites[:1]))
    return Result(True) if tests else Result(None, "no tests" if whole else "too long")


def pytest_lastfailed(data: bytes) -> Result:
    """What failed when it was last run; the file is written only when that changes."""
    told = _object(data)
    return Result(None, "unreadable") if told is None else _result(len(told))


def jest_perf_cache(data: bytes, below: str) -> Result | None:
    """How each test whose path begins so went when it was last run; None if there is none."""
    told = _object(data) or {}
    runs = [one for name, one in told.items() if name.startswith(below)]
    if not runs or not all(isinstance(one, list) and one for one in runs):
        return None
    return _result(sum(one[0] == _JEST_FAILED for one in runs))


def _result(failed: int) -> Result:
    return Result(not failed, f"{plural(failed, 'failure')}" if failed else "")


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        told = loads(data)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None
