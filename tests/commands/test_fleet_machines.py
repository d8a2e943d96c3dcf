"""Two machines that share a server, and a network that fails: each is cut off in the middle of its work, and comes back."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from guard.core.agents.agent import ACTIVE
from tests.support import git, write
from tests.support.machines import Machine, finish, machines
from tests.support.postgres import PASSWORD, PostgresServer

_NUMBERS = count()
_WAIT = 60.0
AGENT = """
import os, pathlib, subprocess, time
pathlib.Path("../started").write_text("yes")
until = time.monotonic() + 60
go = pathlib.Path("../go")
while not (go.exists() and go.read_text()) and time.monotonic() < until:
    time.sleep(0.02)
if pathlib.Path("../go").read_text() == "work":
    pathlib.Path("work.txt").write_text(os.uname().nodename)
    subprocess.run(["git", "add", "work.txt"], check=True)
    subprocess.run(["git", "commit", "-qm", "Work"], check=True)
"""

TRIAL = """
import os, sys, pathlib, time
from guard import breaker
from guard.context.invocation import Invocation
from guard.context.lease import find_process, keep_lease
os.environ["GUARD_BREAKER__COOLDOWN_SECONDS"] = "0"
guard = Invocation()
place = breaker.BreakerKey.of(guard, of_plan=True)
def ask():
    found = breaker.allow(guard.writable_store, place, holder=find_process(os.getpid()))
    print("trial" if found.trial else found.reason, flush=True)
if sys.argv[1] == "trip":
    with guard.writable_store.change() as change:
        from guard.core.breaker import record
        change.append(record.trip(place.case(change), "test", None))
elif sys.argv[1] == "ask":
    ask()
else:
    with keep_lease(guard.writable_store, 15):
        ask()
        pathlib.Path("../held").write_text("")
        while not pathlib.Path("../go").exists():
            time.sleep(0.05)
        time.sleep(1)
        ask()
"""


def address_of(server: PostgresServer, machine: Machine, name: str) -> str:
    # A short patience, so that a test need not wait for that of the system.
    limits = "connect_timeout=2&tcp_user_timeout=2000&guard_workspace=shared"
    return f"postgresql://guard:{quote(PASSWORD, safe='')}@{machine.server}:{server.port}/{name}?{limits}"


@pytest.fixture
def two(
    network_postgres: PostgresServer, empty_repository: Path, tmp_path: Path, home: Path
) -> Iterator[tuple[Machine, Machine]]:
    """Two machines with a repository at the same path and the address of one workspace."""
    name = f"machines_{next(_NUMBERS)}"
    network_postgres.query("postgres", f'CREATE DATABASE "{name}" TEMPLATE template0')
    with machines(tmp_path, "alpha", "beta") as (alpha, beta):
        for machine in (alpha, beta):
            project = machine.folder / "project"
            git(tmp_path, "clone", "-q", str(empty_repository), str(project))
            git(project, "config", "user.name", "Test Author")
            git(project, "config", "user.email", "author@example.com")
            write(project / "file.txt", "one\n")
            git(project, "add", "file.txt")
            git(project, "commit", "-qm", "Begin")
            address = address_of(network_postgres, machine, name)
            config = machine.folder / "home" / "config" / "guard" / "config.toml"
            write(config, f'workspace = "{address}"\n').chmod(0o600)
            write(machine.folder / "agent.py", AGENT)
        yield alpha, beta


def wait_for(path: Path) -> None:
    until = time.monotonic() + _WAIT
    while not path.exists():
        assert time.monotonic() < until, f"{path} does not appear"
        time.sleep(0.02)


def records(machine: Machine, *kinds: str) -> list[dict[str, Any]]:
    """The events of these kinds, in the order of the log."""
    done = machine.run("log", "--export", "-")
    assert done.code == 0, done.err
    found = [json.loads(line) for line in done.out.splitlines()]
    return [each for each in found if each["type"] in kinds]


def test_a_run_goes_on_without_the_server_and_is_handed_in_once(
    two: tuple[Machine, Machine],
) -> None:
    alpha, beta = two
    running = alpha.start_guard("run", "--task", "T1", "--", "python3", "../agent.py")
    wait_for(alpha.folder / "started")
    alpha.cut_off()
    write(alpha.folder / "go", "work")
    assert beta.run("run", "--", "true").code == 10
    done = finish(running)
    assert done.code == 0, done.err
    assert "this run goes on, and records in" in done.err
    assert "hands them in" in done.err
    begun = time.monotonic()
    lost = alpha.run("log")
    assert lost.code == 6
    assert "not seen: the records in" in lost.err
    assert time.monotonic() - begun < 60
    assert [each["status"] for each in records(beta, "iteration_ended")] == ["timeout"]
    assert [each["status"] in ACTIVE for each in fleet(beta)["agents"]] == [True]
    alpha.connect()
    assert "handed in" in alpha.run("-v", "log").err
    ended = records(beta, "iteration_ended", "check_made", "breaker_recorded")
    assert sorted(each["status"] for each in ended) == ["complete"] * 3 + ["timeout"] * 3
    assert alpha.run("run", "--", "true").code == 10
    assert [each["status"] for each in fleet(beta)["agents"]] == ["completed"]
    assert alpha.run("run", "--", "true").code == 10
    assert len(records(beta, "agent_claim_validated")) == 1
    for machine in two:
        assert machine.run("verify").code == 0
        assert list(machine.folder.rglob("*.jsonl")) == []
        assert list(machine.folder.rglob("verdicts.d/*")) == []


def fleet(machine: Machine) -> dict[str, Any]:
    done = machine.run("status", "--fleet", "--format", "json")
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json
    return found


def test_a_guard_that_is_killed_without_the_server_is_judged_once(
    two: tuple[Machine, Machine],
) -> None:
    alpha, beta = two
    running = alpha.start_guard("run", "--", "python3", "../agent.py")
    wait_for(alpha.folder / "started")
    alpha.cut_off()
    running.kill()
    running.communicate()
    write(alpha.folder / "go", "work")
    wait_for(alpha.folder / "project" / "work.txt")
    assert alpha.run("run", "--", "true").code == 6
    assert records(beta, "iteration_ended") == []
    alpha.connect()
    done = alpha.run("run", "--", "true")
    assert "was left unfinished" in done.err
    ended = records(beta, "iteration_ended")
    assert [(each["iteration"], each["status"]) for each in ended] == [
        (1, "complete"),
        (1, "timeout"),
    ]


def test_a_loop_waits_for_the_server_and_goes_on(two: tuple[Machine, Machine]) -> None:
    alpha, beta = two
    words = ("loop", "--max-iterations", "2", "--", "python3", "../agent.py")
    running = alpha.start_guard(*words)
    wait_for(alpha.folder / "started")
    alpha.cut_off()
    write(alpha.folder / "go", "rest")
    wait_for_line(running, "the loop waits for the server")
    alpha.connect()
    done = finish(running)
    assert done.code == 10, done.err
    ended = records(beta, "iteration_ended")
    assert [(each["iteration"], each["status"]) for each in ended] == [
        (1, "timeout"),
        (2, "timeout"),
    ]
    assert len(records(beta, "run_ended")) == len(records(beta, "run_started")) == 1


def wait_for_line(process: "subprocess.Popen[str]", words: str) -> None:
    assert process.stderr is not None
    heard = ""
    for line in process.stderr:
        heard += line
        if words in line:
            return
    raise AssertionError(f"it ended, and did not say: {words}\n{heard}")


def test_a_trial_is_one_machine_s_and_the_next_s_after_its_lease(
    two: tuple[Machine, Machine],
) -> None:
    alpha, beta = two
    asks = (sys.executable, "../trial.py", "ask")
    write(alpha.folder / "trial.py", TRIAL)
    write(beta.folder / "trial.py", TRIAL)
    assert finish(alpha.start(sys.executable, "../trial.py", "trip")).code == 0
    holder = alpha.start(sys.executable, "../trial.py", "hold")
    wait_for(alpha.folder / "held")
    assert finish(beta.start(*asks)).out == "trial_taken\n"
    alpha.cut_off()
    wait_until(lambda: finish(beta.start(*asks)).out == "trial\n")
    other = beta.start(sys.executable, "../trial.py", "hold")
    wait_for(beta.folder / "held")
    alpha.connect()
    write(alpha.folder / "go", "now")
    # The one whose lease has lapsed does not get its trial back while the other makes it.
    assert finish(holder).out == "trial\ntrial_taken\n"
    write(beta.folder / "go", "now")
    assert finish(other).out.startswith("trial\n")


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + _WAIT
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_task_is_dispatched_by_one_machine_only(two: tuple[Machine, Machine]) -> None:
    alpha, beta = two
    for machine in two:
        write(machine.folder / "project" / "plan.md", "# Plan\n\n- [ ] T1: one\n- [ ] T2: two\n")
    assert alpha.run("plan", "load", "plan.md").code == 0
    both = [
        machine.start_guard("plan", "dispatch", "T1", "--agent", machine.name) for machine in two
    ]
    assert sorted(finish(one).code for one in both) == [0, 1]
    alpha.cut_off()
    assert alpha.run("plan", "dispatch", "T2", "--agent", "alpha2").code == 6
    assert beta.run("plan", "dispatch", "T2", "--agent", "beta2").code == 0
    alpha.connect()
    # The first connection over the new cable may meet the end of an old one: guard says to try again.
    wait_until(lambda: alpha.run("plan", "show").code != 6)
    assert alpha.run("plan", "dispatch", "T2", "--agent", "alpha2").code == 1
    dispatched = records(beta, "developer_dispatched")
    assert sorted(each["task_id"] for each in dispatched) == ["T1", "T2"]
