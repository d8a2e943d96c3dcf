"""Where the hours went: each moment of a run is counted once, and by what it went to."""

import itertools
from datetime import datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.iteration.facts import Status
from guard.core.report.hours import Stretch, list_stretches, sum_hours
from guard.core.report.night import BreakerChange, IterationFacts, KnownRun
from tests.support.events import MOMENT


def at(minutes: float) -> datetime:
    return MOMENT + timedelta(minutes=minutes)


def iteration(
    number: int, begin: float, end: float | None, status: Status | None, task: str | None = None
) -> IterationFacts:
    ended = at(end) if end is not None else None
    return IterationFacts("r1", number, "w1", at(begin), ended, status=status, task=task)


def hours(
    *iterations: IterationFacts,
    until: float = 60,
    ended: float | None = None,
    changes: tuple[BreakerChange, ...] = (),
    audits: dict[str, list[datetime]] | None = None,
) -> dict[str, float]:
    run = KnownRun("r1", "w1", MOMENT, ended=at(ended) if ended is not None else None)
    found = list_stretches(run, iterations, changes, audits or {}, at(until))
    return {entry.kind: entry.seconds / 60 for entry in sum_hours(found)}


STORIES: dict[str, tuple[tuple[IterationFacts, ...], dict[str, float]]] = {
    "an iteration that got on": ((iteration(1, 0, 5, "complete"),), {"work": 5}),
    "what was refuted is work, and its repair is rework": (
        (
            iteration(1, 0, 5, "refuted"),
            iteration(2, 5, 7, "refuted"),
            iteration(3, 7, 10, "complete"),
            iteration(4, 10, 14, "complete"),
        ),
        {"work": 9, "rework": 5},
    ),
    "a limit and the wait for its end": (
        (iteration(1, 0, 1, "limited"), iteration(2, 21, 22, "complete")),
        {"work": 1, "limits": 21},
    ),
    "a limit between the refuted work and its repair": (
        (
            iteration(1, 0, 5, "refuted"),
            iteration(2, 5, 6, "limited"),
            iteration(3, 10, 12, "complete"),
        ),
        {"work": 5, "limits": 5, "rework": 2},
    ),
    "a hang, and a time between": (
        (iteration(1, 0, 9, "timeout"), iteration(2, 10, 11, "working")),
        {"work": 1, "hangs": 9, "between": 1},
    ),
    "a question that waits for a person": (
        (iteration(1, 0, 1, "blocked"), iteration(2, 31, 32, "complete")),
        {"work": 1, "person": 31},
    ),
    "a failure and what has no verdict": (
        (
            iteration(1, 0, 1, "error"),
            iteration(2, 1, 2, "interrupted"),
            iteration(3, 2, None, None),
        ),
        {"failures": 2, "open": 58},
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_where_the_hours_went(story: str) -> None:
    iterations, expected = STORIES[story]
    assert hours(*iterations) == pytest.approx(expected)


def test_the_breaker_keeps_a_run_waiting() -> None:
    opened = BreakerChange(at(5), "w1", "r1", "opened", "no_commits")
    found = hours(
        iteration(1, 0, 5, "timeout"), iteration(2, 35, 36, "complete"), changes=(opened,)
    )
    assert found == pytest.approx({"work": 1, "hangs": 5, "breaker": 30})


def test_work_that_came_back_from_its_audit_is_rework() -> None:
    before, after = iteration(1, 0, 5, "complete", "T1"), iteration(2, 8, 10, "complete", "T1")
    assert hours(before, after, audits={"T1": [at(6)]}) == pytest.approx(
        {"work": 5, "rework": 2, "between": 3}
    )


@pytest.mark.parametrize(("ended", "waited"), [(None, 0.0), (41.0, 40.0)])
def test_a_limit_at_the_end_is_waited_out_as_long_as_the_run_goes_on(
    ended: float | None, waited: float
) -> None:
    assert hours(iteration(1, 0, 1, "limited"), ended=ended) == pytest.approx(
        {"limits": 1 + waited}
    )


@given(
    st.lists(
        st.tuples(st.sampled_from(get_args(Status)), st.floats(0, 90), st.floats(0, 90)),
        max_size=20,
    )
)
def test_all_parts_together_are_the_whole_time_and_do_not_overlap(
    night: list[tuple[Status, float, float]],
) -> None:
    clock, iterations = 0.0, []
    for number, (status, took, waited) in enumerate(night, 1):
        iterations.append(iteration(number, clock, clock + took, status))
        clock += took + waited
    run = KnownRun("r1", "w1", MOMENT)
    found: list[Stretch] = list_stretches(run, iterations, (), {}, at(clock))
    assert all(first.end <= second.begin for first, second in itertools.pairwise(found))
    last = iterations[-1] if iterations else None
    whole = (last.ended - MOMENT).total_seconds() if last is not None and last.ended else 0.0
    assert sum(part.seconds for part in found) == pytest.approx(whole)
