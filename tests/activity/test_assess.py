"""Whether an agent may be sent a prompt."""

import json
import time
from pathlib import Path
from typing import Any, cast

import pytest

from guard import (
    is_meaningful_progress,
    is_resumer_prompt,
    should_send_resume,
    spawn_agent,
    update_agent_progress,
)
from tests.support import commit, write


@pytest.fixture(autouse=True)
def stands(repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    commit(repository, "first.txt")
    for name in ("a1", "a2"):
        spawn_agent("T1", name)


def test_an_active_agent_is_left_alone_and_a_silent_one_is_woken() -> None:
    update_agent_progress("T1", "a1", "working", "The form has its fields.")
    assert should_send_resume("a1") == (
        False,
        "it is active: 1 source of tier 1 (TELEMETRY_EVENT): 0.7",
    )
    send, why = should_send_resume("a2", task_id="T1")
    assert send
    assert why == "no sign of activity; not active: 0 is below 0.5"


def test_an_agent_that_has_ended_is_not_woken() -> None:
    update_agent_progress("T1", "a1", "completed", "Done.")
    assert should_send_resume("a1") == (False, "it has ended: completed")


def test_an_unknown_agent_may_get_a_prompt_and_the_reason_says_that_it_is_unknown() -> None:
    send, why = should_send_resume("unknown")
    assert (send, why) == (True, "there is no agent unknown: a prompt is allowed")


def test_it_fails_open_and_says_so(repository: Path, workspace: Path, home: Path) -> None:
    write(home / "config/guard/config.toml", "[activity]\nlookback_minutes = 'long'\n")
    send, why = should_send_resume("a2", repo=repository)
    assert send
    assert "could not be assessed" in why
    assert "lookback_minutes" in why


def test_signs_that_do_not_confirm_each_other_allow_it_with_the_reason(repository: Path) -> None:
    message = {"sender": "a2", "at": time.time(), "content": "The form has its fields."}
    write(repository / "message_queue/q.json", json.dumps(message))
    send, why = should_send_resume("a2")
    assert send
    assert "none of tier 1 or 2" in why


def test_what_is_no_message_is_no_prompt_and_no_progress() -> None:
    nothing: list[Any] = [None, [], "x", 7]
    assert [is_meaningful_progress(one) for one in nothing] == [False] * 4
    assert not is_resumer_prompt(cast(Any, None))
