"""What a prompt that was not needed teaches."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from guard.core.activity.assess import Signal
from guard.core.activity.events import ActivityForgotten, FalseAlarmLearned, ResumeSent
from guard.core.activity.learn import Lesson, lesson_from_person, lesson_from_signs
from guard.core.activity.noise import NOISE_PATTERNS
from guard.core.activity.sources import SourceName
from guard.core.activity.state import WatchedAgent, WatchedAgentFold
from guard.core.log.record import Position

SENT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
NAMES: dict[str, Any] = {"task_id": "T1", "agent_id": "a1", "incarnation": 1}


def before(minutes: float) -> datetime:
    return SENT - timedelta(minutes=minutes)


def resume(at: datetime = SENT, quiet: float | None = 80, **fields: Any) -> ResumeSent:
    """A prompt after so many minutes of silence."""
    usual: dict[str, Any] = {
        "way": "inbox",
        "stall": "a" * 64,
        "last_activity": None if quiet is None else at - timedelta(minutes=quiet),
        "lookback_minutes": 60.0,
        "prompt": "b" * 64,
        "reason": "silent",
    }
    return ResumeSent(at=at, id="e1", **{**NAMES, **usual, **fields})


def watched(*events: ResumeSent | FalseAlarmLearned | ActivityForgotten) -> WatchedAgent:
    fold = WatchedAgentFold("key")
    for number, event in enumerate(events, 1):
        fold.apply(event)
        fold.reached = Position(1, number, number, "c" * 64)
    return fold.document()


def seen(minutes: float, source: SourceName = "GIT_COMMIT", message: str = "") -> Signal:
    return Signal(source=source, at=before(minutes), detail="a sign", message=message)


def learned(known: WatchedAgent, *signals: Signal, most: float = 480) -> Lesson | None:
    return lesson_from_signs(known, 1, signals, most, NOISE_PATTERNS)


@pytest.mark.parametrize(
    ("sign", "proves"),
    [
        pytest.param(seen(20), True, id="before the prompt, and not known then"),
        pytest.param(seen(20, "TEST_EXECUTION"), True, id="of any source of the first tier"),
        pytest.param(seen(60), True, id="at the edge of what was looked at"),
        pytest.param(seen(61), False, id="too old to have counted"),
        pytest.param(seen(-5), False, id="after the prompt: that may have caused it"),
        pytest.param(seen(1), False, id="so near that clocks may differ"),
        pytest.param(seen(20, "STATUS_UPDATE"), False, id="too weak a source"),
        pytest.param(seen(20, message="ACK"), False, id="noise"),
    ],
)
def test_what_proves_a_false_alarm(sign: Signal, proves: bool) -> None:
    assert (learned(watched(resume()), sign) is not None) is proves


def test_what_was_known_when_it_was_sent_proves_nothing() -> None:
    assert learned(watched(resume(quiet=20)), seen(20)) is None
    assert learned(watched(resume(quiet=20)), seen(19)) is not None


def test_the_look_back_becomes_half_again_as_long_as_the_silence() -> None:
    found = learned(watched(resume(quiet=80)), seen(20), seen(30))
    assert found == Lesson(
        resumed_at=SENT,
        proof="GIT_COMMIT at 2026-01-31 11:40:00 UTC: a sign",
        silence_minutes=80,
        lookback_minutes=120,
    )


@pytest.mark.parametrize(
    ("quiet", "most", "minutes"),
    [(None, 480, 90), (80, 100, 100), (30, 480, 60), (1000, 480, 480), (80, 10, 60)],
)
def test_it_never_shrinks_and_is_bounded(quiet: float | None, most: float, minutes: float) -> None:
    found = lesson_from_person(watched(resume(quiet=quiet)), "", most)
    assert found is not None
    assert found.lookback_minutes == minutes


def _as_event(found: Lesson | None) -> FalseAlarmLearned:
    assert found is not None
    return FalseAlarmLearned(at=SENT + timedelta(hours=1), id="e2", **NAMES, **dict(found))


def test_each_prompt_teaches_once() -> None:
    known = watched(resume())
    event = _as_event(learned(known, seen(20)))
    after = watched(resume(), event)
    assert after.learned_lookback_minutes == 120
    assert learned(after, seen(20), seen(15)) is None
    assert lesson_from_person(after, "again", 480) is None


def test_what_was_forgotten_is_not_learned_again() -> None:
    forgotten = ActivityForgotten(at=SENT + timedelta(minutes=30), id="e3", **NAMES)
    known = watched(resume(), forgotten)
    assert learned(known, seen(20)) is None
    later = watched(resume(), forgotten, resume(SENT + timedelta(hours=2)))
    assert lesson_from_person(later, "", 480) is not None


def test_another_life_of_the_agent_proves_nothing() -> None:
    known = watched(resume(incarnation=2))
    assert learned(known, seen(20)) is None


def test_a_person_can_tell() -> None:
    found = lesson_from_person(watched(resume()), "it was compiling", 480)
    assert found is not None
    assert found.proof == "said by a person: it was compiling"
    assert lesson_from_person(None, "", 480) is None
    assert (
        lesson_from_person(watched(ActivityForgotten(at=SENT, id="e1", **NAMES)), "", 480) is None
    )
