"""Two coordinators on one workspace, each a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.coordinator.record import record, require_state
from guard.core.agents.registry import GLOBAL_REGISTRY
from tests.support import ROOT
from tests.support.plans import plan, task
from tests.support.series import times

TASKS = times(120, full=1000)
LIMIT = 1500


def started(workspace: Path, name: str, home: Path) -> "subprocess.Popen[str]":
    environ = {
        **os.environ,
        "GUARD_COORDINATOR__ACTIVE_DEVELOPERS": "1000",
        "GUARD_STORE__LOCK_TIMEOUT_SECONDS": "240",
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.dispatcher", str(workspace), name],
        cwd=home,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
@pytest.mark.series
@pytest.mark.timeout(1800)
def test_no_task_goes_to_two_agents(workspace: Path, home: Path) -> None:
    guard = Invocation(workspace_option=str(workspace))
    record(guard, plan(*(task(f"T{number}") for number in range(TASKS))))
    both = [started(workspace, name, home) for name in ("one", "two")]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    got = [process.communicate(timeout=LIMIT)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(got[0] + got[1]) == sorted(f"T{number}" for number in range(TASKS))
    state = require_state(guard)
    assert len(state.active_developers) == TASKS
    assert {one.task_id: one.developer_id[:3] for one in state.in_progress_tasks} == {
        task_id: name for name, mine in zip(("one", "two"), got, strict=True) for task_id in mine
    }
    registry = guard.store.view(GLOBAL_REGISTRY)
    assert registry is not None
    assert registry.active_agents == TASKS
