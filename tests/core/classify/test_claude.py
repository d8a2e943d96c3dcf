"""Claude Code and Qwen Code: what their events mean, by the outcome that they end in."""

import json
from typing import Any

import pytest

from tests.streams import (
    SESSION,
    denial,
    failed,
    init,
    jsonl,
    read,
    refused,
    result,
    row,
    says,
    synthetic,
    system,
    uses,
)


def task(subtype: str, status: str | None = None, number: int = 1, **fields: Any) -> dict[str, Any]:
    known = {"task_id": f"task{number}", "description": f"job {number}"}
    return system(subtype, **known, **({"status": status} if status else {}), **fields)


def listing(*numbers: int, kind: str = "local_bash") -> dict[str, Any]:
    tasks = [{"task_id": f"task{n}", "description": f"job {n}", "task_type": kind} for n in numbers]
    return system("background_tasks_changed", tasks=tasks)


def updated(status: str, number: int = 1) -> dict[str, Any]:
    return system("task_updated", task_id=f"task{number}", patch={"status": status})


started = task("task_started", is_backgrounded=True)
retry = system("api_retry", attempt=1, retry_delay_ms=500, error_status=529, error="overloaded")

CLAUDE = {
    "a result that says so": row("ok completed", 0, init(), says("x"), result()),
    "the exit code is not known": row("ok completed", None, init(), result()),
    "only the result, as with json": row("ok completed", 0, result()),
    "an array of all events": row(
        "ok completed", 0, json.dumps([init(), says("x"), result()]).encode()
    ),
    "an array over many lines": row(
        "ok completed", 0, json.dumps([init(), says("x"), result()], indent=2).encode()
    ),
    "a hook ended it": row("ok completed", 0, result("", terminal_reason="hook_stopped")),
    "noise around the events": row(
        "ok completed", 0, b"npm warn old\n\n" + jsonl(init(), result()) + b"bye\n"
    ),
    "a refused overage that is not used": row(
        "ok completed", 0, init(), refused(status="allowed", overageStatus="rejected"), result()
    ),
    "an overage that is used": row(
        "ok completed", 0, init(), refused(isUsingOverage=True), result()
    ),
    "terminated while it used overage": row(
        "crash sigterm", -15, init(), says("x"), refused(isUsingOverage=True)
    ),
    "terminated while overage was in use": row(
        "crash sigterm", -15, init(), says("x"), refused(overageInUse=True)
    ),
    "cut off when overage was refused too": row(
        "limited usage_limit",
        1,
        init(),
        says("x"),
        refused(isUsingOverage=True, overageStatus="rejected"),
    ),
    "terminated when overage in use was refused too": row(
        "limited usage_limit",
        -15,
        init(),
        says("x"),
        refused(overageInUse=True, overageStatus="rejected", overageResetsAt=1794900000),
    ),
    "a limit that was lifted": row(
        "ok completed", 0, init(), refused(), refused(status="allowed"), says("x"), result()
    ),
    "a refusal after which it went on": row(
        "ok completed", 0, init(), refused(), says("x"), result()
    ),
    "an error of a subagent": row(
        "ok completed",
        0,
        init(),
        synthetic("x", error="rate_limit", parent_tool_use_id="toolu_1"),
        result(),
    ),
    "a result of a side chain": row(
        "ok completed", 0, init(), result(), failed("x", 429, isSidechain=True)
    ),
    "no response was requested": row(
        "ok completed", 0, init(), synthetic("No response requested."), result("")
    ),
    "retries that worked": row("ok completed", 0, init(), retry, says("x"), result()),
    "a limit": row(
        "limited usage_limit", 1, init(), failed("You've hit your limit · resets 7pm (UTC)", 429)
    ),
    "a limit without a text": row(
        "limited usage_limit", 1, init(), failed("", 429, api_error="usage_limit_reached")
    ),
    "a limit with exit code 0": row(
        "limited usage_limit",
        0,
        init(),
        failed("You've hit your session limit · resets 7pm (UTC)", 429),
    ),
    "a limit in a made-up message, then a success": row(
        "limited usage_limit",
        0,
        init(),
        synthetic("You've hit your limit · resets 7pm (UTC)"),
        result("x"),
    ),
    "a limit as a success that cost nothing": row(
        "limited usage_limit",
        0,
        result(
            "You've hit your limit · resets 7pm (UTC)",
            usage={"input_tokens": 0, "output_tokens": 0},
        ),
    ),
    "requests per minute": row(
        "limited rate_limit", 1, failed("API Error: Request rejected (429) · try later", 429)
    ),
    "killed while it waited for a limit": row(
        "limited usage_limit", -15, init(), says("x"), refused()
    ),
    "overloaded": row(
        "transient overloaded", 1, failed('API Error: 529 {"type":"overloaded_error"}', 529)
    ),
    "a limit of the server": row(
        "transient overloaded",
        1,
        failed("Server is temporarily limiting requests (not your usage limit)", 429),
    ),
    "bad gateway": row("transient http_502", 1, failed("API Error: 502", 502)),
    "unavailable": row("transient http_503", 1, failed("API Error: 503", 503)),
    "gateway timeout": row("transient http_504", 1, failed("API Error: 504", 504)),
    "no connection": row("transient connection", 1, failed("API Error: Connection error.")),
    "killed while it tried again": row("transient overloaded", 143, init(), retry),
    "a server error, which may be for ever": row(
        "crash server_error", 1, failed("API Error: 500 Internal server error", 500)
    ),
    "unauthorised": row("auth not_logged_in", 1, failed("API Error: 401", 401)),
    "forbidden": row("auth not_logged_in", 1, failed("API Error: 403", 403)),
    "a proxy's budget behind a 403": row(
        "budget budget_exhausted", 1, failed("API Error: 403 Budget has been exceeded", 403)
    ),
    "not logged in": row("auth not_logged_in", 1, failed("Not logged in · Please run /login")),
    "an invalid key": row(
        "auth not_logged_in", 1, failed("Invalid API key · Fix external API key")
    ),
    "an expired token": row(
        "auth not_logged_in",
        1,
        synthetic("x", error="authentication_failed"),
        failed("OAuth token has expired."),
    ),
    "no credit": row("auth billing", 1, failed("Credit balance is too low", 400)),
    "too long a prompt": row(
        "context prompt_too_long",
        1,
        failed("Prompt is too long", None, terminal_reason="prompt_too_long"),
    ),
    "too long a prompt, by its text": row(
        "context prompt_too_long",
        1,
        failed("prompt is too long: 210000 tokens > 200000 maximum", 400),
    ),
    "turns used up": row(
        "turn_limit max_turns",
        1,
        result(
            "",
            subtype="error_max_turns",
            is_error=True,
            errors=["Reached maximum number of turns (1)"],
        ),
    ),
    "budget used up": row(
        "budget budget_exhausted", 1, result("", subtype="error_max_budget_usd", is_error=True)
    ),
    "every tool denied": row(
        "denied permissions",
        0,
        init(),
        uses("Bash"),
        says("I could not run the tests."),
        result("I could not run the tests.", permission_denials=[denial("Bash")]),
    ),
    "a tool denied, and a plea for permission": row(
        "denied permissions",
        0,
        init(),
        uses("Read"),
        uses("Write", 2),
        result("Please grant permission to write.", permission_denials=[denial("Write", 2)]),
    ),
    "a tool denied, and a failure without a name": row(
        "denied permissions",
        1,
        result(
            "", subtype="error_during_execution", is_error=True, permission_denials=[denial("Bash")]
        ),
    ),
    "a tool denied, and a limit": row(
        "limited usage_limit",
        1,
        failed("You've hit your limit", 429, permission_denials=[denial("Bash")]),
    ),
    "a tool denied, and finished all the same": row(
        "ok completed",
        0,
        init(),
        uses("Bash"),
        uses("Edit", 2),
        result("Fixed the typo.", permission_denials=[denial("Bash")]),
    ),
    "a tool denied, and talk of other permissions": row(
        "ok completed",
        0,
        uses("Bash"),
        uses("Edit", 2),
        result(
            "The file's permissions are right now. CI approves it.",
            permission_denials=[denial("Bash")],
        ),
    ),
    "a question at the end": row(
        "question question", 0, init(), result("There are two schemas. Which one should I use?")
    ),
    "a question by the tool for it": row(
        "question question",
        0,
        init(),
        uses("Bash"),
        uses("AskUserQuestion", 2),
        result("I wait.", permission_denials=[denial("AskUserQuestion", 2)]),
    ),
    "killed while it waited for an answer": row(
        "question question", 143, init(), uses("AskUserQuestion")
    ),
    "a question that was followed by work": row(
        "ok completed", 0, init(), uses("AskUserQuestion"), uses("Edit", 2), result()
    ),
    "a courtesy at the end": row(
        "ok completed", 0, init(), result("All tests pass. Would you like me to do anything else?")
    ),
    "no result, exit code 0": row("crash no_result", 0, init(), says("x")),
    "no output at all": row("crash no_result", 0, b""),
    "terminated after it went on past a refusal": row(
        "crash sigterm", 143, init(), refused(), says("x")
    ),
    "a message that is the sentence itself": row(
        "ok completed", 0, init(), result("You've hit your limit · resets 7pm (UTC)")
    ),
    "a made-up message that says nothing": row(
        "ok completed", 0, init(), synthetic("x", error="invalid_request"), result()
    ),
    "terminated": row("crash sigterm", 143, init(), says("x")),
    "terminated, by the signal": row("crash sigterm", -15, init(), says("x")),
    "killed": row("crash sigkill", -9, init(), says("x")),
    "killed within a shell": row("crash sigkill", 137, init(), says("x")),
    "a rare signal": row("crash signal_31", -31, init()),
    "stopped by timeout": row("crash timed_out", 124, init(), says("x")),
    "a success, and yet exit code 1": row("crash exit_1", 1, init(), result()),
    "more words after the result": row("crash no_result", 0, init(), result(), says("I go on.")),
    "a failure without a name": row(
        "crash error_during_execution",
        1,
        result("", subtype="error_during_execution", is_error=True),
    ),
    "the last of several results decides": row(
        "ok completed", 0, init(), failed("API Error: 529", 529), says("x"), result()
    ),
    "the last of several results decides, badly": row(
        "transient overloaded", 1, init(), result(), says("x"), failed("API Error: 529", 529)
    ),
    "background work finished": row(
        "ok completed",
        0,
        init(),
        listing(1),
        started,
        result(),
        updated("completed"),
        task("task_notification", "completed"),
        listing(),
        says("x"),
        result(),
    ),
    "background work failed by itself": row(
        "ok completed", 0, init(), started, task("task_notification", "failed"), says("x"), result()
    ),
    "background work gone from the list": row(
        "ok completed", 0, init(), listing(1), listing(), result()
    ),
    "background work that the agent stopped": row(
        "ok completed", 0, init(), started, updated("killed"), says("Stopped the server."), result()
    ),
    "a subagent in the foreground": row(
        "ok completed", 0, init(), task("task_started", is_backgrounded=False), result()
    ),
    "an idle teammate": row(
        "ok completed", 0, init(), listing(1, kind="in_process_teammate"), result()
    ),
    "background work killed after the result": row(
        "interrupted background_work",
        0,
        init(),
        started,
        result(),
        updated("killed"),
        task("task_notification", "stopped"),
    ),
    "background work still open": row("interrupted background_work", 0, init(), started, result()),
    "background work in the last list": row(
        "interrupted background_work", 0, init(), listing(1), result()
    ),
    "background work open when it was terminated": row(
        "interrupted background_work", 143, init(), started, says("x")
    ),
    "moved to the background, then open": row(
        "interrupted background_work",
        0,
        init(),
        task("task_started", is_backgrounded=False),
        system("task_updated", task_id="task1", patch={"is_backgrounded": True}),
        result(),
    ),
    "a limit while background work was open": row(
        "limited usage_limit", 1, init(), started, failed("You've hit your limit", 429)
    ),
    "no session of that id": row("crash exit_1", 1, b""),
}


@pytest.mark.parametrize(("expected", "code", "out"), CLAUDE.values(), ids=CLAUDE)
def test_claude(expected: str, code: int | None, out: bytes) -> None:
    found = read("claude", out, code)
    assert f"{found.outcome} {found.reason}" == expected
    assert (found.fingerprint is None) == (found.outcome == "ok")
    assert found.exit_code == code


QWEN = {
    "an array": row("ok completed", 0, json.dumps([init(), says("x"), result()]).encode()),
    "an error in its own field": row(
        "auth not_logged_in",
        1,
        result(
            "",
            subtype="error_during_execution",
            is_error=True,
            error={"message": "[API Error: 401 Incorrect API key]"},
        ),
    ),
    "turns used up": row("turn_limit max_turns", 53, init(), says("x")),
    "time used up": row("budget max_wall_time", 55, init(), says("x")),
}


@pytest.mark.parametrize(("expected", "code", "out"), QWEN.values(), ids=QWEN)
def test_qwen(expected: str, code: int | None, out: bytes) -> None:
    found = read("qwen", out, code)
    assert f"{found.outcome} {found.reason}" == expected


RESETS = {
    "the field before the text": (
        jsonl(init(), refused(), failed("resets 9pm (UTC)", 429)),
        "2026-11-16T03:33:20Z",
    ),
    "the newest refusal": (
        jsonl(init(), refused(1794800000), refused(1794900000), failed("x", 429)),
        "2026-11-17T07:20:00Z",
    ),
    "of several windows the last to open": (
        jsonl(
            init(),
            refused(
                1794800000,
                unifiedWindows={
                    "five_hour": {"status": "rejected", "resetsAt": 1794800000},
                    "seven_day": {"status": "rejected", "resetsAt": 1795000000},
                },
            ),
            failed("x", 429),
        ),
        "2026-11-18T11:06:40Z",
    ),
    "a window that is open does not count": (
        jsonl(
            init(),
            refused(
                1794800000,
                unifiedWindows={"seven_day": {"status": "allowed", "resetsAt": 1795000000}},
            ),
            failed("x", 429),
        ),
        "2026-11-16T03:33:20Z",
    ),
    "milliseconds": (
        jsonl(init(), refused(1794800000000), failed("x", 429)),
        "2026-11-16T03:33:20Z",
    ),
    "the field of the message itself": (
        jsonl(
            synthetic(
                "x",
                error="rate_limit",
                api_error_params={"rate_limit_info": {"resetsAt": 1794800000}},
            ),
            result(),
        ),
        "2026-11-16T03:33:20Z",
    ),
    "the refusal before a made-up message": (
        jsonl(init(), refused(), synthetic("x", error="rate_limit"), result()),
        "2026-11-16T03:33:20Z",
    ),
    "an absurd field leaves the text": (
        jsonl(init(), refused(9), failed("You've hit your limit · resets 9pm (UTC)", 429)),
        "2026-11-16T21:00:00Z",
    ),
    "a window that was open says nothing": (
        jsonl(init(), refused(status="allowed"), failed("You've hit your limit", 429)),
        None,
    ),
    "no time at all": (jsonl(failed("You've hit your limit", 429)), None),
    "an outage has no reset": (jsonl(init(), refused(), failed("API Error: 529", 529)), None),
}


@pytest.mark.parametrize(("out", "expected"), RESETS.values(), ids=RESETS)
def test_when_to_try_again(out: bytes, expected: str | None) -> None:
    document = json.loads(read("claude", out, 1).model_dump_json())
    assert document["retry_at"] == expected


def test_what_was_killed_is_named_once_and_in_bounds() -> None:
    events = [task("task_started", number=number, is_backgrounded=True) for number in range(2000)]
    found = read("claude", jsonl(init(), started, *events, result()), 0)
    assert len(found.killed) == 20
    assert found.killed[:2] == ("job 1", "job 0")
    long = system("task_started", task_id="t", description="x\x1b[31m" * 1000)
    (name,) = read("claude", jsonl(init(), long, result()), 0).killed
    assert len(name) == 160
    assert "\x1b" not in name


def test_denied_tools_are_listed_though_all_is_well() -> None:
    denials = [
        denial("Bash"),
        denial("Bash", 2),
        denial("WebFetch", 3),
        denial("AskUserQuestion", 4),
    ]
    data = jsonl(init(), uses("Edit", 9), result("Done.", permission_denials=denials))
    found = read("claude", data, 0)
    assert (found.outcome, found.denied_tools) == ("ok", ("Bash", "WebFetch"))


def test_cost_and_claim() -> None:
    found = read("claude", jsonl(init(), result("It\nis   done.", total_cost_usd=0.5)), 0)
    assert (found.cost_usd, found.claim) == (0.5, "It is done.")
    for odd in (-1, True, "1", 10**400, None):
        assert read("claude", jsonl(result(total_cost_usd=odd)), 0).cost_usd is None


@pytest.mark.parametrize("odd", ["--dangerous", "", "a b", "../x", "x" * 129, 7, None, {"a": 1}])
def test_an_id_that_could_be_an_option_or_a_path_is_none(odd: Any) -> None:
    assert read("claude", jsonl(init(), result(session_id=odd)), 0).session == SESSION
    assert read("claude", jsonl({**init(), "session_id": odd}), 0).session is None


def test_standard_error_tells_why_there_is_no_result() -> None:
    error = b"Error: 401 Unauthorized\n"
    assert read("claude", jsonl(init()), 1, error).outcome == "auth"
    assert read("claude", jsonl(init(), result()), 1, error).outcome == "auth"
    assert read("claude", jsonl(init(), result()), 0, error).outcome == "ok"
    assert read("claude", jsonl(init()), 0, error).reason == "no_result"
