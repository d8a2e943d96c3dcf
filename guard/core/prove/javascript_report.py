"""Read the JSON reports of jest and vitest, which have one shape."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from guard.core.prove.outcome import Fault, State, TestOutcome
from guard.core.prove.session_report import (
    MOST_TESTS,
    RunnerReport,
    merge_tests,
    safe_name,
    safe_text,
)

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_ASSERTION = re.compile(
    r"(?:Error: )?(?:expect[.(]|assert[.(]|AssertionError|JestAssertionError)"
    r"|Snapshot|toMatch|ERR_ASSERTION"
)
_NOT_FOUND = re.compile(
    r"Cannot find module|Failed to resolve import|does not provide an export named"
)
_GONE = re.compile(
    r"(?:TypeError|ReferenceError): .*(?:is not a function|is not a constructor|is not defined)"
)
_FRAME = re.compile(r"(/[^\s():]+):\d+:\d+\)?$", re.MULTILINE)
_TEST_FILE = re.compile(r"(?:^|[/.-])(?:tests?|spec|__tests__)(?:[/.-]|$)")
_STATES: dict[str, State] = {"passed": "passed", "failed": "failed"}


def read_javascript_reports(reports: Iterable[bytes], folder: str) -> RunnerReport:
    """Merge the tests of several reports, with files named from `folder`."""
    tests: dict[str, TestOutcome] = {}
    uncollected: dict[str, None] = {}
    problem = None
    for data in reports:
        try:
            report = json.loads(data)
            _read(report, folder, tests, uncollected)
            if report.get("wasInterrupted"):
                problem = "the test runner stopped before it had run all its tests"
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            problem = "the JSON report of the test runner is not whole"
        if len(tests) > MOST_TESTS:
            return RunnerReport(problem=f"the report names more than {MOST_TESTS} tests")
    return RunnerReport(tests, tuple(uncollected), problem=problem)


def _read(
    report: dict[str, Any],
    folder: str,
    tests: dict[str, TestOutcome],
    uncollected: dict[str, None],
) -> None:
    for suite in report["testResults"]:
        file = safe_name(suite["name"].removeprefix(f"{folder}/"))
        cases = suite["assertionResults"]
        has_failed = any(case["status"] == "failed" for case in cases)
        if suite["status"] == "failed" and not has_failed:
            uncollected[file] = None
        seen: Counter[str] = Counter()
        for case in cases:
            words = " > ".join(map(str, [*case.get("ancestorTitles", ()), case["title"]]))
            seen[words] += 1
            more = f" ({seen[words]})" if seen[words] > 1 else ""
            merge_tests(tests, _outcome(safe_name(f"{file}::{words}{more}"), file, case, folder))


def _outcome(name: str, file: str, case: dict[str, Any], folder: str) -> TestOutcome:
    state = _STATES.get(case["status"], "skipped")
    if state != "failed":
        return TestOutcome(name, file, state)
    text = _COLOURS.sub("", "\n".join(map(str, case.get("failureMessages") or ())))
    return TestOutcome(name, file, state, _fault(text, folder, file), safe_text(text))


def _fault(text: str, folder: str, file: str) -> Fault:
    first = text.strip().partition("\n")[0]
    if _ASSERTION.search(first):
        return "assertion"
    if _NOT_FOUND.search(first):
        return "cannot_run"
    places = (place[1] for place in _FRAME.finditer(text) if place[1].startswith(f"{folder}/"))
    place = next(places, "").removeprefix(f"{folder}/")
    is_of_test = bool(place) and (place == file or _TEST_FILE.search(place) is not None)
    return "cannot_run" if is_of_test and _GONE.match(first) else "error"
