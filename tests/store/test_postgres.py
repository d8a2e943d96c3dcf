"""PostgreSQL that restarts and goes away: what was acknowledged is there, once, and no verdict is wrong."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from guard.core.agents.events import AgentSpawned
from guard.core.iteration.events import IterationEnded
from guard.errors import StoreUnavailable
from guard.store import WorkspaceStore
from tests.store.test_contract import is_sound, open_at, recorded
from tests.support import commit, run
from tests.support.events import run_started, spawned
from tests.support.postgres import PostgresServer, find_programs, postgres_server
from tests.support.series import times
from tests.support.sessions import until

RETRYING_WRITER = """
import sys
from guard.errors import StoreUnavailable
from tests.store.test_contract import open_at
from tests.support.events import spawned
store, name, times = open_at(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(times):
    event = spawned(task=name, agent=f"a{number}").model_copy(update={"id": f"{name}-{number}"})
    while True:
        try:
            with store.change() as change:
                if change.find_event(event.id) is None:
                    change.append(event)
            break
        except StoreUnavailable:
            pass
    print(event.id, flush=True)
"""


@pytest.fixture
def own_server(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A server that the test may stop."""
    programs = find_programs()
    assert programs is not None
    with postgres_server(programs) as server:
        yield server


def test_a_store_goes_on_after_a_restart_of_the_server(own_server: PostgresServer) -> None:
    store = open_at(own_server.new_database("w"))
    with store.change() as change:
        change.append(spawned())
    for mode in ("fast", "immediate"):
        own_server.stop(mode)
        own_server.start()
        with store.change() as change:
            change.append(run_started())
        own_server.stop(mode)
        own_server.start()
        assert len(recorded(store)) >= 2
    assert is_sound(store)


def restart_within_change(store: WorkspaceStore, server: PostgresServer) -> None:
    with store.change() as change:
        change.append(run_started())
        server.stop("immediate")
        server.start()


def test_a_change_whose_connection_was_lost_records_nothing(own_server: PostgresServer) -> None:
    store = open_at(own_server.new_database("w"))
    with store.change() as change:
        change.append(spawned())
    with pytest.raises(StoreUnavailable):
        restart_within_change(store, own_server)
    assert len(recorded(store)) == 1
    with store.change() as change:
        change.append(run_started())
    assert len(recorded(store)) == 2
    assert is_sound(store)


@pytest.mark.long
@pytest.mark.series
def test_restarts_of_the_server_lose_nothing_that_was_acknowledged(
    own_server: PostgresServer,
) -> None:
    place, spawns = own_server.new_database("w"), 60
    with open_at(place).change() as change:
        change.append(run_started())
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", RETRYING_WRITER, place, f"T{number}", str(spawns)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for _ in range(times(6, full=20)):
        own_server.stop("immediate")
        own_server.start()
    for writer in writers:
        told, _ = writer.communicate(timeout=500)
        assert writer.returncode == 0
        assert len(told.split()) == spawns
    ids = [event.id for event in recorded(open_at(place)) if isinstance(event, AgentSpawned)]
    assert sorted(ids) == sorted(f"T{w}-{n}" for w in range(3) for n in range(spawns))
    assert is_sound(open_at(place))


AGENT = """
import os, subprocess, sys, time
open('begun', 'w').close()
while not os.path.exists('go'):
    time.sleep(0.05)
open('work.txt', 'w').write('work')
subprocess.run(['git', 'add', 'work.txt'], check=True)
subprocess.run(['git', 'commit', '-qm', 'Work'], check=True)
"""


@pytest.fixture
def beside(repository: Path, own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    commit(repository)
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "exclude").write_text("begun\ngo\n")
    monkeypatch.setenv("GUARD_WORKSPACE", own_server.new_database("w"))
    return repository


def begin_run(repository: Path) -> "subprocess.Popen[str]":
    argv = [sys.executable, "-m", "guard", "run", "--", sys.executable, "-c", AGENT]
    started = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until(lambda: (repository / "begun").exists())
    return started


def test_a_restart_of_the_server_while_an_agent_works_changes_no_verdict(
    beside: Path, own_server: PostgresServer
) -> None:
    running = begin_run(beside)
    own_server.stop("immediate")
    own_server.start()
    (beside / "go").touch()
    said, _ = running.communicate(timeout=300)
    assert running.returncode == 0, said
    assert run("verify").code == 0


def test_a_server_that_is_gone_ends_a_run_without_a_verdict_which_comes_later_once(
    beside: Path, own_server: PostgresServer
) -> None:
    running = begin_run(beside)
    own_server.stop("fast")
    (beside / "go").touch()
    said, _ = running.communicate(timeout=300)
    assert running.returncode == 6, said
    assert run("check").code == 6
    own_server.start()
    done = run("run", "--", sys.executable, "-c", "pass")
    assert done.code == 10, done.err
    assert "left unfinished" in done.err
    ends = run(
        "log", "--type", IterationEnded.model_fields["type"].default, "--format", "json"
    ).json
    assert [event["status"] for event in ends["events"]] == ["complete", "timeout"]
    assert run("verify").code == 0
