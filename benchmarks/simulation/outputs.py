"""What agents print by the way they end: in the shapes of their real programs, read by the product's own `classify`."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, Literal

from guard.core.classify import Classification, classify

Ending = Literal[
    "ok",
    "limited",
    "transient",
    "auth",
    "question",
    "courteous question",
    "offer",
    "denied",
    "turns",
    "context",
    "crash",
    "cut",
    "killed",
]
Printed = tuple[str, bytes, bytes, int]
"""The agent, its two outputs, and its exit code."""

_SESSION = "5f0c0a57-3f6e-4a0c-9d3a-0c5f1e2d7b11"
_CLOSING = (
    "All tasks are done and the tests pass.",
    "I looked at the limits in `config.py`; the error 429 is now handled, see the tests.",
    "Added the parser. The usage limit reached message is shown to the user.",
    "I have made some progress. Next I will write the tests.",
    "Done. Let me know if you want anything else!",
    "The build failed with: error: API rate limit exceeded. I fixed the retry.",
)
_QUESTIONS = (
    "There are two ways to do this.\n1. a table\n2. a file\nWhich one should I use?",
    "The database would be dropped by this. Should I go on?",
    "Please confirm that I may change the public interface.",
)

_COURTEOUS = (
    "I can store the sessions in either database. Should I use PostgreSQL or SQLite? Please let me know.",
    "I have not changed anything yet. Is it production or staging?",
    "The migration deletes the old table. I need your go-ahead before I run it. Thank you!",
    "Both ways work, and I stopped here because they exclude each other. Your call.",
)
_OFFERS = (
    "The parser is written and its tests pass. Would you like me to open a PR?",
    "Done: the login page works. Let me know if you want anything else!",
    "All tasks are finished. Shall I also update the changelog?",
    'The dialog now asks "Delete all files?" before it deletes anything.',
    "Why did the test fail? Because the clock was mocked twice. I fixed it and all tests pass.",
)


def printed(random: Random, ending: Ending, now: datetime) -> Classification:
    """What the output of a session that ended so means."""
    agent, out, err, code = random.choice(_AGENTS[ending])(random, now)
    return classify(out, err, agent, code, now)


def _jsonl(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def _claude(events: Sequence[dict[str, Any]], code: int = 0, err: bytes = b"") -> Printed:
    init = {"type": "system", "subtype": "init", "cwd": "/p", "model": "some-model"}
    named = [{**event, "session_id": _SESSION} for event in (init, *events)]
    return "claude", _jsonl(*named), err, code


def _says(text: str) -> dict[str, Any]:
    block = {"type": "text", "text": text}
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"role": "assistant", "model": "some-model", "content": [block], "usage": usage}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None}


def _uses(tool: str, number: int = 1) -> dict[str, Any]:
    event = _says("")
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {}}
    return {**event, "message": {**event["message"], "content": [block]}}


def _tool_said(text: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": text}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def _result(text: str, **fields: Any) -> dict[str, Any]:
    plain = {"type": "result", "subtype": "success", "is_error": False, "result": text}
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {**plain, "permission_denials": [], "usage": usage, "num_turns": 3, **fields}


def _failed(text: str, **fields: Any) -> dict[str, Any]:
    return _result(text, is_error=True, **{"terminal_reason": "api_error", **fields})


_QUOTED = _tool_said("You've hit your usage limit · resets 5am\nError: 401 Unauthorized")


def _claude_ok(random: Random, _now: datetime) -> Printed:
    text = random.choice(_CLOSING)
    return _claude([_uses("Bash"), _QUOTED, _says(text), _result(text)])


def _claude_document(random: Random, _now: datetime) -> Printed:
    document = {**_result(random.choice(_CLOSING)), "session_id": _SESSION}
    return "claude", json.dumps(document).encode(), b"", 0


def _codex(*events: dict[str, Any], code: int = 0) -> Printed:
    started = {"type": "thread.started", "thread_id": _SESSION}
    return "codex", _jsonl(started, {"type": "turn.started"}, *events), b"", code


def _codex_says(text: str) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": text}}


_TURN_OVER = {"type": "turn.completed", "usage": {"input_tokens": 20, "output_tokens": 10}}


def _turn_failed(text: str) -> dict[str, Any]:
    return {"type": "turn.failed", "error": {"message": text}}


def _gemini(random: Random, _now: datetime) -> Printed:
    init = {"type": "init", "session_id": _SESSION, "model": "some-model"}
    said = {"type": "message", "role": "assistant", "content": random.choice(_CLOSING)}
    return (
        "gemini",
        _jsonl(init, said, {"type": "result", "status": "success", "stats": {}}),
        b"",
        0,
    )


def _plain(text: str, code: int = 0, err: str = "") -> Printed:
    return "claude", f"{text}\n".encode(), err.encode(), code


def _refused(at: int) -> dict[str, Any]:
    info = {"status": "rejected", "resetsAt": at, "rateLimitType": "five_hour"}
    return {"type": "rate_limit_event", "rate_limit_info": info}


def _limited_stream(random: Random, now: datetime) -> Printed:
    at = int((now + timedelta(minutes=random.randint(5, 290))).timestamp())
    text = "You've hit your 5-hour limit · resets 3:30am (UTC)"
    more = {"api_error_status": 429, "api_error": "usage_limit_reached"}
    return _claude([_uses("Bash"), _refused(at), _failed(text, **more)], 1)


def _limited_text(random: Random, now: datetime) -> Printed:
    at = now + timedelta(hours=random.randint(1, 5))
    hour = f"{at.hour % 12 or 12}{'pm' if at.hour >= 12 else 'am'}"
    return _plain(f"You've hit your limit · resets {hour} (UTC)", 1)


def _started(task: str, description: str) -> dict[str, Any]:
    plain = {"type": "system", "subtype": "task_started", "is_backgrounded": True}
    return {**plain, "task_id": task, "description": description}


def _killed_claude(random: Random, _now: datetime) -> Printed:
    text = random.choice(_CLOSING)
    over = {"type": "system", "subtype": "task_updated", "task_id": "b1"}
    events = [_uses("Bash"), _started("b1", "npm test"), _says(text), _result(text)]
    return _claude([*events, {**over, "patch": {"status": "killed"}}])


def _killed_codex(_random: Random, _now: datetime) -> Printed:
    spawned = {
        "id": "i5", "type": "collab_tool_call", "tool": "spawn_agent", "prompt": "write the docs",
        "agents_states": {"t2": {"status": "running"}}, "status": "completed",
    }  # fmt: skip
    return _codex({"type": "item.completed", "item": spawned}, _codex_says("Started."), _TURN_OVER)


def _denied(_random: Random, _now: datetime) -> Printed:
    denials = [{"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {}}]
    text = "I cannot go on: I need permission to run commands."
    return _claude([_uses("Bash"), _says(text), _result(text, permission_denials=denials)])


_Maker = Callable[[Random, datetime], Printed]
_AGENTS: dict[Ending, tuple[_Maker, ...]] = {
    "ok": (
        _claude_ok,
        _claude_document,
        _gemini,
        lambda random, _: _codex(_codex_says(random.choice(_CLOSING)), _TURN_OVER),
        lambda random, _: _plain(random.choice(_CLOSING)),
    ),
    "limited": (
        _limited_stream,
        _limited_text,
        lambda _, __: _codex(
            _turn_failed("You’ve hit your usage limit. Upgrade or try again at 3:33 AM."), code=1
        ),
    ),
    "transient": (
        lambda _, __: _claude([_failed("API Error: 529 Overloaded", api_error_status=529)], 1),
        lambda _, __: _claude([_failed("API Error: 503", api_error_status=503)], 1),
        lambda _, __: _plain("", 1, "API Error: Connection error. ECONNREFUSED\n"),
        lambda _, __: _codex(_turn_failed("stream disconnected before completion"), code=1),
    ),
    "auth": (
        lambda _, __: _claude([_failed("Not logged in · Please run /login")], 1),
        lambda _, __: _claude([_failed("Failed to authenticate.", api_error_status=401)], 1),
    ),
    "question": (
        lambda random, _: _claude([_says(text := random.choice(_QUESTIONS)), _result(text)]),
        lambda random, _: _codex(_codex_says(random.choice(_QUESTIONS)), _TURN_OVER),
        lambda _, __: _claude([_uses("AskUserQuestion"), _result("")]),
    ),
    "courteous question": (
        lambda random, _: _claude([_says(text := random.choice(_COURTEOUS)), _result(text)]),
        lambda random, _: _codex(_codex_says(random.choice(_COURTEOUS)), _TURN_OVER),
    ),
    "offer": (
        lambda random, _: _claude([_says(text := random.choice(_OFFERS)), _result(text)]),
        lambda random, _: _codex(_codex_says(random.choice(_OFFERS)), _TURN_OVER),
    ),
    "cut": (
        lambda random, _: _claude([_uses("Bash"), _says(random.choice(_CLOSING))], -15),
        lambda _, __: _codex(_codex_says("Working on it."), code=-15),
    ),
    "denied": (_denied,),
    "turns": (
        lambda _, __: _claude(
            [
                _uses("Bash"),
                {
                    **_result(""),
                    "subtype": "error_max_turns",
                    "is_error": True,
                    "terminal_reason": "max_turns",
                    "errors": ["Reached maximum number of turns (30)"],
                },
            ],
            1,
        ),
    ),
    "context": (
        lambda _, __: _claude(
            [_failed("Prompt is too long", terminal_reason="prompt_too_long")], 1
        ),
        lambda _, __: _codex(_turn_failed("Codex ran out of room in the context window"), code=1),
    ),
    "crash": (
        lambda random, _: _claude([_uses("Bash"), _says(random.choice(_CLOSING))], -9),
        lambda _, __: _claude([_uses("Bash")], 137, b"Killed\n"),
        lambda _, __: _codex(_codex_says("Working on it."), code=101),
        lambda _, __: _plain("", 1, "TypeError: Cannot read properties of undefined\n"),
    ),
    "killed": (_killed_claude, _killed_codex),
}
