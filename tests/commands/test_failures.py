"""`guard failures`: what went wrong, by kind, and who is warned of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from guard.schemas.validate import validator
from tests.commands.test_plan import call
from tests.support import commit, run, write


def told(kind: str, *words: str) -> dict[str, Any]:
    code, out = call(*words, "--format", "json")
    assert code == 0, out
    document: dict[str, Any] = json.loads(out)
    assert list(validator(kind).iter_errors(document)) == []
    return document


def test_from_the_third_time_on_those_are_warned_whom_it_concerns(planned_project: Path) -> None:
    report = write(planned_project / "report.txt", "main.py:3: error: Missing type annotation\n")
    for count in range(3):
        assert told("failure-warnings", "failures", "warn", "1.2")["warnings"] == [], count
        assert call("failures", "record", "1.2", str(report))[0] == 0
    prevention = "Run the type checker on what you changed"
    assert call("failures", "prevent", "type_errors", prevention)[0] == 0
    (pattern,) = told("failures", "failures")["failure_patterns"].items()
    assert pattern == (
        "type_errors",
        {
            "count": 3,
            "tasks": ["1-2"],
            "common_causes": ["Missing type annotation"],
            "suggested_prevention": prevention,
        },
    )
    warned = told("failure-warnings", "failures", "warn", "1.2")
    assert [one["occurrence_count"] for one in warned["warnings"]] == [3]
    assert prevention in warned["text"]
    assert told("failure-warnings", "failures", "warn", "2")["warnings"] == []
    issued = run("log", "--type", "failure_warning_issued", "--format", "json").out
    assert issued.count('"failure_warning_issued"') == 1


def test_a_preview_is_not_recorded(planned_project: Path) -> None:
    for _ in range(3):
        assert call("failures", "record", "2", "plan.json", "--type", "odd")[0] == 0
    assert told("failure-warnings", "failures", "warn", "2", "--preview")["warnings"]
    issued = run("log", "--type", "failure_warning_issued", "--format", "json").out
    assert '"failure_warning_issued"' not in issued


def test_nothing_is_said_where_there_is_nothing(repository: Path) -> None:
    commit(repository, "first.txt")
    assert call("failures") == (0, "no failure was recorded\n")
    assert call("failures", "warn", "1.1")[0] == 1


@pytest.mark.usefixtures("planned_project")
def test_hostile_words_are_shown_as_they_are() -> None:
    assert call("failures", "prevent", "odd", "\x1b[31mred\u202e")[0] == 0
    code, out = call("failures")
    assert (code, "\x1b" in out, "\u202e" in out) == (0, False, False)
    assert call("failures", "prevent", "a/b", "text")[0] == 2


@pytest.mark.parametrize("text", ["x" * 513, "no \udcff UTF-8"], ids=["long", "no UTF-8"])
def test_a_prevention_that_cannot_be_recorded_is_wrong_usage(
    text: str, planned_project: Path
) -> None:
    assert call("failures", "prevent", "test_failures", text)[0] == 2
