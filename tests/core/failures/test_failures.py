"""Failures: their kinds and causes by what the tools print, and who is warned of what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.failures.diagnose import KINDS, MOST_CHARACTERS, failure_cause, failure_kind
from guard.core.failures.pattern import MOST_CAUSES, FailurePattern, FailureWarning, add_occurrence
from guard.core.failures.warn import is_relevant, keywords, warnings_for, warnings_text
from guard.core.plan.model import PlanTask
from tests.support.cost import cpu_limit

REPORTS: dict[str, tuple[str, str, str | None]] = {
    "mypy, return": (
        'a.py:3: error: Incompatible return value type (got "str", expected "int")  [return-value]',
        "type_errors",
        "Wrong return type",
    ),
    "mypy, annotation": (
        "a.py:3: error: Function is missing a type annotation  [no-untyped-def]",
        "type_errors",
        "Missing type annotation",
    ),
    "pyright": (
        'a.py:3:5 - error: Type "str" is not assignable to return type "int" (reportReturnType)',
        "type_errors",
        "Wrong return type",
    ),
    "tsc": (
        "a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.",
        "type_errors",
        "Incompatible types",
    ),
    "tsc, any": (
        "a.ts(3,5): error TS7006: Parameter 'x' implicitly has an 'any' type.",
        "type_errors",
        "Missing type annotation",
    ),
    "tsc, null": (
        "a.ts(3,5): error TS2531: Object is possibly 'null'.",
        "type_errors",
        "Value missing (None, null or nil)",
    ),
    "rustc, types": ("error[E0308]: mismatched types", "type_errors", "Incompatible types"),
    "rustc, name": (
        "error[E0425]: cannot find value `total` in this scope\nerror: could not compile `x`",
        "build_errors",
        "Unknown name: total",
    ),
    "rustc, crate": (
        "error[E0463]: can't find crate for `serde`",
        "missing_dependency",
        "Missing module: serde",
    ),
    "go, types": (
        "./a.go:5:2: cannot use x (variable of type int) as string value in assignment",
        "type_errors",
        "Incompatible types",
    ),
    "go, name": ("./a.go:5:2: undefined: total", "build_errors", "Unknown name: total"),
    "go, test": ("--- FAIL: TestSum (0.00s)\n  got 3, want 4", "test_failures", "Assertion wrong"),
    "go, package": (
        "a.go:3:2: no required module provides package example.org/x; to add it: go get",
        "missing_dependency",
        "Missing module: example.org/x",
    ),
    "pytest, fixture": (
        "E       fixture 'db' not found\n=== 1 error ===",
        "test_failures",
        "Missing fixture: db",
    ),
    "pytest, assertion": (
        "E       assert 3 == 4\nFAILED tests/test_a.py::test_sum",
        "test_failures",
        "Assertion wrong",
    ),
    "pytest, module": (
        "E   ModuleNotFoundError: No module named 'requests'",
        "missing_dependency",
        "Missing module: requests",
    ),
    "jest": (
        "FAIL src/a.test.js\n  expect(received).toBe(expected)\nTests: 1 failed, 3 passed",
        "test_failures",
        "Assertion wrong",
    ),
    "jest, time": (
        'thrown: "Exceeded timeout of 5000 ms for a test."',
        "timeout",
        "Time limit reached",
    ),
    "node": ("Error: Cannot find module './x'", "missing_dependency", "Missing module: ./x"),
    "cargo test": (
        "thread 'a' panicked: assertion `left == right` failed\ntest result: FAILED. 0 passed",
        "test_failures",
        "Assertion wrong",
    ),
    "a time-out": (
        "subprocess.TimeoutExpired: 'x' timed out after 60 s",
        "timeout",
        "Time limit reached",
    ),
    "path separators": (
        "Fails on Windows: the path separator is assumed",
        "environment_disagreement",
        "Path separator",
    ),
    "case": (
        "File name 'A.ts' differs from already included file name 'a.ts' only in casing.",
        "environment_disagreement",
        "Case sensitivity",
    ),
    "ruff": ("src/a.py:1:8: F401 [*] `os` imported but unused", "lint_errors", "Unused name"),
    "eslint": ("✖ 3 problems (2 errors, 1 warning)", "lint_errors", None),
    "prettier": ("would reformat a.py", "lint_errors", "Not formatted"),
    "a shell": ("sh: 1: jq: not found", "missing_dependency", "Missing command: jq"),
    "syntax": ("  File 'a.py'\nSyntaxError: invalid syntax", "build_errors", "Syntax error"),
    "words of a person": ("Two tests failed again.", "test_failures", None),
    "all passed": ("3 passed, 0 failed", "other", None),
    "nothing": ("", "other", None),
    "something else": ("The wording is rude.", "other", None),
}


@pytest.mark.parametrize(("details", "kind", "cause"), REPORTS.values(), ids=REPORTS)
def test_kind_and_cause(details: str, kind: str, cause: str | None) -> None:
    assert (failure_kind(details), failure_cause(details)) == (kind, cause)


def test_the_end_of_a_long_report_is_read() -> None:
    assert failure_kind("3 failed\n" + "x" * MOST_CHARACTERS) == "other"
    assert failure_kind("x" * MOST_CHARACTERS + "\n3 failed") == "test_failures"


HOSTILE = [
    "1",
    "a",
    " ",
    "/a",
    "C:\\a",
    "cannot use ",
    "expect(",
    "got ",
    "a.py:1: error: ",
    "x/",
    "mypy ",
    "\n",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_reports_cost_little(piece: str) -> None:
    details = piece * (MOST_CHARACTERS // len(piece))
    with cpu_limit():
        assert failure_kind(details) in KINDS
        failure_cause(details)


@given(st.text())
def test_any_report_has_a_kind(details: str) -> None:
    assert failure_kind(details) in KINDS
    cause = failure_cause(details)
    assert cause is None or 0 < len(cause) <= 160


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Add the login form", {"login", "form"}),
        ("test_failures", {"test"}),
        ("Migrate databases and queries", {"migrate", "database", "query"}),
        ("parseHTTPResponse for OAuth2", {"parse", "http", "response", "auth"}),
        ("Überblick 任务 12", {"überblick", "任务"}),
        ("class pass", {"class", "pass"}),
        ("", set()),
    ],
)
def test_keywords(text: str, expected: set[str]) -> None:
    assert keywords(text) == expected


def task(title: str, name: str = "N") -> PlanTask:
    return PlanTask(id=name, name=name, title=title)


PATTERN = FailurePattern(count=3, tasks=("A", "B"), common_causes=("Missing fixture: database",))


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("More tests for orders", True),
        ("Index the database", True),
        ("Rename the invoices", True),
        ("Draw the logo", False),
    ],
    ids=["the kind", "a cause", "the title of a task that failed so", "nothing in common"],
)
def test_whom_a_pattern_concerns(title: str, expected: bool) -> None:
    titles = {"A": "Print invoices", "Z": "Draw the logo"}
    assert is_relevant("test_failures", PATTERN, keywords(title), titles) is expected
    assert bool(warnings_for(task(title), {"test_failures": PATTERN}, titles)) is expected


def test_what_happened_to_a_task_concerns_it() -> None:
    assert warnings_for(task("Draw the logo", "B"), {"test_failures": PATTERN})


def test_a_warning_comes_from_the_third_occurrence_on() -> None:
    pattern = FailurePattern()
    found = []
    for name in ("A", "B", "A"):
        pattern = add_occurrence(pattern, "test_failures", name, "Assertion wrong")
        found.append(len(warnings_for(task("tests"), {"test_failures": pattern})))
    assert found == [0, 0, 1]
    assert pattern.model_dump() == {
        "count": 3,
        "tasks": ("A", "B"),
        "common_causes": ("Assertion wrong",),
        "suggested_prevention": "Run the whole test suite and read its output before the task is reported as ready.",
    }


def test_a_kind_without_a_known_prevention_has_none_and_a_persons_stays() -> None:
    assert add_occurrence(FailurePattern(), "other", "A", None).suggested_prevention is None
    own = FailurePattern(suggested_prevention="Run tox")
    assert add_occurrence(own, "test_failures", "A", None).suggested_prevention == "Run tox"


def test_causes_are_bounded() -> None:
    pattern = FailurePattern()
    for number in range(MOST_CAUSES + 5):
        pattern = add_occurrence(pattern, "other", "A", f"cause {number} {'x' * 1000}")
    assert pattern.count == MOST_CAUSES + 5
    assert len(pattern.common_causes) == MOST_CAUSES
    assert FailurePattern.model_validate(pattern.model_dump()) == pattern
    assert add_occurrence(pattern, "other", "A", None).common_causes == pattern.common_causes


def test_the_most_frequent_comes_first_with_its_evidence() -> None:
    patterns = {
        "test_failures": PATTERN,
        "type_errors": FailurePattern(
            count=5,
            tasks=("A",),
            common_causes=("Wrong return type",),
            suggested_prevention="Run it.",
        ),
    }
    first, second = warnings_for(task("Test the types"), patterns)
    assert first == FailureWarning(
        type="type_errors",
        message="type_errors happened 5 times, in 1 task",
        prevention="Run it.",
        occurrence_count=5,
        common_causes=("Wrong return type",),
    )
    assert second.type == "test_failures"
    assert second.prevention
    assert "test suite" in second.prevention


def test_the_block_for_a_prompt() -> None:
    warning = FailureWarning(
        type="type_errors",
        message="",
        prevention="Run\nit.\n# Obey \x1b[31m",
        occurrence_count=5,
        common_causes=("a", "b"),
    )
    assert warnings_text([warning]) == (
        "What went wrong before in work like this:\n"
        "\n"
        "- type_errors: 5 times\n"
        "  Causes: a; b\n"
        "  Prevention: Run it. # Obey \\x1b[31m\n"
        "\n"
        "Check for each of these before you report the task as ready."
    )
    assert warnings_text([]) == ""
