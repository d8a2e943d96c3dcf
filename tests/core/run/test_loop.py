"""When a loop goes on, waits or ends."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from guard.core.check.report import EXIT_OF, CheckReport
from guard.core.run.loop import (
    LoopLimits,
    Next,
    after_iteration,
    before_iteration,
    count_iterations,
)
from tests.support.events import MOMENT


def report(status: str, reason: str = "", retry_at: datetime | None = None) -> CheckReport:
    """As much of a report as a loop looks at."""
    fields: dict[str, Any] = {"status": status, "reason": reason, "retry_at": retry_at}
    return CheckReport.model_construct(**fields)


BEFORE: dict[str, tuple[LoopLimits, int, float, int | None, Next | None]] = {
    "no limits: go on": (LoopLimits(), 1000, 1e6, None, None),
    "no iteration yet: go on": (LoopLimits(max_iterations=1, max_seconds=1), 0, 0.0, 3, None),
    "open boxes: go on": (LoopLimits(), 3, 1.0, 1, None),
    "no open box: done, whatever the last verdict": (
        LoopLimits(), 3, 1.0, 0, Next("tasks_done", 0)),
    "no open box at the limit: done": (
        LoopLimits(max_iterations=3), 3, 1.0, 0, Next("tasks_done", 0)),
    "as many iterations as allowed: the last verdict's code": (
        LoopLimits(max_iterations=3), 3, 1.0, 1, Next("max_iterations", 10)),
    "one fewer: go on": (LoopLimits(max_iterations=3), 2, 1.0, 1, None),
    "no iterations allowed: ends at once": (
        LoopLimits(max_iterations=0), 0, 0.0, None, Next("max_iterations", 10)),
    "the time is over: the last verdict's code": (
        LoopLimits(max_seconds=60), 3, 60.0, 1, Next("max_time", 10)),
    "time left: go on": (LoopLimits(max_seconds=60), 3, 59.9, 1, None),
}  # fmt: skip


@pytest.mark.parametrize("case", BEFORE.values(), ids=BEFORE)
def test_before_an_iteration(case: tuple[LoopLimits, int, float, int | None, Next | None]) -> None:
    limits, iterations, elapsed, tasks, expected = case
    assert before_iteration(limits, iterations, elapsed, tasks, 10) == expected


def test_ticked_boxes_do_not_end_a_loop_whose_work_is_not_proven() -> None:
    assert before_iteration(LoopLimits(), 1, 1.0, 0, 17, unproven=True) is None
    end = before_iteration(LoopLimits(max_iterations=1), 1, 1.0, 0, 17, unproven=True)
    assert end == Next("max_iterations", 17)


LATER = MOMENT + timedelta(minutes=5)
AFTER: dict[str, tuple[CheckReport, bool, Next]] = {
    "complete: go on": (report("complete", "commits"), True, Next(None, 0)),
    "complete, without a task file: go on": (report("complete", "rescued"), False, Next(None, 0)),
    "nothing to do, without a task file: ends": (
        report("complete", "nothing_to_do"), False, Next("nothing_to_do", 0)),
    "nothing to do, with open boxes: go on": (
        report("complete", "nothing_to_do"), True, Next(None, 0)),
    "blocked: ends": (report("blocked", "question"), True, Next("blocked", 14)),
    "timeout: go on, the breaker decides": (report("timeout"), True, Next(None, 10)),
    "waiting: look again after a while": (
        report("waiting", "alive"), True, Next(None, 11, seconds=10)),
    "the agent lives: look again after a while": (
        report("working", "agent_alive"), True, Next(None, 12, seconds=10)),
    "working: go on": (report("working", "turn_limit"), True, Next(None, 12)),
    "error: go on, the breaker decides": (report("error", "no_session"), True, Next(None, 15)),
    "refuted: go on, with what failed": (
        report("refuted", "new_failures"), True, Next(None, 17)),
    "interrupted: go on": (report("interrupted", "helpers_killed"), True, Next(None, 16)),
    "interrupted by a limit: a minute after its end": (
        report("interrupted", "helpers_killed", LATER), True, Next(None, 16, 360.0)),
    "limited until then: a minute after it": (
        report("limited", "limited", LATER), True, Next(None, 13, 360.0)),
    "limited until a time that has passed: at once": (
        report("limited", "limited", MOMENT - timedelta(hours=1)), True, Next(None, 13)),
    "limited, nobody knows until when: a minute": (
        report("limited", "transient"), True, Next(None, 13, 60.0)),
}  # fmt: skip


@pytest.mark.parametrize(("found", "has_tasks", "expected"), AFTER.values(), ids=AFTER)
def test_after_an_iteration(found: CheckReport, has_tasks: bool, expected: Next) -> None:
    assert after_iteration(found, MOMENT, 1, has_tasks) == expected


def test_limits_in_a_row_without_a_time_are_asked_about_less_and_less_often() -> None:
    waits = [
        after_iteration(report("limited"), MOMENT, n, True).seconds for n in (1, 2, 3, 4, 5, 99)
    ]
    assert waits == [60, 120, 240, 480, 900, 900]


def test_limits_in_a_row_that_last_longer_than_they_said_are_not_asked_about_at_once() -> None:
    past = report("limited", "usage_limit", MOMENT - timedelta(hours=1))
    later = report("limited", "usage_limit", LATER)
    assert [after_iteration(past, MOMENT, n, True).seconds for n in (1, 2, 3)] == [0, 60, 120]
    assert after_iteration(later, MOMENT, 2, True).seconds == 360


def test_limits_and_what_is_still_open_use_up_no_iteration() -> None:
    reports = [
        report(status).model_copy(update={"run": "r", "iteration": number})
        for number, status in [(1, "limited"), (2, "waiting"), (2, "complete"), (3, "limited"), (4, "timeout")]
    ]  # fmt: skip
    assert count_iterations(reports, is_last_open=False) == 2
    assert count_iterations(reports, is_last_open=True) == 1
    assert count_iterations(reports[:1], is_last_open=True) == 0
    assert count_iterations([], is_last_open=False) == 0


def test_every_status_has_an_exit_code_of_its_own() -> None:
    assert sorted(EXIT_OF.values()) == [0, *range(10, 18)]
