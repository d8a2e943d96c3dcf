"""When a session was not there, and whether the times of files can tell what changed then."""

from datetime import timedelta
from typing import Any

import pytest

from guard.core.base.moment import Moment
from guard.core.hooks.events import HookSessionStarted
from guard.core.hooks.state import MOST_ABSENCES, Absence, Boot, HookSession, HooksFold
from guard.core.hooks.stop import is_clock_set_back
from tests.support.events import MOMENT

NOW = Moment(MOMENT, 1000.0, "boot 1")


def known(**more: Any) -> HookSession:
    fields: dict[str, Any] = {
        "agent": "claude",
        "session": "s1",
        "started_at": MOMENT - timedelta(seconds=60),
        "began": False,
        "ended": False,
        "prompt": None,
        "blocks": 0,
        "decision": None,
        "reason": None,
        "decided_at": None,
    }
    return HookSession(**{**fields, **more})


@pytest.mark.parametrize(
    ("seconds_ago", "boot", "expected"),
    [
        pytest.param(60, Boot(seconds=940, id="boot 1"), False, id="the clocks agree"),
        pytest.param(60, Boot(seconds=939.5, id="boot 1"), False, id="nearly"),
        pytest.param(60, Boot(seconds=930, id="boot 1"), True, id="set back by ten seconds"),
        pytest.param(60, Boot(seconds=990, id="boot 1"), False, id="set forward hides nothing"),
        pytest.param(-60, Boot(seconds=930, id="boot 1"), True, id="set back to before the start"),
        pytest.param(60, Boot(seconds=5, id="boot 2"), False, id="another boot"),
        pytest.param(-60, Boot(seconds=5, id="boot 2"), True, id="before the start, another boot"),
        pytest.param(60, None, False, id="one clock"),
        pytest.param(-60, None, True, id="one clock, before the start"),
    ],
)
def test_a_clock_that_was_set_back(seconds_ago: float, boot: Boot | None, expected: bool) -> None:
    at = MOMENT - timedelta(seconds=seconds_ago)
    assert is_clock_set_back(known(started_at=at, started_boot=boot), NOW) is expected
    assert not is_clock_set_back(known(started_at=None), NOW)


def after(*starts: tuple[int, str]) -> tuple[Absence, ...]:
    """When the session was away that was started so, each so many seconds later than a certain moment."""
    fold = HooksFold("w1")
    for seconds, source in starts:
        fold.apply(
            HookSessionStarted(
                at=MOMENT + timedelta(seconds=seconds),
                id="e1",
                worktree="w1",
                agent="claude",
                event="SessionStart",
                session="s1",
                source=source,
                began=False,
                detail="",
            )
        )
    (session,) = fold.contents()["sessions"]
    found: tuple[Absence, ...] = session.away
    return found


def absence(since: int | None, until: int) -> Absence:
    begun = MOMENT + timedelta(seconds=since) if since is not None else None
    return Absence(since=begun, until=MOMENT + timedelta(seconds=until))


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        pytest.param([(0, "startup")], [absence(None, 0)], id="before its start"),
        pytest.param([(0, "compact")], [absence(None, 0)], id="before it was heard of"),
        pytest.param([(0, "resume")], [absence(None, 0)], id="before it was resumed"),
        pytest.param(
            [(0, "startup"), (5, "compact"), (9, "resume")],
            [absence(None, 0), absence(5, 9)],
            id="from its last word until it was resumed",
        ),
        pytest.param(
            [(0, "startup"), (9, "resume"), (20, "startup")], [absence(None, 20)], id="begun anew"
        ),
        pytest.param(
            [(10, "startup"), (5, "resume")], [absence(None, 5)], id="a clock that was set back"
        ),
    ],
)
def test_when_a_session_was_away(starts: list[tuple[int, str]], expected: list[Absence]) -> None:
    assert list(after(*starts)) == expected


def test_of_very_many_absences_the_oldest_become_one() -> None:
    away = after((0, "startup"), *((10 * number, "resume") for number in range(1, 30)))
    assert len(away) == MOST_ABSENCES
    assert (away[0].since, away[-1]) == (None, absence(280, 290))
    assert away[0].until == away[1].since
