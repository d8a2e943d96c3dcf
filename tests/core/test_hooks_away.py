"""Which files a session may have changed, by their times."""

from datetime import timedelta
from typing import Any

import pytest

from guard.core.breaker.moment import Moment
from guard.core.hooks.away import was_set_back
from guard.core.hooks.state import Boot, HookSession
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
    assert was_set_back(known(started_at=at, started_boot=boot), NOW) is expected
    assert not was_set_back(known(started_at=None), NOW)
