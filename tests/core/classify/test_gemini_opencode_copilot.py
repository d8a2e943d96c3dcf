"""Gemini CLI, OpenCode and Copilot CLI: what their events mean, by the outcome that they end in."""

import json
from typing import Any

import pytest

from guard.core.classify import make_reader
from tests.streams import NOW, SESSION, failed, jsonl, read, row


def gemini(*events: dict[str, Any]) -> bytes:
    return jsonl({"type": "init", "session_id": SESSION, "model": "some-model"}, *events)


def gemini_error(kind: str, message: str, **fields: Any) -> dict[str, Any]:
    error = {"type": kind, "message": message, **fields}
    return {"type": "result", "status": "error", "error": error}


GEMINI = {
    "a result that says so": row(
        "ok completed", 0, gemini({"type": "result", "status": "success"})
    ),
    "a document": row(
        "ok completed",
        0,
        json.dumps({"session_id": SESSION, "response": "ok", "stats": {}}, indent=2).encode(),
    ),
    "a warning": row(
        "ok completed",
        0,
        gemini(
            {"type": "error", "severity": "warning", "message": "quota exceeded"},
            {"type": "result", "status": "success"},
        ),
    ),
    "a quota": row(
        "limited rate_limit",
        173,
        gemini(gemini_error("Error", "You exceeded your current quota. Please retry in 34.5s")),
    ),
    "a quota that speaks of billing": row(
        "limited usage_limit",
        173,
        gemini(
            gemini_error("Error", "quota: check your plan and billing. See ai.google.dev", code=429)
        ),
    ),
    "turns used up": row(
        "turn_limit max_turns",
        53,
        gemini(gemini_error("FatalTurnLimitedError", "Reached max session turns")),
    ),
    "not logged in": row(
        "auth not_logged_in", 41, gemini(gemini_error("FatalAuthenticationError", "x"))
    ),
    "by the exit code: 401": row("auth not_logged_in", 145, b""),
    "by the exit code: 403": row("auth not_logged_in", 147, b""),
    "by the exit code: 429": row("limited rate_limit", 173, b""),
    "by the exit code: 503": row("transient http_503", 247, b""),
    "by the exit code: turns": row("turn_limit max_turns", 53, b""),
    "by the exit code: folder not trusted": row("denied untrusted_folder", 55, b""),
    "terminated after a warning": row(
        "crash sigterm",
        143,
        gemini({"type": "error", "severity": "warning", "message": "quota exceeded"}),
    ),
    "terminated": row("crash sigterm", 143, gemini()),
    "a bad session": row("crash exit_42", 42, b""),
    "cut off after an error": row(
        "transient http_503",
        1,
        gemini({"type": "error", "severity": "error", "message": "503 Service Unavailable"}),
    ),
    "a question in pieces": row(
        "question question",
        0,
        gemini(
            {"type": "message", "role": "assistant", "content": "Which one ", "delta": True},
            {"type": "message", "role": "assistant", "content": "should I take?", "delta": True},
            {"type": "result", "status": "success"},
        ),
    ),
    "a question that was answered by a tool": row(
        "ok completed",
        0,
        gemini(
            {"type": "message", "role": "assistant", "content": "Should I?", "delta": True},
            {"type": "tool_use", "tool_name": "x"},
            {"type": "message", "role": "assistant", "content": "Done.", "delta": True},
            {"type": "result", "status": "success"},
        ),
    ),
}


@pytest.mark.parametrize(("expected", "code", "out"), GEMINI.values(), ids=GEMINI)
def test_gemini(expected: str, code: int | None, out: bytes) -> None:
    found = read("gemini", out, code)
    assert f"{found.outcome} {found.reason}" == expected


def test_gemini_says_its_message_in_pieces_until_it_uses_a_tool() -> None:
    pieces = [
        {"type": "message", "role": "assistant", "content": text, "delta": True}
        for text in ("I look. ", "Now I wri", "te.")
    ]
    tool = {"type": "tool_use", "tool_name": "x"}
    data = gemini(pieces[0], tool, *pieces[1:], {"type": "result", "status": "success"})
    assert read("gemini", data, 0).claim == "Now I write."


@pytest.mark.parametrize("agent", ["gemini", None], ids=["named", "found out"])
def test_gemini_puts_its_error_on_stderr_after_log_lines(agent: str | None) -> None:
    error = {"type": "Error", "message": "Quota will reset after 1h2m3s.", "code": 429}
    document = json.dumps({"session_id": SESSION, "error": error}, indent=2)
    err = f"Loaded cached credentials.\nAttempt 1 failed {{x}}\n{document}\n".encode()
    found = read(agent, b"", 173, err)
    assert (found.outcome, found.session) == ("limited", SESSION)
    assert found.retry_at is not None
    assert found.retry_at.isoformat() == "2026-11-16T03:02:03+00:00"


TRACE = """\
    at async Turn.run (file:///bundle/chunk.js:333001:24) {
  status: 401
}
An unexpected critical error occurred:[object Object]
"""


@pytest.mark.parametrize(
    ("first", "trace", "expected"),
    [
        ("", TRACE, "auth not_logged_in"),
        (
            'Error when talking to Gemini API Full report: /x.json _ApiError: {"error":{"code":401}}\n',
            TRACE,
            "auth not_logged_in",
        ),
        ("", TRACE.replace("401", "503"), "transient http_503"),
        ("", TRACE.replace("401", "400"), "crash exit_1"),
        ("", TRACE.replace("An unexpected", "No"), "crash exit_1"),
    ],
    ids=["a refused key", "with its first line", "unavailable", "a bad request", "no such end"],
)
def test_gemini_without_json_has_the_status_in_a_stack_trace(
    first: str, trace: str, expected: str
) -> None:
    found = read("gemini", b"", 1, f"Ripgrep is not available.\n{first}{trace}".encode())
    assert f"{found.outcome} {found.reason}" == expected


STDERR = {
    "the document is not the last": (b"%s\nbye\n", "gemini", 1),
    "a good exit": (b"%s\n", "gemini", 0),
    "Claude, which has none": (b"%s\n", "claude", 1),
    "Codex, which prints what commands say": (b"%s\n", "codex", 1),
    "Qwen, which says it on stdout": (b"%s\n", "qwen", 1),
}


@pytest.mark.parametrize(("err", "agent", "code"), STDERR.values(), ids=STDERR)
def test_no_other_document_on_stderr_is_a_failure(err: bytes, agent: str, code: int) -> None:
    error = {"type": "Error", "message": "quota", "code": 429}
    lines = [json.dumps(one) for one in ({"session_id": "s1", "error": error}, failed("x", 429))]
    for document in lines:
        found = read(agent, b"Done.\n", code, err % document.encode())
        assert found.outcome == ("crash" if code else "ok")
        assert found.session is None


def opencode(*events: dict[str, Any]) -> bytes:
    return jsonl(*({"sessionID": "ses_1", **event} for event in events))


def step(reason: str, cost: float = 0.5) -> dict[str, Any]:
    return {"type": "step_finish", "part": {"reason": reason, "cost": cost}}


def opencode_error(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"name": name, "data": data}}


def opencode_tool(error: str | None = None) -> dict[str, Any]:
    state = {"status": "error", "error": error} if error else {"status": "completed"}
    return {"type": "tool_use", "part": {"tool": "bash", "state": state}}


step_start = {"type": "step_start", "part": {}}
REJECTED = "The user rejected permission to use this specific tool call."

OPENCODE = {
    "a step that stopped": row("ok completed", 0, opencode(step_start, step("stop"))),
    "an error that was got over": row(
        "ok completed",
        0,
        opencode(opencode_error("APIError", statusCode=529), step_start, step("stop")),
    ),
    "unauthorised": row(
        "auth not_logged_in", 1, opencode(opencode_error("APIError", message="no", statusCode=401))
    ),
    "no key": row("auth not_logged_in", 1, opencode(opencode_error("ProviderAuthError"))),
    "too many requests": row(
        "limited rate_limit",
        1,
        opencode(opencode_error("APIError", message="slow down", statusCode=429)),
    ),
    "unavailable": row(
        "transient http_503", 1, opencode(opencode_error("APIError", message="x", statusCode=503))
    ),
    "too long": row("context prompt_too_long", 1, opencode(opencode_error("ContextOverflowError"))),
    "aborted": row("crash MessageAbortedError", 1, opencode(opencode_error("MessageAbortedError"))),
    "cut off between steps": row("crash no_result", 0, opencode(step_start, step("tool-calls"))),
    "every tool rejected": row(
        "denied permissions", 0, opencode(opencode_tool(REJECTED), step("stop"))
    ),
    "cut off after a rejection": row("crash no_result", 0, opencode(opencode_tool(REJECTED))),
    "one tool rejected": row(
        "ok completed", 0, opencode(opencode_tool(REJECTED), opencode_tool(), step("stop"))
    ),
    "a tool that failed with these words": row(
        "ok completed", 0, opencode(opencode_tool("cat: x: 401 Unauthorized"), step("stop"))
    ),
    "a question": row(
        "question question",
        0,
        opencode({"type": "text", "part": {"text": "Do you want the long form?"}}, step("stop")),
    ),
}


@pytest.mark.parametrize(("expected", "code", "out"), OPENCODE.values(), ids=OPENCODE)
def test_opencode(expected: str, code: int | None, out: bytes) -> None:
    found = read("opencode", out, code)
    assert f"{found.outcome} {found.reason}" == expected
    assert found.session == "ses_1"


def test_opencode_adds_up_its_costs() -> None:
    data = opencode(step_start, step("tool-calls", 0.25), step_start, step("stop", 0.5))
    assert read("opencode", data, 0).cost_usd == 0.75


def copilot(*events: tuple[str, dict[str, Any]], code: int | None = 0) -> bytes:
    end = {"type": "result", "sessionId": SESSION, "exitCode": code}
    lines = [{"type": kind, "data": data} for kind, data in events]
    return jsonl(*lines, *([end] if code is not None else []))


def copilot_error(kind: str, status: int | None = None, message: str = "x") -> Any:
    return "session.error", {"errorType": kind, "statusCode": status, "message": message}


def copilot_retry(status: int, source: str = "top_level") -> Any:
    kind = "rate_limit_error" if status == 429 else "api_error"
    return "model.call_failure", {"statusCode": status, "errorType": kind, "source": source}


def copilot_tool(code: str) -> Any:
    error = {"code": code, "message": "x"}
    return "tool.execution_complete", {"toolCallId": "c1", "success": False, "error": error}


words = ("assistant.message", {"content": "Done.", "toolRequests": []})
request = (
    "assistant.message",
    {"content": "", "toolRequests": [{"toolCallId": "c1", "name": "bash"}]},
)

COPILOT = {
    "a result that says so": row("ok completed", 0, copilot(words)),
    "an error that was got over": row(
        "ok completed", 0, copilot(copilot_error("query", 503), words)
    ),
    "an error of a subagent": row(
        "ok completed",
        0,
        copilot(words, ("session.error", {"statusCode": 401, "parentToolCallId": "c1"})),
    ),
    "killed while it tried again": row(
        "limited rate_limit", -15, copilot(words, copilot_retry(429), code=None)
    ),
    "killed while it tried an outage again": row(
        "transient http_503", -15, copilot(copilot_retry(503), code=None)
    ),
    "gave up trying": row("limited rate_limit", 1, copilot(copilot_retry(429), code=1)),
    "retries that worked": row("ok completed", 0, copilot(copilot_retry(429), words)),
    "killed after retries that worked": row(
        "crash sigterm", -15, copilot(copilot_retry(429), words, code=None)
    ),
    "a retry that says nothing": row("crash sigterm", -15, copilot(copilot_retry(418), code=None)),
    "killed while a subagent tried again": row(
        "crash sigterm", -15, copilot(words, copilot_retry(429, source="subagent"), code=None)
    ),
    "a rate limit": row(
        "limited rate_limit",
        1,
        copilot(copilot_error("rate_limit", 429, "Please try again in 2 hours."), code=1),
    ),
    "a rate limit with exit code 0": row(
        "limited rate_limit", 0, copilot(words, copilot_error("rate_limit", 429))
    ),
    "no quota": row("auth billing", 1, copilot(copilot_error("quota", 402), code=1)),
    "unauthorised": row("auth not_logged_in", 1, copilot(copilot_error("query", 401), code=1)),
    "unavailable": row("transient http_503", 1, copilot(copilot_error("query", 503), code=1)),
    "too long": row("context prompt_too_long", 1, copilot(copilot_error("context_limit"), code=1)),
    "an error without a name": row("crash query", 1, copilot(copilot_error("query", 418), code=1)),
    "only an exit code": row("crash exit_7", 7, copilot(words, code=7)),
    "cut off": row("crash no_result", 0, copilot(words, code=None)),
    "every tool denied": row(
        "denied permissions", 0, copilot(request, copilot_tool("denied"), words)
    ),
    "a tool that failed": row("ok completed", 0, copilot(request, copilot_tool("failure"), words)),
}


@pytest.mark.parametrize(("expected", "code", "out"), COPILOT.values(), ids=COPILOT)
def test_copilot(expected: str, code: int | None, out: bytes) -> None:
    found = read("copilot", out, code)
    assert f"{found.outcome} {found.reason}" == expected


SUMMARY = f"""

Changes    +0 -0
Duration   2s
Tokens     ↑ 10 • ↓ 5
Resume     copilot --resume={SESSION}
"""


@pytest.mark.parametrize("agent", ["copilot", None], ids=["named", "found out"])
def test_copilot_without_json_names_its_session_at_the_end(agent: str | None) -> None:
    noise = "x" * 100 * 1024 + "\nResume     copilot --resume=another\n"
    found = read(agent, b"Done.\n", 0, (noise + SUMMARY).encode())
    assert (found.outcome, found.session) == ("ok", SESSION)
    assert read(agent, b"", 1, b"Resume     copilot --resume=--yolo\n").session is None
    assert read("claude", b"", 1, SUMMARY.encode()).session is None


def test_the_summary_of_copilot_is_no_error() -> None:
    found = read("copilot", b"", 1, f"\n400 the request is bad\n{SUMMARY}".encode())
    assert (found.outcome, found.fingerprint) == ("crash", "crash: the request is bad")


RETRYING = """\
Attempt 1 failed with status 429. Retrying with backoff... _ApiError: {"error":{"code":429}}
    at async Turn.run (file:///bundle/chunk.js:333001:24) {
  status: 429
}
[STARTUP] Cannot measure phase 'cleanup_ops': start mark not found.
"""


@pytest.mark.parametrize("out", [b"", gemini()], ids=["text", "events"])
def test_gemini_killed_while_it_tries_again_waits_for_what_it_waited_for(out: bytes) -> None:
    assert read("gemini", out, -15, RETRYING.encode()).outcome == "limited"
    assert read("gemini", out, 124, RETRYING.replace("429", "503").encode()).outcome == "transient"
    ended = gemini({"type": "result", "status": "success"})
    assert read("gemini", ended, 0, RETRYING.encode()).outcome == "ok"


def test_gemini_killed_after_a_retry_that_worked_did_not_wait() -> None:
    one = make_reader("gemini")
    one.feed(gemini())
    one.feed_error(RETRYING.encode())
    one.feed(jsonl({"type": "message", "role": "assistant", "content": "I go on."}))
    one.feed_error(b"[STARTUP] Skipping metrics.\n")
    found = one.finish(-15, NOW)
    assert (found.outcome, found.reason) == ("crash", "sigterm")
