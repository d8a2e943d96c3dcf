"""Many processes that report at once and are killed at any moment: no count is lost, and none is made twice."""

import json
import random
import signal
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from guard.core.agents.agent import ACTIVE, TERMINAL
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.store.file_store import FileStore
from tests.support.reporter import SHARED, TASKS, populate, start
from tests.support.series import times
from tests.support.sessions import until

pytestmark = [pytest.mark.long, pytest.mark.series, pytest.mark.timeout(1800)]

PROCESSES = times(16, full=32)
_DEADLINE = 800
"""For a machine that starts so many processes very slowly; a test that hangs is ended by it, too."""
_LEAST_REPORTS = 2 * PROCESSES
"""So many reports returned in each life before the first process is killed, however slow the machine is."""


def _lives_and_dies(workspace: Path, journals: Path, life: int, chance: random.Random) -> None:
    names = [f"p{life}-{number}" for number in range(PROCESSES)]
    reporters = [start(workspace, name, journals / name) for name in names]
    try:
        until(lambda: len(list(journals.glob(f"p{life}-*"))) == PROCESSES, _DEADLINE)
        until(lambda: len(_journal(journals)) > _LEAST_REPORTS * (life + 1), _DEADLINE)
        assert not any(one.poll() for one in reporters)
        for one in chance.sample(reporters, PROCESSES):
            time.sleep(chance.uniform(0, 0.2))
            one.send_signal(signal.SIGKILL)
    finally:
        for one in reporters:
            one.kill()
            assert one.communicate(timeout=_DEADLINE)[1] == b""


def _journal(folder: Path) -> list[list[str]]:
    """Every report that returned; the last line of one that was killed may be torn."""
    lines = [line for file in folder.iterdir() for line in file.read_bytes().split(b"\n")[:-1]]
    return [json.loads(line) for line in lines]


def _recorded(workspace: Path) -> Counter[tuple[str, str]]:
    """How often each task has each type of event, read without guard."""
    found: Counter[tuple[str, str]] = Counter()
    for line in (workspace / "events.jsonl").read_bytes().splitlines():
        event: dict[str, Any] = json.loads(line)
        if "task_id" in event:
            found[event["task_id"], event["type"]] += 1
    return found


def test_no_count_is_lost_or_made_twice(workspace: Path, tmp_path: Path) -> None:
    populate(workspace)
    journals = tmp_path / "journals"
    journals.mkdir()
    chance = random.Random(20260131)
    for life in range(2):
        _lives_and_dies(workspace, journals, life, chance)
    said, store = _journal(journals), FileStore(workspace)
    assert len(said) > 2 * _LEAST_REPORTS
    report = store.verify()
    assert report.ok, report.findings

    recorded, overall = _recorded(workspace), store.view(GLOBAL_REGISTRY)
    acknowledged: dict[str, set[str]] = defaultdict(set)
    for task, agent, *_ in said:
        acknowledged[task].add(agent)
    totals: Counter[str] = Counter()
    for task in TASKS:
        registry = store.view(AGENT_REGISTRY, task)
        assert registry
        statuses = {agent.agent_id: agent.status for agent in registry.agents}
        assert acknowledged[task] | set(SHARED) <= set(statuses)
        assert registry.total_spawned == len(statuses) == recorded[task, "agent_spawned"]
        assert registry.active_count == sum(one in ACTIVE for one in statuses.values())
        assert registry.completed_count == sum(one in TERMINAL for one in statuses.values())
        totals.update(
            active=registry.active_count,
            completed=registry.completed_count,
            spawned=registry.total_spawned,
        )
        ends = [line for line in said if line[0] == task and line[2] in TERMINAL]
        assert all(statuses[agent] == status for _, agent, status, _ in ends)
    assert overall
    assert totals["active"] == overall.active_agents
    assert totals["completed"] == overall.completed_agents
    assert totals["spawned"] == overall.total_agents_spawned

    firsts = Counter((task, agent) for task, agent, _, how in said if how == "updated")
    shared = {name: count for name, count in firsts.items() if name[1] in SHARED}
    assert shared
    assert set(shared.values()) == {1}
