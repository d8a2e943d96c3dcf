"""Codex: what its events mean, by the outcome that they end in."""

from typing import Any

import pytest

from guard.core.classify import make_reader
from tests.streams import SESSION, jsonl, read


def row(expected: str, code: int | None, *events: dict[str, Any]) -> tuple[str, int | None, bytes]:
    """A session of one turn with these events."""
    return expected, code, turn(*events)


def turn(*events: dict[str, Any]) -> bytes:
    return jsonl(
        {"type": "thread.started", "thread_id": SESSION}, {"type": "turn.started"}, *events
    )


def item(kind: str, state: str = "completed", number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{state}", "item": {"id": f"item_{number}", "type": kind, **fields}}


def turn_failed(message: str) -> dict[str, Any]:
    return {"type": "turn.failed", "error": {"message": message}}


def agents(**states: str) -> dict[str, Any]:
    known = {name: {"status": status, "message": None} for name, status in states.items()}
    return item("collab_tool_call", tool="spawn_agent", prompt="do a part", agents_states=known)


completed = {"type": "turn.completed", "usage": {}}
reconnecting = {"type": "error", "message": "Reconnecting... 1/5 (stream disconnected)"}
LIMIT = "You’ve hit your usage limit. Visit the settings to purchase more credits or try again at 3:33 AM."

CODEX = {
    "a turn that completed": row("ok completed", 0, completed),
    "reconnected": row("ok completed", 0, reconnecting, completed),
    "a warning": row("ok completed", 0, item("error", message="429 Too Many Requests"), completed),
    "a message about limits": row("ok completed", 0, item("agent_message", text=LIMIT), completed),
    "a usage limit": row("limited usage_limit", 1, turn_failed(LIMIT)),
    "too many requests": row(
        "limited rate_limit",
        1,
        turn_failed("exceeded retry limit, last status: 429 Too Many Requests"),
    ),
    "unavailable": row(
        "transient http_503",
        1,
        turn_failed("exceeded retry limit, last status: 503 Service Unavailable"),
    ),
    "at capacity": row(
        "transient overloaded",
        1,
        turn_failed("Selected model is at capacity. Please try a different model."),
    ),
    "no credit": row(
        "auth billing", 1, turn_failed("Quota exceeded. Check your plan and billing details.")
    ),
    "not logged in": row(
        "auth not_logged_in", 1, turn_failed("unexpected status 401 Unauthorized: token revoked")
    ),
    "out of room": row(
        "context prompt_too_long",
        1,
        turn_failed("Codex ran out of room in the model's context window."),
    ),
    "an error without a name": row("crash turn_failed", 1, turn_failed("boom")),
    "the error came before": row(
        "limited usage_limit",
        1,
        {"type": "error", "message": LIMIT},
        {"type": "turn.failed", "error": None},
    ),
    "killed while it reconnected": row("transient connection", -9, reconnecting),
    "cut off": row("crash no_result", 0, item("agent_message", text="x")),
    "killed in the middle of a command": row(
        "crash sigkill", -9, item("command_execution", "started", command="make")
    ),
    "a terminal that outlived the turn": row(
        "interrupted background_work",
        0,
        item("command_execution", "started", command="make site"),
        completed,
    ),
    "a plan is no work": row("ok completed", 0, item("todo_list", "started"), completed),
    "a helper that was not waited for": row(
        "interrupted background_work", 0, agents(helper="pending_init"), completed
    ),
    "a helper that was shut down": row(
        "ok completed", 0, agents(helper="running"), agents(helper="shutdown"), completed
    ),
    "a helper that died with the turn": row(
        "interrupted background_work", -15, agents(helper="running")
    ),
    "a question": row(
        "question question", 0, item("agent_message", text="Should I delete the table?"), completed
    ),
    "a turn after it that was cut off": row(
        "crash no_result", 0, turn_failed(LIMIT), {"type": "turn.started"}
    ),
    "the last turn decides": row(
        "ok completed", 0, turn_failed(LIMIT), {"type": "turn.started"}, completed
    ),
}


@pytest.mark.parametrize(("expected", "code", "out"), CODEX.values(), ids=CODEX)
def test_codex(expected: str, code: int | None, out: bytes) -> None:
    found = read("codex", out, code)
    assert f"{found.outcome} {found.reason}" == expected
    assert found.session == SESSION


def test_codex_names_its_session_on_stderr_when_it_prints_no_events() -> None:
    one = make_reader("codex")
    head = b"OpenAI Codex\n--------\nsession id: 01a1-x\n--------\nsession id: other\n"
    for at in range(len(head)):
        one.feed_error(head[at : at + 1])
    assert one.session == "01a1-x"
    assert read("codex", b"", 1, b"session id: --yolo\n").session is None
    assert read("claude", b"", 1, head).session is None


HEAD = f"""\
Reading additional input from stdin...
OpenAI Codex v0.166.0
--------
workdir: /project
model: some-model
approval: never
session id: {SESSION}
--------
user
make it
"""
WARNING = "warning: Model metadata for `some-model` not found.\n"
LOG = "Error: 401 Unauthorized: token has expired\n"
QUOTED = "ERROR: 401 Unauthorized\n"
GAVE_UP = f"ERROR: {LIMIT}\n"
PAGE = "ERROR: unexpected status 502 Bad Gateway: <html>\n<body>\nx\n"
GEMINI = '{"session_id":"s","error":{"type":"Error","message":"quota","code":429}}\n'


def ran(output: str) -> str:
    return f"exec\n/bin/bash -lc 'cat it' in /project\n succeeded in 0ms:\n{output}\n"


TEXTS = {
    "a command that printed an error, then terminated": ("crash sigterm", -15, ran(LOG)),
    "a command that printed an error, then a time-out": ("crash timed_out", 124, ran(LOG)),
    "a command that printed an error, then no exit code": ("unknown no_exit_code", None, ran(LOG)),
    "a command whose last word looks like the end": ("crash sigterm", -15, ran(QUOTED)[:-1]),
    "a command whose output has headings in it": ("crash sigterm", -15, ran("user\n" + QUOTED)),
    "a prompt that looks like the end": ("crash sigterm", -15, QUOTED),
    "interrupted after a command": (
        "crash exit_1",
        1,
        ran(QUOTED)[:-1] + "turn interrupted\ntokens used\n15\n",
    ),
    "an error of a command above its own": (
        "limited usage_limit",
        1,
        ran(LOG) + GAVE_UP * 2 + "tokens used\n1,015\n",
    ),
    "an error that is printed once": ("limited usage_limit", 1, WARNING + GAVE_UP),
    "an error before the first answer": (
        "auth not_logged_in",
        1,
        WARNING + "ERROR: unexpected status 401 Unauthorized: bad key, url: http://x\n" * 2,
    ),
    "an error in a fence that a command left open": (
        "limited usage_limit",
        1,
        ran("```\n") + GAVE_UP * 2,
    ),
    "an error over many lines": ("transient http_502", 1, ran(LOG) + PAGE * 2),
    "a failed run whose last words are not its own": ("crash exit_1", 1, ran(PAGE)),
    "a command that printed another agent's failure": ("crash exit_1", 1, ran(GEMINI)),
}


@pytest.mark.parametrize(("expected", "code", "err"), TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("agent", ["codex", None], ids=["named", "found out"])
def test_codex_without_events(agent: str | None, expected: str, code: int | None, err: str) -> None:
    found = read(agent, b"", code, (HEAD + err).encode())
    assert f"{found.outcome} {found.reason}" == expected
    assert found.session == SESSION


@pytest.mark.parametrize("agent", ["codex", None], ids=["named", "found out"])
def test_codex_that_could_not_begin_says_why(agent: str | None) -> None:
    found = read(agent, b"", 1, b"Error: unexpected status 401 Unauthorized\n")
    assert (found.outcome, found.session) == ("auth", None)


@pytest.mark.parametrize("agent", ["codex", None], ids=["named", "found out"])
def test_the_session_that_codex_announces_is_not_one_that_it_quotes(agent: str | None) -> None:
    quoted = jsonl({"type": "thread.started", "thread_id": "another"}).decode()
    err = HEAD + ran(quoted) + "codex\nDone.\n"
    for out in (b"Done.\n", quoted.encode()):
        assert read(agent, out, 0, err.encode()).session == SESSION


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Error at /a/b.py:12: 3 tests failed", "Error at /c/d.py:99: 17 tests failed"),
        ("request req_01ab failed", "request req_99zz failed"),
        ("Timed out after 30s", "Timed  out after 45s"),
    ],
    ids=["paths and counts", "ids", "seconds and spaces"],
)
def test_the_same_error_has_the_same_fingerprint(first: str, second: str) -> None:
    one, other = (read("codex", turn(turn_failed(text)), 1).fingerprint for text in (first, second))
    assert one == other
    assert one is not None
    assert one != read("codex", turn(turn_failed("something else")), 1).fingerprint
