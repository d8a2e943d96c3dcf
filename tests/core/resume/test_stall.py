"""What begins a new silence, what is only an echo of the prompt, and how many prompts a silence gets."""

from datetime import UTC, datetime, timedelta

import pytest

from guard.core.activity.assess import Signal
from guard.core.activity.sources import SourceName
from guard.core.activity.state import SentResume
from guard.core.resume.stall import Budget, Stall, current_stall, permission

_BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)


def minutes(count: float) -> datetime:
    return _BEGAN + timedelta(minutes=count)


def sent(at: float, stall: str = "a" * 64, incarnation: int = 1) -> SentResume:
    return SentResume(
        at=minutes(at),
        incarnation=incarnation,
        way="tmux",
        stall=stall,
        last_activity=None,
        lookback_minutes=60,
    )


def sign(source: SourceName, at: float) -> Signal:
    return Signal(source=source, at=minutes(at), detail="seen")


def test_a_first_silence_is_named_by_its_life_and_what_was_seen_last() -> None:
    first = current_stall(1, _BEGAN, (), (), minutes(90))
    assert first == current_stall(1, _BEGAN, (), (), minutes(900))
    assert (first.sent, first.last_sent, len(first.name)) == (0, None, 64)
    assert first.name != current_stall(2, _BEGAN, (), (), minutes(90)).name
    assert first.name != current_stall(1, minutes(1), (), (), minutes(90)).name


def test_it_goes_on_whatever_is_forgotten_of_the_last_sign() -> None:
    known = (sent(90), sent(110))
    for since in (_BEGAN, minutes(30), minutes(109)):
        assert current_stall(1, since, known, (), minutes(500)) == Stall("a" * 64, 2, minutes(110))


def test_prompts_of_an_earlier_life_do_not_count() -> None:
    assert current_stall(2, _BEGAN, (sent(90), sent(110)), (), minutes(200)).sent == 0


@pytest.mark.parametrize(
    ("source", "at", "begins"),
    [
        ("GIT_COMMIT", 89, False),
        ("GIT_COMMIT", 90.1, True),
        ("TELEMETRY_EVENT", 91, True),
        ("PROCESS_PROGRESS", 91, False),
        ("TMUX_ACTIVITY", 91, False),
        ("FILE_MODIFICATION", 91.9, False),
        ("TRANSCRIPT_GROWTH", 91.9, False),
        ("TMUX_ACTIVITY", 93, True),
        ("FILE_MODIFICATION", 93, True),
        ("MESSAGE_QUEUE", 100, False),
        ("WORKSPACE_ACCESS", 100, False),
        ("GIT_COMMIT", 500, False),
    ],
)
def test_only_work_of_its_own_begins_another(source: SourceName, at: float, begins: bool) -> None:
    found = current_stall(1, _BEGAN, (sent(90),), (sign(source, at),), minutes(200))
    assert (found.name != "a" * 64) is begins
    assert found.sent == (0 if begins else 1)


def test_a_second_silence_has_a_budget_of_its_own() -> None:
    other = current_stall(
        1, _BEGAN, (sent(90), sent(110)), (sign("GIT_COMMIT", 130),), minutes(300)
    )
    known = (sent(90), sent(110), sent(300, other.name))
    assert current_stall(1, _BEGAN, known, (), minutes(320)) == Stall(other.name, 1, minutes(300))


@pytest.mark.parametrize(
    ("count", "last", "now", "answer"),
    [
        (0, None, 90, "due"),
        (1, 90, 91, "paused"),
        (1, 90, 104.9, "paused"),
        (1, 90, 105, "due"),
        (1, 90, 89, "paused"),
        (1, 90, 0, "due"),
        (2, 105, 106, "spent"),
        (2, 105, 100_000, "spent"),
        (3, 105, 100_000, "spent"),
    ],
)
def test_two_prompts_with_a_pause_and_no_more(
    count: int, last: float | None, now: float, answer: str
) -> None:
    stall = Stall("a" * 64, count, None if last is None else minutes(last))
    found = permission(stall, Budget(), minutes(now))
    assert found.answer == answer
    if answer == "spent":
        assert "a person is needed" in found.reason


def test_a_budget_of_none_sends_none() -> None:
    assert permission(Stall("a" * 64, 0, None), Budget(0), _BEGAN).answer == "spent"
