"""What ends a wait: something begins or stops to be at work, a team does, or something idle ends."""

import pytest

from guard.core.check.evidence import Living, Policy
from guard.core.check.holders import is_news

POLICY = Policy(progress_window_seconds=120, max_wait_seconds=7200)
BUSY = Living(kind="process", name="cc (pid 1)", idle_seconds=0)
OTHER = Living(kind="process", name="ld (pid 2)", idle_seconds=0)
IDLE = Living(kind="process", name="server (pid 3)", idle_seconds=600)
MEMBER = Living(kind="member", name="helper a", idle_seconds=600)


@pytest.mark.parametrize(
    ("before", "now", "is_new"),
    [
        pytest.param((), (), False, id="nothing lives"),
        pytest.param((BUSY,), (BUSY,), False, id="it is still at work"),
        pytest.param((BUSY,), (OTHER,), False, id="another process is at work instead"),
        pytest.param((BUSY,), (IDLE,), True, id="nothing is at work any more"),
        pytest.param((IDLE,), (IDLE, BUSY), True, id="something has begun to work"),
        pytest.param((IDLE,), (IDLE,), False, id="it is still idle"),
        pytest.param((IDLE,), (), True, id="what was idle has ended"),
        pytest.param((), (IDLE,), False, id="something idle has come"),
        pytest.param((BUSY, MEMBER), (BUSY,), True, id="the team has left a busy process"),
        pytest.param((MEMBER,), (MEMBER,), False, id="the team is still there"),
    ],
)
def test_news_for_a_waiting_check(
    before: tuple[Living, ...], now: tuple[Living, ...], is_new: bool
) -> None:
    assert is_news(before, now, POLICY) == is_new
