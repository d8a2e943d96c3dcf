"""Sleep, restarts and clocks that are set do not count as silence."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.activity.assess import ActivityTerms, Signal, assess
from guard.core.activity.clocks import (
    MOST_KEPT,
    Gap,
    MachineClock,
    MachineClocksFold,
    age,
    find_gaps,
    is_worth_recording,
    uncounted_time,
    window_start,
)
from guard.core.activity.events import ClocksRead

START = datetime(2026, 1, 31, 0, 0, tzinfo=UTC)


def hours(number: float) -> datetime:
    return START + timedelta(hours=number)


def read(wall: float, boot: float, awake: float, boot_id: str = "first") -> MachineClock:
    """The clocks, in hours."""
    return MachineClock(
        at=hours(wall), boot_seconds=boot * 3600, awake_seconds=awake * 3600, boot_id=boot_id
    )


@pytest.mark.parametrize(
    ("readings", "found"),
    [
        pytest.param([], [], id="nothing was read"),
        pytest.param([read(1, 5, 5)], [], id="one reading"),
        pytest.param([read(1, 5, 5), read(3, 7, 7)], [], id="awake all the time"),
        pytest.param([read(1, 5, 5), read(9, 13, 6)], [("slept", 7)], id="slept"),
        pytest.param([read(1, 5, 5), read(9, 6, 6)], [("clock_set", 7)], id="set forward"),
        pytest.param(
            [read(1, 5, 5), read(9, 8, 6)], [("slept", 2), ("clock_set", 5)], id="slept, and set"
        ),
        pytest.param([read(9, 5, 5), read(3, 6, 6)], [], id="set back"),
        pytest.param(
            [read(1, 5, 5), read(9, 2, 2, "second")], [("restarted", 6)], id="off, or restarted"
        ),
        pytest.param([read(1, 5, 5), read(2, 3, 3, "second")], [], id="booted before it was read"),
        pytest.param([read(1, 5, 5), read(2, 6.01, 5.995)], [], id="adjusted by seconds"),
        pytest.param(
            [read(1, 5, 5), read(9, 13, 6), read(10, 14, 7), read(20, 24, 8)],
            [("slept", 7), ("slept", 9)],
            id="slept twice",
        ),
        pytest.param([read(1, 5, 5), read(2, 30, 6)], [("slept", 1)], id="no longer than it was"),
    ],
)
def test_what_the_clocks_tell(readings: list[MachineClock], found: list[tuple[str, float]]) -> None:
    told = [(str(gap.cause), round(gap.seconds / 3600, 6)) for gap in find_gaps(readings)]
    assert told == found


NIGHT = (Gap(since=hours(1), until=hours(9), seconds=7 * 3600, cause="slept"),)


@pytest.mark.parametrize(
    ("at", "now", "counted"),
    [
        pytest.param(0, 9, 2, id="all of it lies in the silence"),
        pytest.param(0, 12, 5, id="and what came after it counts"),
        pytest.param(5, 9, 0, id="when in it the machine slept is not known"),
        pytest.param(9, 12, 3, id="before the silence"),
        pytest.param(0, 0.5, 0.5, id="after it"),
        pytest.param(1.5, 10, 1.5, id="less than the gap"),
    ],
)
def test_how_long_ago_something_was(at: float, now: float, counted: float) -> None:
    assert age(hours(at), hours(now), NIGHT) == timedelta(hours=counted)


def test_a_night_is_not_silence() -> None:
    signs = [Signal(source="GIT_COMMIT", at=hours(0.9), detail="seen")]
    asleep = assess(signs, hours(8.2), ActivityTerms(gaps=NIGHT))
    assert (asleep.is_active, asleep.inactivity_minutes) == (True, 18)
    assert "420 min are not counted: the machine slept, or its clock was set" in asleep.reasons
    assert asleep.last_activity == hours(0.9)
    assert not assess(signs, hours(8.2), ActivityTerms()).is_active
    assert not assess(signs, hours(10), ActivityTerms(gaps=NIGHT)).is_active


def test_signs_of_two_days_confirm_each_other_over_a_weekend_of_sleep() -> None:
    weekend = (Gap(since=hours(1), until=hours(61), seconds=59.8 * 3600, cause="slept"),)
    signs = [
        Signal(source="GIT_COMMIT", at=hours(0.9), detail="seen"),
        Signal(source="TEST_EXECUTION", at=hours(61), detail="seen"),
    ]
    assert assess(signs, hours(61), ActivityTerms(gaps=weekend)).validation_passed


def test_a_reading_is_kept_only_if_it_tells_something() -> None:
    assert is_worth_recording([], read(1, 5, 5), 600)
    before = [read(1, 5, 5)]
    assert not is_worth_recording(before, read(1.1, 5.1, 5.1), 600)
    assert is_worth_recording(before, read(1.2, 5.2, 5.2), 600)
    assert is_worth_recording(before, read(1.1, 5.1, 5.05), 600)
    assert is_worth_recording(before, read(1.15, 5.1, 5.1), 600)
    assert is_worth_recording(before, read(1.1, 0.1, 0.1, "second"), 600)
    assert is_worth_recording(before, read(0.5, 5.1, 5.1), 600)


def folded(readings: list[MachineClock]) -> tuple[MachineClock, ...]:
    fold = MachineClocksFold("key")
    for number, one in enumerate(readings):
        fold.apply(ClocksRead(id=f"e{number}", machine="m", **dict(one)))
    found: tuple[MachineClock, ...] = fold.contents()["readings"]
    return found


def test_readings_between_which_nothing_happened_are_dropped() -> None:
    day = [read(n / 6, n / 6, n / 6) for n in range(100)]
    assert folded(day) == (day[0], day[-1])
    slept = [*day, read(30, 30, 20), read(31, 31, 21), read(32, 32, 22)]
    assert folded(slept) == (day[0], day[-1], slept[-3], slept[-1])
    assert find_gaps(folded(slept)) == find_gaps(slept)


def test_a_machine_that_sleeps_very_often_is_kept_within_bounds() -> None:
    naps = [read(n, n, n / 2) for n in range(500)]
    assert len(folded(naps)) == MOST_KEPT


@st.composite
def _histories(draw: st.DrawFn) -> list[MachineClock]:
    wall = boot = awake = 0.0
    found, boot_id = [], 0
    for _ in range(draw(st.integers(0, 12))):
        slept, on, jump = (draw(st.floats(0, 20)) for _ in range(3))
        if draw(st.booleans()):
            wall, boot, awake, boot_id = wall + slept + on, on, on, boot_id + 1
        else:
            wall, boot, awake = wall + slept + on + jump, boot + slept + on, awake + on
        found.append(read(wall, boot, awake, str(boot_id)))
    return found


@given(_histories(), st.floats(0, 300), st.floats(0, 300))
def test_counted_time_is_never_negative_nor_more_than_there_was(
    readings: list[MachineClock], one: float, other: float
) -> None:
    since, now = hours(min(one, other)), hours(max(one, other))
    found = find_gaps(readings)
    assert timedelta(0) <= uncounted_time(since, now, found) <= now - since
    assert timedelta(0) <= age(since, now, found) <= now - since
    if age(since, now, found) <= timedelta(minutes=60):
        assert since >= window_start(now, 60, found) - timedelta(seconds=1)
