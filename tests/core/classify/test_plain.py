"""What plain text means, and all that looks like a failure and is none."""

import json
from datetime import UTC, timedelta

import pytest

from guard.core.classify import Classification, classify, make_reader
from guard.core.classify.stream_reader import OutputReader
from tests.core.classify.test_classify import RECORDED
from tests.streams import NOW, init, jsonl, result, says, stream, synthetic

UPSELL = "/upgrade to increase your usage limit."
LIMIT = "You've hit your limit · resets 7pm (UTC)"


def read(
    out: str, code: int | None, err: str = "", agent: str | None = "command"
) -> Classification:
    return classify(out.encode(), err.encode(), agent, code, NOW)


PLAIN = {
    "a good exit": ("Done.\n", "", 0, "ok", "completed"),
    "a good exit without a word": ("", "", 0, "ok", "completed"),
    "trouble on stderr and a good exit": ("Done.\n", "Error: 429\n", 0, "ok", "completed"),
    "a limit and exit code 1": (f"Working.\n{LIMIT}\n", "", 1, "limited", "usage_limit"),
    "a limit and exit code 0": (f"Working.\n{LIMIT}\n", "", 0, "limited", "usage_limit"),
    "a limit and no exit code": (f"Working.\n{LIMIT}\n", "", None, "limited", "usage_limit"),
    "a limit on stderr and no exit code": ("", f"{LIMIT}\n", None, "limited", "usage_limit"),
    "a limit in colours": (f"\x1b[31m{LIMIT}\x1b[0m\n", "", 0, "limited", "usage_limit"),
    "a limit after a spinner": (f"working\r\x1b[K{LIMIT}\r\n", "", 0, "limited", "usage_limit"),
    "an old limit": ("Claude AI usage limit reached|1794800000\n", "", 1, "limited", "usage_limit"),
    "a weekly limit": (
        "Opus weekly limit reached ∙ resets Nov 18\n",
        "",
        0,
        "limited",
        "usage_limit",
    ),
    "an hourly limit": ("5-hour limit reached ∙ resets 5am\n", "", 0, "limited", "usage_limit"),
    "a limit with a mark": (
        "■ You've hit your usage limit. To get more access, ask.\n",
        "",
        1,
        "limited",
        "usage_limit",
    ),
    "a limit on stderr, exit code 0, and nothing else": (
        "",
        f"{LIMIT}\n",
        0,
        "limited",
        "usage_limit",
    ),
    "an exhausted quota": (
        "You have exhausted your daily quota on this model.\n",
        "",
        1,
        "limited",
        "usage_limit",
    ),
    "a throttled request": (
        "",
        "Error: Request was throttled. Expected available in 42 seconds.\n",
        1,
        "limited",
        "rate_limit",
    ),
    "max turns, exit code 0": (
        "Working.\nError: Reached max turns (5)\n",
        "",
        0,
        "turn_limit",
        "max_turns",
    ),
    "max turns as a code word": ("", "Error: max_turns exceeded\n", 1, "turn_limit", "max_turns"),
    "a stop at max iterations": (
        "Agent stopped: max iterations (50) reached\n",
        "",
        1,
        "turn_limit",
        "max_turns",
    ),
    "not logged in": ("Not logged in · Please run /login\n", "", 1, "auth", "not_logged_in"),
    "not logged in, exit code 0": (
        "Invalid API key · Please run /login\n",
        "",
        0,
        "auth",
        "not_logged_in",
    ),
    "no credit": ("Credit balance is too low\n", "", 1, "auth", "billing"),
    "too long": ("Prompt is too long\n", "", 1, "context", "prompt_too_long"),
    "too large": (
        "Request too large (max 32MB). Try a smaller file.\n",
        "",
        1,
        "context",
        "prompt_too_long",
    ),
    "a provider that refuses a key": (
        "● Request failed due to a transient API error. Retrying...\n",
        "\nAuthentication failed with provider at http://127.0.0.1/v1 (HTTP 401).\n  Check it.\n\nChanges    +0 -0\n",
        1,
        "auth",
        "not_logged_in",
    ),
    "an API error": ("API Error: 529 overloaded\n", "", 1, "transient", "overloaded"),
    "an API error in brackets": (
        "✕ [API Error: 429 quota]\n",
        "",
        1,
        "limited",
        "rate_limit",
    ),
    "on stderr, among other lines": (
        "text\n",
        "info: x\nERROR: unexpected status 401 Unauthorized\nbye\n",
        1,
        "auth",
        "not_logged_in",
    ),
    "on stderr, in a log": (
        "",
        "2026-11-16T02:00:00.000Z ERROR core: 503 Service Unavailable\n",
        1,
        "transient",
        "http_503",
    ),
    "an exception": (
        "",
        "Traceback:\n  File x\nrequests.ConnectionError: Connection refused\n",
        1,
        "transient",
        "connection",
    ),
    "in a fence that was never closed": (
        f"```\ncode\n{LIMIT}\n",
        "",
        1,
        "limited",
        "usage_limit",
    ),
    "an error without a name": ("Error: it broke\n", "", 1, "crash", "exit_1"),
    "a bad exit without a word": ("", "", 3, "crash", "exit_3"),
    "killed": ("text\n", "", -9, "crash", "sigkill"),
    "no such command": ("", "sh: agent: not found\n", 127, "crash", "command_not_found"),
    "not a command": ("", "", 126, "crash", "not_executable"),
    "no exit code": ("Done.\n", "", None, "unknown", "no_exit_code"),
    "a question": ("Two ways.\nWhich one should I take?\n", "", 0, "question", "question"),
    "a question, and a bad exit": ("Should I go on?\n", "", 1, "crash", "exit_1"),
    "escapes and NULs only": ("\x00\x00\x1b[0m\n", "", 1, "crash", "exit_1"),
}


@pytest.mark.parametrize(("out", "err", "code", "outcome", "reason"), PLAIN.values(), ids=PLAIN)
def test_plain_text(out: str, err: str, code: int | None, outcome: str, reason: str) -> None:
    found = read(out, code, err)
    assert (found.outcome, found.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("agent", "out", "expected"),
    [
        ("claude", "Done.\n", "ok completed"),
        ("claude", "", "crash no_result"),
        ("command", "", "ok completed"),
        (None, "", "unknown no_output"),
        (None, "Done.\n", "ok completed"),
        (None, '{"type": "result", "half of\n', "unknown unreadable"),
        ("claude", '{"type":"assistant"\n{"type":"result"\n', "unknown unreadable"),
        (None, '{"level":"info","msg":"started"}\n', "ok completed"),
        ("codex", '{"msg": {\n', "ok completed"),
    ],
)
def test_a_good_exit_proves_only_so_much(agent: str | None, out: str, expected: str) -> None:
    found = read(out, 0, agent=agent)
    assert f"{found.outcome} {found.reason}" == expected


SENTENCES = {
    "Failed to authenticate. API Error: 401 OAuth token has expired. Please obtain a new token": "auth not_logged_in",
    "Failed to authenticate. API Error: 401 Invalid bearer token": "auth not_logged_in",
    "Failed to authenticate. API Error: 401 Invalid authentication credentials": "auth not_logged_in",
    "Failed to authenticate. API Error: 403 Request not allowed": "auth not_logged_in",
    "Failed to authenticate: OAuth token revoked. Please log in again.": "auth not_logged_in",
    "Your usage allocation has been disabled by your admin · ask for more": "auth billing",
    "Your group's usage limit is set to $0 · ask for more": "auth billing",
    "Your org is out of usage · add funds to continue": "auth billing",
    "Your org is out of usage · contact your admin": "auth billing",
    "Your seat type doesn't include usage credits": "auth billing",
    "This service is disabled for your org": "auth billing",
    "You've hit your team's shared budget · resets 9pm (UTC)": "limited usage_limit",
    "spend limit reached · resets 9pm (UTC) · ask for more": "limited usage_limit",
    "You're out of usage credits · resets 9pm (UTC)": "limited usage_limit",
    "Claude usage limit reached. Your limit will reset at 9pm (UTC).": "limited usage_limit",
    f"You've hit your limit · resets 9pm (UTC)\n{UPSELL}": "limited usage_limit",
    "You've hit your limit · resets 9pm (UTC)\n/upgrade or /usage-credits to go on.": "limited usage_limit",
}


@pytest.mark.parametrize(("text", "expected"), SENTENCES.items(), ids=SENTENCES)
def test_a_sentence_of_claude_in_text_or_in_a_message_that_cost_nothing(
    text: str, expected: str
) -> None:
    free = result(text, usage={"input_tokens": 0, "output_tokens": 0})
    said = jsonl(init(), synthetic(text), result("")).decode()
    outputs = ((f"{text}\n", 1), (text, 0), (jsonl(free).decode(), 0), (said, 0))
    for out, code in outputs:
        found = read(out, code, agent="claude")
        assert f"{found.outcome} {found.reason}" == expected
        assert (found.retry_at is not None) == (found.outcome == "limited")


@pytest.mark.parametrize(
    ("text", "agent", "expected"),
    [
        ("Execution error", "claude", "crash error_during_execution"),
        ("Half of it is\nExecution error", "claude", "crash error_during_execution"),
        ("Execution error", None, "crash error_during_execution"),
        ("Execution error", "command", "ok completed"),
        ("Execution errors are now shown.", "claude", "ok completed"),
        ("Execution error\nis what it said.", "claude", "ok completed"),
        ("```\nExecution error\n", "claude", "ok completed"),
        ("  Execution error", "claude", "ok completed"),
    ],
)
def test_claude_that_was_interrupted_says_so_and_exits_well(
    text: str, agent: str | None, expected: str
) -> None:
    found = read(text, 0, agent=agent)
    assert f"{found.outcome} {found.reason}" == expected


NAMED = {
    "429 Too Many Requests": "limited rate_limit",
    "HTTP 429": "limited rate_limit",
    "HTTP/1.1 429 Too Many Requests": "limited rate_limit",
    "Error code: 429 - {'error': {'message': 'slow down'}}": "limited rate_limit",
    "rate limit exceeded, retry after 60 seconds": "limited rate_limit",
    "agent: rate limit exceeded, retry after 60 seconds": "limited rate_limit",
    "[agent] Rate limit reached for gpt-4o. Please try again in 20s.": "limited rate_limit",
    "2026-11-16T02:00:00Z [error] Rate limited; retry after 30 s": "limited rate_limit",
    "Too many requests, please wait 5 minutes": "limited rate_limit",
    "Request failed with status code 429": "limited rate_limit",
    "You have exceeded your daily quota.": "limited rate_limit",
    "Usage limit exceeded. Try again in 2 hours.": "limited usage_limit",
    "Daily request limit reached": "limited usage_limit",
    "Reached max turns (30)": "turn_limit max_turns",
    "agent: Reached max turns (30)": "turn_limit max_turns",
    "Maximum number of turns reached.": "turn_limit max_turns",
    "Max iterations (50) reached": "turn_limit max_turns",
    "Turn limit reached": "turn_limit max_turns",
    "Stopped after 50 turns.": "turn_limit max_turns",
    "Step limit (100) reached": "turn_limit max_turns",
    "The agent reached its maximum of 50 steps.": "turn_limit max_turns",
    "Agent terminated: too many turns": "turn_limit max_turns",
    "Request was rejected due to rate limiting. Retry in 30s": "limited rate_limit",
    "You are sending requests too quickly. Please try again in 20s": "limited rate_limit",
    "Slow down! Too many requests.": "limited rate_limit",
    "Token limit for today reached. Resets at 8pm.": "limited usage_limit",
    '{"error": {"type": "rate_limit_error", "message": "This would exceed your rate limit"}}': "limited rate_limit",
    '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}': "transient overloaded",
    "stream disconnected before completion": "transient connection",
    "upstream connect error or disconnect/reset before headers": "transient connection",
    "Cost limit reached: $10.00": "budget budget_exhausted",
    "Request was throttled. Expected available in 30 seconds.": "limited rate_limit",
    "connect ECONNREFUSED 127.0.0.1:443": "transient connection",
    "getaddrinfo ENOTFOUND api.example.com": "transient connection",
    "insufficient credit balance": "auth billing",
    "Your credit balance is too low to access the API": "auth billing",
    "context_length_exceeded": "context prompt_too_long",
    "This model's maximum context length is 128000 tokens": "context prompt_too_long",
    "Budget exceeded: $5.00": "budget budget_exhausted",
    "503 Service Unavailable": "transient http_503",
    "The model is currently overloaded. Please try again later.": "transient overloaded",
    "Connection refused": "transient connection",
    "Request timed out.": "transient connection",
    "Authentication failed: token expired": "auth not_logged_in",
}


@pytest.mark.parametrize(("line", "expected"), NAMED.items(), ids=NAMED)
def test_a_line_that_begins_with_the_name_of_a_failure_counts_beside_a_bad_exit(
    line: str, expected: str
) -> None:
    for out, err in ((f"Working on it.\n{line}\n", ""), ("Working on it.\n", f"{line}\n")):
        found = read(out, 1, err)
        assert f"{found.outcome} {found.reason}" == expected
        assert read(out, 0, err).outcome == "ok"


def test_a_named_limit_tells_until_when() -> None:
    found = read("rate limit exceeded, retry after 60 seconds\n", 1)
    assert found.retry_at == NOW.astimezone(UTC) + timedelta(seconds=60)


UNNAMED = (
    "Rate limiting is now part of the client, and its tests fail.",
    "Rate limit exceeded errors are now translated.",
    "The 429 Too Many Requests test fails.",
    "429 is now handled by the client.",
    "I reached the maximum depth of the recursion.",
    "Max turns is a new option of the command.",
    "The connection pool is at capacity in one test.",
    "Too many turns of the loop are logged.",
    "Stream disconnected events are now shown.",
    "The step limit (100) is now a setting.",
    "> rate limit exceeded",
    "    429 Too Many Requests",
)


@pytest.mark.parametrize("line", UNNAMED)
def test_prose_about_failures_beside_a_bad_exit_is_a_crash(line: str) -> None:
    found = read(f"{line}\n", 1)
    assert (found.outcome, found.reason) == ("crash", "exit_1")


HARMLESS = {
    "a sentence about authentication": "Failed to authenticate: OAuth token handling is new.\n",
    "a sentence about a budget": "You've hit your budget screen is now translated.\n",
    "a command at the end": f"The page now says\n{UPSELL}\n",
    "prose about limits": "The client now says: you've hit your limit, and waits.\n",
    "prose that begins with an error": "Error 401 is now handled by the retry policy.\n",
    "a sentence that goes on": "You've hit your limit messages are now translated.\n",
    "a limit in the middle": f"{LIMIT}\nThat message is now shown in red.\n",
    "a limit as a list item": f"Messages:\n- {LIMIT}\n",
    "a limit as a numbered item": f"Messages:\n1. {LIMIT}\n",
    "a quotation": f"It prints\n> {LIMIT}\n",
    "in quotes": f'It prints\n"{LIMIT}"\n',
    "in backticks": f"It prints\n`{LIMIT}`\n",
    "an indented block": f"It prints\n\n    {LIMIT}\n",
    "a fenced block at the end": f"It prints\n```\n{LIMIT}\n```\n",
    "an unclosed fence": f"It prints\n```text\n{LIMIT}\n",
    "a table": f"| message |\n|---|\n| {LIMIT} |\n",
    "a diff": f"+{LIMIT}\n",
    "a commit": "commit 1234567 Not logged in · Please run /login\n",
    "a heading": "# Prompt is too long\n",
    "a status in prose": "Returns 429 Too Many Requests when the bucket is empty.\n",
    "an error prefix and a good exit": "Error: 429 Too Many Requests\n",
    "an API error and a good exit": "API Error: 529 overloaded\n",
    "a test's name": "test_unauthorized_401 PASSED\n",
    "a log of the program under test": "ERROR: connection refused\nAll 3 tests pass.\n",
    "talk of permissions": "The file's permissions were wrong; please approve is gone.\n",
    "talk of billing": "The billing page works again.\n",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
@pytest.mark.parametrize("agent", ["command", "claude", None])
def test_what_only_talks_of_trouble_is_none(text: str, agent: str | None) -> None:
    assert read(text, 0, agent=agent).outcome == "ok"


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_no_message_and_no_tool_result_is_an_error_of_the_session(text: str) -> None:
    block = {"type": "tool_result", "content": text, "is_error": True}
    user = {"type": "user", "message": {"content": [block]}, "session_id": "s1"}
    claude = jsonl(init(), user, says(text), result(text))
    codex = jsonl(
        {"type": "thread.started", "thread_id": "t1"},
        {
            "type": "item.completed",
            "item": {
                "id": "i",
                "type": "command_execution",
                "aggregated_output": text,
                "exit_code": 1,
            },
        },
        {"type": "item.completed", "item": {"id": "j", "type": "agent_message", "text": text}},
        {"type": "turn.completed"},
    )
    gemini = jsonl(
        {"type": "init", "session_id": "s1", "model": "m"},
        {"type": "tool_result", "status": "error", "output": text, "error": {"message": text}},
        {"type": "message", "role": "assistant", "content": text},
        {"type": "result", "status": "success"},
    )
    opencode = jsonl(
        {
            "type": "tool_use",
            "sessionID": "s1",
            "part": {"tool": "bash", "state": {"status": "error", "error": text}},
        },
        {"type": "text", "sessionID": "s1", "part": {"text": text}},
        {"type": "step_finish", "sessionID": "s1", "part": {"reason": "stop"}},
    )
    copilot = jsonl(
        {
            "type": "tool.execution_complete",
            "data": {"success": False, "error": {"message": text, "code": "failure"}},
        },
        {"type": "assistant.message", "data": {"content": text}},
        {"type": "result", "sessionId": "s1", "exitCode": 0},
    )
    for data in (claude, codex, gemini, opencode, copilot):
        found = classify(data, b"", None, 0, NOW)
        assert (found.outcome, found.retry_at) == ("ok", None)


REFUSED = jsonl(result("You've hit your limit", is_error=True, api_error_status=429)).decode()
ALL = jsonl(init()).decode() + REFUSED
QUOTATIONS = {
    "in a fence": f"Example:\n\n```json\n{REFUSED}```\n\nAll tests pass; committed.\n",
    "in a fence, at the end": f"Example:\n\n```json\n{ALL}```\n",
    "in a fence that was never closed": f"Example:\n\n```json\n{ALL}",
    "a whole stream in a fence": f"This is printed.\n~~~\n{ALL}~~~\nDone.\n",
    "half of one in a fence": 'It begins so.\n```\n{"type": "system", ...\n```\n',
    "indented": f"Example:\n    {REFUSED}Done.\n",
    "indented, with nothing before it": f"  {REFUSED}",
    "behind a tab": f"Example\n\t{REFUSED}",
    "as a list item": f"Seen:\n- {REFUSED}Done.\n",
    "between sentences": f"The last line of the log is this.\n{REFUSED}It is now translated.\n",
    "after a colon": f"The last line of the log:\n{REFUSED}It is now translated.\n",
    "over many lines": f"The log:\n{json.dumps(json.loads(REFUSED), indent=2)}\nDone.\n",
    "a list of them over many lines": f"Log\n{json.dumps([json.loads(REFUSED)], indent=2)}\nDone.\n",
}


@pytest.mark.parametrize("text", QUOTATIONS.values(), ids=QUOTATIONS)
@pytest.mark.parametrize("agent", ["claude", "codex", None])
def test_an_event_that_is_quoted_is_none(text: str, agent: str | None) -> None:
    found = read(text, 0, agent=agent)
    assert (found.outcome, found.session, found.retry_at) == ("ok", None, None)


NOISE = {
    "a package manager": "npm warn deprecated old@1.0.0: use new\nnpm notice\n",
    "a shell": "bash: warning: setlocale: LC_ALL: cannot change locale (C.UTF-8)\n\n",
    "a wrapper": "=== run 3 ===\nYOLO mode is enabled. All tool calls will be approved.\n",
    "a log in JSON": '{"level":"info","msg":"started"}\n{"type":"log"}\n',
    "a closed fence": "```\nbanner\n```\n",
    "a byte-order mark": "\ufeff",
    "blank lines": "\n  \n\n",
}
STREAMS = [name for name in RECORDED if RECORDED[name][1] == "ok"]


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_read_after_noise(noise: str, name: str) -> None:
    one = make_reader(None)
    one.feed(noise.encode() + stream(name))
    assert one.format == RECORDED[name][0]
    assert one.session == reader_of(name).session


def reader_of(name: str) -> OutputReader:
    one = make_reader(None)
    one.feed(stream(name))
    return one


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
@pytest.mark.parametrize("agent", ["claude", None])
def test_a_document_is_read_after_noise_if_nothing_follows(noise: str, agent: str | None) -> None:
    assert read(noise + REFUSED, 0, agent=agent).outcome == "limited"


@pytest.mark.parametrize("agent", ["claude", None])
def test_a_document_over_many_lines_is_read_after_noise(agent: str | None) -> None:
    pretty = json.dumps(json.loads(REFUSED), indent=2)
    for document in (pretty, f"[{REFUSED.strip()}]\n\n", f"[\n{pretty}\n]"):
        assert read(f"npm notice\n{document}", 0, agent=agent).outcome == "limited"


@pytest.mark.parametrize("text", [ALL, REFUSED], ids=["a stream", "a document"])
def test_what_a_colon_announces_may_be_quoted_and_proves_nothing(text: str) -> None:
    found = read(f"Output:\n{text}", 0, agent="claude")
    assert (found.outcome, found.reason, found.session) == ("unknown", "unreadable", None)
    assert read(f"Output:\n{text}", 1, agent="claude").outcome == "crash"


def test_json_in_a_tool_result_is_no_event() -> None:
    inner = jsonl(result("x", is_error=True, api_error_status=429)).decode()
    block = {"type": "tool_result", "content": inner}
    user = {"type": "user", "message": {"content": [block]}, "session_id": "s1"}
    nested = {"type": "user", "tool_use_result": result("x", is_error=True), "session_id": "s1"}
    found = classify(jsonl(init(), user, nested, result("Done.")), b"", "claude", 0, NOW)
    assert found.outcome == "ok"
    cut_off = classify(jsonl(init(), says("x"), user, nested), b"", "claude", 0, NOW)
    assert (cut_off.outcome, cut_off.reason) == ("crash", "no_result")
