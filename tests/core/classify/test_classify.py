"""Recorded sessions of every agent, whole, cut and cut off; and what each outcome leads to."""

from typing import get_args

import pytest

from guard.core.classify import AGENTS, MEANINGS, Outcome, make_reader, status_of
from tests.streams import NOW, read, stream

RECORDED = {
    "claude-ok": ("claude", "ok", "Added the parser and its tests."),
    "claude-background": ("claude", "ok", "The build has finished without errors."),
    "claude-subagent": ("claude", "ok", "The helper has written the page."),
    "claude-usage-limit": ("claude", "limited", None),
    "codex-ok": ("codex", "ok", "No findings are left."),
    "codex-helper": ("codex", "ok", "The helper has finished its part."),
    "copilot-ok": ("copilot", "ok", "Checked it again."),
    "gemini-ok": ("gemini", "ok", "Looked at the file."),
    "opencode-ok": ("opencode", "ok", "Wrote the file."),
    "qwen-ok": ("qwen", "ok", "Wrote the notes."),
}


@pytest.mark.parametrize(("name", "expected"), RECORDED.items(), ids=RECORDED)
def test_recorded_sessions(name: str, expected: tuple[str, str, str | None]) -> None:
    agent, outcome, claim = expected
    data = stream(name)
    sniffing = make_reader(None)
    sniffing.feed(data)
    assert sniffing.format == agent
    found = sniffing.finish(0 if outcome == "ok" else 1, NOW)
    assert (found.outcome, found.claim, found.killed) == (outcome, claim, ())
    assert found.session is not None
    assert (found.fingerprint is None) == (outcome == "ok")
    assert found == read(agent, data, found.exit_code)
    assert sniffing.skipped == 0


@pytest.mark.parametrize("name", RECORDED)
def test_the_same_however_it_is_cut(name: str) -> None:
    agent, data = RECORDED[name][0], stream(name)
    whole = read(agent, data, 1)
    for size in (1, 2, 3, 7, 100, 1000):
        one = make_reader(None)
        for at in range(0, len(data), size):
            one.feed(data[at : at + size])
        assert one.finish(1, NOW) == whole
    for at in range(0, len(data), 13):
        one = make_reader(agent)
        one.feed(data[:at])
        one.feed(data[at:])
        assert one.finish(1, NOW) == whole


@pytest.mark.parametrize("name", RECORDED)
def test_a_session_that_is_cut_off_is_never_ok(name: str) -> None:
    lines = stream(name).splitlines(keepends=True)
    for number in range(1, len(lines)):
        found = read(None, b"".join(lines[:number]), -15)
        assert found.outcome in ("crash", "interrupted", "limited")


def test_the_session_is_known_as_soon_as_it_was_named() -> None:
    one = make_reader("claude")
    data = stream("claude-ok")
    one.feed(data[:100])
    assert one.session is None
    one.feed(data[100:700])
    assert one.session == "00000002-0000-4000-8000-000000000002"


def test_every_outcome_has_a_meaning_and_its_status() -> None:
    assert set(MEANINGS) == set(get_args(Outcome))
    statuses = {outcome: status_of(outcome) for outcome in get_args(Outcome)}
    assert statuses == {
        "ok": None,
        "limited": "limited",
        "transient": "limited",
        "auth": "blocked",
        "context": "working",
        "turn_limit": "working",
        "budget": "working",
        "denied": "blocked",
        "question": "blocked",
        "crash": None,
        "interrupted": "interrupted",
        "unknown": None,
    }


def test_every_agent_has_a_reader_and_no_other() -> None:
    assert [make_reader(agent).format for agent in AGENTS] == [None] * 7
    with pytest.raises(ValueError, match="'nobody' is not an agent"):
        make_reader("nobody")
