"""A guard that is killed leaves the project as it was, and the next command finds nothing of it in its way."""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.prove.test_execute import left_over
from tests.support import git, run, write
from tests.support.checkouts import State, state_of
from tests.support.sessions import started, until

TIMES = 3
SLEEP = "31415926"
COMMAND = f"setsid sleep {SLEEP} & touch ran; sleep 0.3"
PROVE = ("prove", "--no-cache", "--format", "json", "--command")


@pytest.fixture
def project(repository: Path) -> Path:
    for number in range(500):
        write(repository / f"code/{number}.py", f"x = {number}\n")
    write(repository / "tests/test_a.py", "def test_a(): pass\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "all")
    write(repository / "tests/test_a.py", "def test_a(): assert True\n")
    git(repository, "commit", "-qam", "change a test")
    write(repository / "code/1.py", "x = 'stashed'\n")
    git(repository, "stash", "-q")
    write(repository / "code/2.py", "x = 'not committed'\n")
    write(repository / "untracked", "x")
    return repository


def own_state(project: Path) -> State:
    """Return what is the project's own: everything but guard's folder."""
    return {
        path: kept
        for path, kept in state_of(project).items()
        if "/guard" not in path[len(str(project)) :]
    }


def left_in_cache(home: Path) -> list[Path]:
    cache = home / ".cache" / "guard" / "prove"
    return [*cache.glob("*/scratch/*"), *cache.rglob("*.lock"), *cache.rglob("*.tmp")]


def test_a_proof_that_is_killed_at_any_moment_changes_nothing(project: Path, home: Path) -> None:
    assert run(*PROVE, COMMAND).code == 0
    before = own_state(project)
    begun = time.monotonic()
    assert run(*PROVE, COMMAND, fresh=True).code == 0
    whole = time.monotonic() - begun
    moments = random.Random(20)
    for _ in range(TIMES):
        with started(*PROVE, COMMAND) as guard:
            time.sleep(moments.uniform(0, whole))
            guard.send_signal(signal.SIGKILL)
        assert own_state(project) == before
        found = run(*PROVE, COMMAND)
        assert json.loads(found.out)["result"] == "proven", found.err
        assert own_state(project) == before
        assert left_over(f"sleep\0{SLEEP}") == []
        assert left_in_cache(home) == []


def test_a_run_whose_supervisor_was_stopped_is_ended_by_the_next_command(
    project: Path, tmp_path: Path
) -> None:
    stops = f"setsid sleep 31415927 & kill -STOP $PPID; touch {tmp_path}/stopped; sleep 31415927"
    with started(*PROVE, stops) as guard:
        until((tmp_path / "stopped").exists)
        guard.send_signal(signal.SIGKILL)
    found = run(*PROVE, "true")
    assert json.loads(found.out)["result"] == "proven", found.err
    assert left_over("31415927") == []
    assert os.path.exists(project / "untracked")
