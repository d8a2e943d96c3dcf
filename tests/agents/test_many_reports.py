"""Many agents that report at once: every report is counted, or its exit code says that it was not."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support import run

AGENTS = [f"a{number}" for number in range(24)]


def report(agent: str, lock_seconds: str, *words: str) -> int:
    env = {"GUARD_STORE__LOCK_TIMEOUT_SECONDS": lock_seconds}
    return run("agent", *words, "--task", "T1", "--agent", agent, env=env).code


def test_every_report_is_counted_or_says_that_it_was_not(repository: Path) -> None:
    with ThreadPoolExecutor(len(AGENTS)) as pool:
        spawned = pool.map(lambda agent: report(agent, "60", "spawn"), AGENTS)
        assert set(spawned) == {0}
        ends = ("update", "--status", "completed")
        codes = list(pool.map(lambda agent: report(agent, "0.001", *ends), AGENTS))
    assert set(codes) <= {0, 6}
    listed = run("agent", "list", "--all", "--format", "json").json["agents"]
    assert len(listed) == len(AGENTS)
    ended = {agent["agent_id"] for agent in listed if agent["status"] == "completed"}
    assert ended == {agent for agent, code in zip(AGENTS, codes, strict=True) if code == 0}
