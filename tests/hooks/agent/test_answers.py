"""What the agents' programs are answered: one line of ASCII, in the form that each of them reads."""

import json

import pytest

from guard.core.hooks.event_kinds import KINDS
from guard.hooks.agent import boundary

REASON = 'two lines\nwith "quotes", \x1b[31m, \u202e and \U0001f600'


@pytest.mark.parametrize("agent", KINDS)
def test_a_reason_to_go_on(agent: str) -> None:
    printed = boundary.render_block(agent, REASON)
    if agent == "opencode":
        assert printed == ""
        return
    assert json.loads(printed) == {"decision": "block", "reason": REASON}
    assert printed.isascii()
    assert printed.isprintable()


@pytest.mark.parametrize("agent", KINDS)
def test_a_message_for_the_user(agent: str) -> None:
    printed = boundary.render_message(agent, REASON)
    if agent in ("opencode", "copilot"):
        assert printed == ""
        return
    assert json.loads(printed) == {"systemMessage": REASON.replace("\n", " ")}
    assert printed.isascii()
    assert printed.isprintable()
    assert boundary.render_message(agent, "") == ""
