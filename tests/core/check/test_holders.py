"""What ends a wait, and what is a reason to ask a session again."""

import pytest

from guard.core.check.evidence import Living, Policy
from guard.core.check.holders import is_news, may_answer_anew

POLICY = Policy(progress_window_seconds=120, max_wait_seconds=7200)
BUSY = Living(kind="process", name="cc (pid 1)", idle_seconds=0)
OTHER = Living(kind="process", name="ld (pid 2)", idle_seconds=0)
IDLE = Living(kind="process", name="server (pid 3)", idle_seconds=600)
AGENT = Living(kind="agent", name="claude (pid 4)", idle_seconds=0)
QUIET_AGENT = Living(kind="agent", name="claude (pid 4)", idle_seconds=600)
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


@pytest.mark.parametrize(
    ("before", "now", "may"),
    [
        pytest.param((), (), False, id="nothing lives"),
        pytest.param((IDLE,), (IDLE,), False, id="it is still idle"),
        pytest.param(
            (IDLE,), (IDLE, BUSY), False, id="a helper works, of which the session knows nothing"
        ),
        pytest.param((BUSY,), (), True, id="a helper has ended"),
        pytest.param((QUIET_AGENT,), (AGENT,), True, id="the agent itself goes on"),
        pytest.param((QUIET_AGENT,), (QUIET_AGENT,), False, id="the agent is still quiet"),
    ],
)
def test_a_session_is_asked_again_when_something_ended_or_its_agent_goes_on(
    before: tuple[Living, ...], now: tuple[Living, ...], may: bool
) -> None:
    assert may_answer_anew(before, now, POLICY) == may
