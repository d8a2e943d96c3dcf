"""What an iteration used: each agent CLI's recorded stream, totals of resumed sessions, and the user's prices."""

import json
from typing import Any

import pytest

from guard.core.cost.usage import SessionUsage, TokenPrice, Usage, measure_usage, total_usage
from tests.streams import init, jsonl, read, result, says, stream

OPUS = "claude-opus-5-5"


def told(agent: str, data: bytes) -> SessionUsage:
    usage = read(agent, data, 0).usage
    assert usage is not None
    return usage


def figures(usage: Usage) -> dict[str, Any]:
    names = ("cost_usd", "cost_basis", "input_tokens", "cached_tokens", "output_tokens")
    return {name: getattr(usage, name) for name in (*names, "model", "turns")}


def row(*values: Any) -> dict[str, Any]:
    names = ("cost_usd", "cost_basis", "input_tokens", "cached_tokens", "output_tokens")
    return dict(zip((*names, "model", "turns"), values, strict=True))


RECORDED = {
    "claude-ok": row(0.00042, "billed", 30, 0, 15, OPUS, 3),
    "claude-background": row(0.00042, "billed", 30, 0, 15, OPUS, 3),
    "claude-subagent": row(0.00056, "billed", 40, 0, 20, OPUS, 2),
    "claude-usage-limit": row(0.0, "estimated", 0, 0, 0, "claude-sonnet-5-5", 1),
    "codex-ok": row(None, "unknown", 20, 0, 10, None, 1),
    "codex-helper": row(None, "unknown", 40, 0, 20, None, 1),
    "gemini-ok": row(None, "unknown", 20, 0, 10, "some-model", None),
    "opencode-ok": row(0.0, "billed", 20, 0, 10, None, 2),
    "qwen-ok": row(None, "unknown", 40, 0, 20, "some-model", 2),
    "copilot-ok": row(None, "unknown", None, None, None, None, 4),
}


@pytest.mark.parametrize("name", RECORDED)
def test_the_figures_of_a_recorded_stream_are_those_in_the_stream(name: str) -> None:
    agent = name.partition("-")[0]
    assert figures(measure_usage(told(agent, stream(name)))) == RECORDED[name]


def test_output_without_figures_has_an_unknown_cost() -> None:
    assert read("command", b"done\n", 0).usage is None
    assert figures(measure_usage(None)) == row(None, "unknown", None, None, None, None, None)


def message(number: int, *, parent: str | None = None, **usage: int) -> dict[str, Any]:
    event = says("x", parent_tool_use_id=parent)
    shown = {"input_tokens": 10, "output_tokens": 1, **usage}
    return {**event, "message": {**event["message"], "id": f"msg_{number}", "usage": shown}}


def opus(cost: float, tokens: int = 10, **more: int) -> dict[str, Any]:
    return {OPUS: {"inputTokens": tokens, "outputTokens": 1, "costUSD": cost, **more}}


def codex(tokens: int, cached: int = 0, output: int = 10) -> bytes:
    usage = {
        "input_tokens": tokens,
        "cached_input_tokens": cached,
        "output_tokens": output,
    }
    return jsonl(
        {"type": "thread.started", "thread_id": "t1"},
        {"type": "turn.started"},
        {"type": "turn.completed", "usage": usage},
    )


def test_a_resumed_stream_of_claude_costs_what_this_process_added() -> None:
    data = jsonl(
        init(apiKeySource="ANTHROPIC_API_KEY"),
        result(
            total_cost_usd=5.5,
            modelUsage=opus(5.5, 5000),
            model_usage_since_last_result=opus(0.5),
            num_turns=2,
        ),
        result(
            total_cost_usd=6.5,
            modelUsage=opus(6.5, 6000),
            model_usage_since_last_result=opus(1.0, 20),
            num_turns=1,
        ),
    )
    usage = measure_usage(told("claude", data), had_history=True)
    assert (usage.cost_usd, usage.input_tokens, usage.turns) == (1.5, 30, 3)


def test_a_single_document_of_a_resumed_session_costs_the_difference_to_its_last_total() -> None:
    before = told("claude", jsonl(result(modelUsage=opus(5.0, 5000))))
    after = told("claude", jsonl(result(modelUsage=opus(5.5, 5100))))
    usage = measure_usage(after, before=before, had_history=True)
    assert (usage.cost_usd, usage.input_tokens) == (0.5, 100)


def test_the_totals_of_a_thread_become_the_difference() -> None:
    before, after = told("codex", codex(100, 40, 10)), told("codex", codex(350, 140, 30))
    usage = measure_usage(after, before=before, had_history=True)
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (150, 100, 20)


def test_totals_of_a_session_that_guard_has_not_seen_before_say_nothing_of_the_iteration() -> None:
    usage = measure_usage(told("codex", codex(350)), had_history=True)
    assert (usage.input_tokens, usage.cost_basis, usage.turns) == (None, "unknown", 1)


def test_totals_that_were_set_back_count_from_zero() -> None:
    before, after = told("codex", codex(350)), told("codex", codex(20))
    assert measure_usage(after, before=before).input_tokens == 20


def test_an_agent_that_was_ended_has_used_at_least_what_its_messages_tell() -> None:
    data = jsonl(
        init(),
        message(1, input_tokens=10),
        message(1, input_tokens=10, output_tokens=4),
        message(2, parent="toolu_1", input_tokens=100),
        message(1, input_tokens=10, output_tokens=5),
        message(3, cache_read_input_tokens=7, cache_creation_input_tokens=2),
    )
    usage = measure_usage(told("claude", data))
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (122, 7, 7)
    assert usage.partial
    assert (usage.cost_usd, usage.cost_basis) == (None, "unknown")


def test_what_was_printed_after_a_result_is_added_to_it() -> None:
    data = jsonl(init(), message(1), result(model_usage_since_last_result=opus(1.0)), message(2))
    usage = measure_usage(told("claude", data))
    assert (usage.cost_usd, usage.input_tokens, usage.partial) == (1.0, 20, True)


def test_the_calls_of_copilot_are_added_up_where_it_prints_them() -> None:
    call = {"model": "gpt-5", "inputTokens": 100, "outputTokens": 5, "cacheReadTokens": 60}
    data = jsonl(
        {"type": "session.start", "data": {"sessionId": "s1"}},
        {"type": "assistant.usage", "data": call},
        {"type": "assistant.usage", "data": {**call, "cost": 3}},
        {"type": "result", "sessionId": "s1", "exitCode": 0, "usage": {}},
    )
    usage = measure_usage(told("copilot", data))
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (80, 120, 10)
    assert (usage.model, usage.cost_basis) == ("gpt-5", "unknown")


def test_the_document_of_gemini_has_the_figures_of_each_model() -> None:
    tokens = {"prompt": 100, "candidates": 7, "cached": 30, "total": 107}
    models = {"gemini-2.5-pro": {"api": {"totalRequests": 2}, "tokens": tokens}}
    document = {"session_id": "s1", "response": "x", "stats": {"models": models}}
    usage = measure_usage(told("gemini", json.dumps(document).encode()))
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (70, 30, 7)
    assert (usage.model, usage.turns) == ("gemini-2.5-pro", 2)


@pytest.mark.parametrize(
    ("agent", "stated", "name"),
    [("codex", codex(1_000_000, 400_000, 100_000), "codex"), ("qwen", None, "some-model")],
    ids=["by the agent, where it names no model", "by the model"],
)
def test_the_users_prices_make_an_estimate(agent: str, stated: bytes | None, name: str) -> None:
    data = stated or stream("qwen-ok")
    price = {name: TokenPrice(input=2.0, cached=0.5, output=10.0)}
    usage = measure_usage(told(agent, data), prices=price, agent=agent)
    expected = 2.4 if agent == "codex" else (40 * 2 + 20 * 10) / 1e6
    assert usage.cost_usd == pytest.approx(expected)
    assert usage.cost_basis == "estimated"


def test_a_price_never_replaces_what_the_agent_names() -> None:
    price = {OPUS: TokenPrice(1000.0, 1000.0, 1000.0)}
    usage = measure_usage(told("claude", stream("claude-ok")), prices=price)
    assert (usage.cost_usd, usage.cost_basis) == (0.00042, "billed")


def test_a_sum_names_the_model_that_cost_most_and_what_is_missing() -> None:
    two = {**opus(0.1, 1000), "claude-haiku": {"inputTokens": 5, "costUSD": 0.4}}
    one = measure_usage(told("claude", jsonl(result(model_usage_since_last_result=two))))
    assert (one.model, one.models) == ("claude-haiku", (OPUS, "claude-haiku"))
    whole = total_usage([one, one])
    assert (whole.cost_usd, whole.input_tokens, whole.partial) == (1.0, 2010, False)
    assert total_usage([one, Usage()]).partial
    assert total_usage([]) == Usage()


HOSTILE = {
    "negative and huge numbers": {"inputTokens": -5, "outputTokens": 1e300, "costUSD": -1},
    "words": {"inputTokens": "many", "costUSD": "free"},
    "nothing": None,
}


@pytest.mark.parametrize("given", HOSTILE.values(), ids=HOSTILE)
def test_wrong_figures_count_as_none(given: Any) -> None:
    usage = measure_usage(
        told("claude", jsonl(result(model_usage_since_last_result={"m\x1b[31m" * 500: given})))
    )
    assert (usage.cost_usd, usage.input_tokens) == (None, 0)
