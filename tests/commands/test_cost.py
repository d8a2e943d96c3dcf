"""What an iteration used: in the reports and the log, from real streams, over resumed sessions, with the user's prices."""

from pathlib import Path
from typing import Any

import pytest

from tests.streams import init, jsonl, result, stream
from tests.support import commit, run, write
from tests.support.sessions import QUICK

PRICES = "[cost.prices.codex]\ninput = 2\ncached = 0.5\noutput = 10\n"


@pytest.fixture
def begun(repository: Path) -> Path:
    commit(repository, "first.txt")
    return repository


def printing(folder: Path, *streams: bytes) -> Path:
    """A program that prints one stream after the other, one at each start, and commits."""
    for number, data in enumerate(streams):
        write(folder / f"{number}.jsonl", data)
    count = folder / "count"
    script = (
        f"n=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) > {count}\n"
        f"cat {folder}/$n.jsonl\n"
        "echo $n $0 > work.txt; git add work.txt; git commit -q -m 'feat: work'\n"
    )
    path = write(folder / "agent", f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    return path


def iterate(*words: str | Path) -> Any:
    found = run("run", "--format", "json", "--no-probe", *QUICK, "--", *words)
    assert found.code == 0, found.err
    return found.json["usage"]


def checks() -> list[Any]:
    lines = run("log", "--format", "json").json["events"]
    return [line for line in lines if line["type"] == "check_made"]


def codex(tokens: int) -> bytes:
    usage = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": tokens // 10}
    return jsonl(
        {"type": "thread.started", "thread_id": "t1"},
        {"type": "turn.started"},
        {"type": "turn.completed", "usage": usage},
    )


def test_the_report_and_the_log_have_what_the_stream_tells(begun: Path, tmp_path: Path) -> None:
    agent = printing(tmp_path / "a", stream("claude-subagent"))
    usage = iterate(agent)
    assert (usage["cost_usd"], usage["cost_basis"]) == (0.00056, "billed")
    assert (usage["input_tokens"], usage["output_tokens"], usage["turns"]) == (40, 20, 2)
    assert usage["models"] == ["claude-opus-5-5"]
    assert usage["seconds"] > 0
    assert checks()[-1]["usage"] == usage


def test_plain_text_has_an_unknown_cost(begun: Path, tmp_path: Path) -> None:
    usage = iterate(printing(tmp_path / "a", b"Working.\nDone.\n"))
    assert (usage["cost_usd"], usage["cost_basis"], usage["input_tokens"]) == (
        None,
        "unknown",
        None,
    )


def test_a_thread_that_goes_on_is_counted_once(begun: Path, tmp_path: Path) -> None:
    agent = printing(tmp_path / "a", codex(100), codex(100 + 40), codex(10))
    assert [iterate(agent)["input_tokens"] for _ in range(3)] == [100, 40, 10]


def test_another_check_of_the_same_iteration_says_the_same(begun: Path, tmp_path: Path) -> None:
    usage = iterate(printing(tmp_path / "a", codex(100)))
    again = run("check", "--format", "json", "--no-probe", *QUICK).json["usage"]
    assert again == usage
    assert iterate(printing(tmp_path / "b", codex(130)))["input_tokens"] == 30


def test_what_a_thread_used_before_guard_saw_it_is_not_this_iterations(
    begun: Path, tmp_path: Path
) -> None:
    agent = printing(tmp_path / "a", codex(500), codex(520))
    agent = agent.rename(agent.parent / "codex")
    words = (agent, "exec", "resume", "t1", "go on")
    assert [iterate(*words)["input_tokens"] for _ in range(2)] == [None, 20]


def test_only_the_user_can_name_prices(begun: Path, tmp_path: Path, home: Path) -> None:
    agent = printing(tmp_path / "a", codex(1_000_000), codex(2_000_000))
    words = ("--agent", "codex", "--", agent)
    write(begun / "guard.toml", PRICES)
    ignored = run("run", "--format", "json", "--no-probe", *QUICK, *words)
    assert ignored.json["usage"]["cost_basis"] == "unknown"
    assert "cost.prices is ignored" in ignored.err
    write(home / "config" / "guard" / "config.toml", PRICES)
    priced = run("run", "--format", "json", "--no-probe", *QUICK, *words).json["usage"]
    assert (priced["cost_usd"], priced["cost_basis"]) == (pytest.approx(3.0), "estimated")


def test_the_text_has_one_line_about_it(begun: Path, tmp_path: Path) -> None:
    data = jsonl(
        init(model="opus\x1b[31m"),
        result(
            num_turns=4,
            model_usage_since_last_result={
                "opus\x1b[31m": {
                    "inputTokens": 1234,
                    "cacheReadInputTokens": 84_000,
                    "outputTokens": 15,
                    "costUSD": 0.4,
                }
            },
        ),
    )
    agent = printing(tmp_path / "a", data)
    shown = run("run", "--no-probe", *QUICK, "--", agent).out
    assert (
        "  used: 0.40 USD (billed); tokens: 1.2k in, 84k cached, 15 out; 4 turns; opus\\x1b[31m\n"
        in shown
    )


def opus(cost: float, tokens: int = 1000) -> bytes:
    model = {"inputTokens": tokens, "outputTokens": 0, "costUSD": cost}
    added = {"claude-opus": model}
    return jsonl(init(), result(model_usage_since_last_result=added, num_turns=1))


def loop(*words: str | Path, env: dict[str, str] | None = None) -> tuple[int, Any, str]:
    found = run(
        "loop", "--format", "json", "--no-probe", "--max-iterations", "30", *QUICK, *words, env=env
    )
    return found.code, found.json, found.err


def test_a_loop_ends_at_its_budget_and_leaves_the_breaker_alone(
    begun: Path, tmp_path: Path
) -> None:
    agent = printing(tmp_path / "a", *[opus(0.25)] * 6)
    code, found, _ = loop("--max-cost", "0.70", "--", agent)
    assert (code, found["reason"], found["ended"], len(found["iterations"])) == (
        12,
        "max_cost",
        "max_cost",
        3,
    )
    assert found["usage"]["cost_usd"] == pytest.approx(0.75)
    assert found["budget"]["detail"] == (
        "0.75 USD of 0.70 USD (billed); 3 iterations with new work: 0.75 USD"
    )
    breaker = run("breaker", "show", "--format", "json").json
    assert (breaker["state"], breaker["streak"]) == ("closed", 0)


def test_the_users_settings_are_a_budget_and_the_projects_are_none(
    begun: Path, tmp_path: Path, home: Path
) -> None:
    agent = printing(tmp_path / "a", *[opus(0.25, 600)] * 6)
    write(begun / "guard.toml", "[run]\nmax_tokens = 1\n")
    write(home / "config" / "guard" / "config.toml", "[run]\nmax_tokens = 1000\n")
    code, found, said = loop("--", agent)
    assert (code, found["ended"], len(found["iterations"])) == (12, "max_tokens", 2)
    assert "run.max_tokens is ignored" in said


def test_what_is_spent_without_new_work_has_a_limit_of_its_own(begun: Path, tmp_path: Path) -> None:
    agent = printing(tmp_path / "a", *[opus(0.25)] * 6)
    write(agent, agent.read_text().replace("echo $n $0 > work.txt", "echo $((n > 0)) > work.txt"))
    words = ("--max-cost-without-progress", "0.30", "--", agent)
    stall = {"GUARD_BREAKER__STALL_LIMIT": "0"}
    code, found, _ = loop(*words, env=stall)
    commits = [iteration["new_commits"] for iteration in found["iterations"]]
    assert (code, found["ended"], commits) == (12, "max_cost_without_progress", [1, 1, 0, 0])


def test_an_agent_of_unknown_cost_is_told_of_once(begun: Path, tmp_path: Path) -> None:
    agent = printing(tmp_path / "a", codex(100), codex(200), codex(300))
    found = run(
        "loop", "--no-probe", "--max-iterations", "3", *QUICK, "--max-cost", "1", "--", agent
    )
    assert found.err.count("the agent does not tell what it costs") == 1
    assert "name prices in cost.prices, or set --max-tokens" in found.err
    assert "3 iterations of unknown cost" in found.out


def test_an_agent_over_the_budget_may_finish_its_turn_and_is_then_ended(
    begun: Path, tmp_path: Path
) -> None:
    # It tells its tokens while it works, and would go on for a long time.
    message = {"id": "m1", "content": [], "usage": {"input_tokens": 900, "output_tokens": 200}}
    event = {"type": "assistant", "session_id": "s1", "message": message}
    write(tmp_path / "stream", jsonl(init(), event))
    agent = write(tmp_path / "agent", f"#!/bin/sh\ncat {tmp_path}/stream\nexec sleep 300\n")
    agent.chmod(0o755)
    grace = {"GUARD_RUN__BUDGET_GRACE_SECONDS": "0.5"}
    code, found, said = loop("--max-tokens", "1000", "--", agent, env=grace)
    (iteration,) = found["iterations"]
    assert (iteration["status"], iteration["reason"]) == ("working", "budget")
    assert iteration["usage"]["partial"]
    assert (code, found["ended"]) == (12, "max_tokens")
    assert "the budget is used up: the agent has 0 s to finish its turn" in said
    assert run("breaker", "show", "--format", "json").json["streak"] == 0


def test_one_iteration_can_have_a_budget_of_its_own(begun: Path, tmp_path: Path) -> None:
    message = {"id": "m1", "content": [], "usage": {"input_tokens": 900, "output_tokens": 200}}
    event = {"type": "assistant", "session_id": "s1", "message": message}
    write(tmp_path / "stream", jsonl(init(), event))
    grace = {"GUARD_RUN__BUDGET_GRACE_SECONDS": "0.5"}
    words = ("--max-tokens", "1000", "--", "sh", "-c", f"cat {tmp_path}/stream; exec sleep 300")
    found = run("run", "--format", "json", "--no-probe", *QUICK, *words, env=grace)
    assert (found.code, found.json["reason"]) == (12, "budget")
    assert found.json["usage"]["input_tokens"] == 900


@pytest.mark.parametrize("amount", ["nan", "-1", "0", "much"])
def test_an_amount_that_limits_nothing_is_wrong_usage(amount: str, begun: Path) -> None:
    assert run("loop", "--max-cost", amount, "--", "true").code == 2


def test_metrics_say_what_each_day_and_model_used(begun: Path, tmp_path: Path) -> None:
    for number in range(2):
        iterate(printing(tmp_path / f"a{number}", opus(0.25)))
    report = run("metrics", "--by", "model", "--format", "json").json
    (group,) = report["groups"]
    assert (group["name"], group["iterations"], group["cost_usd"]) == ("claude-opus", 2, 0.5)
    assert (report["by"], report["usage"]["cost_usd"]) == ("model", 0.5)
    shown = run("metrics", "--by", "day").out
    assert "used: 0.50 USD (billed); tokens: 2.0k in, 0 out; 2 turns; claude-opus\n" in shown
    assert "2 iterations: 0.50 USD" in shown
    assert (
        'guard_cost_usd_total{model="claude-opus"' in run("metrics", "--format", "prometheus").out
    )
