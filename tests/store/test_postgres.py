"""PostgreSQL that restarts and goes away: what was acknowledged is there, once, and no verdict is wrong."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from guard.core.agents.events import AgentSpawned
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.iteration.events import IterationEnded
from guard.core.iteration.run import RUN
from guard.core.log.view import ViewDocument, seal
from guard.errors import StateProblem, StoreUnavailable
from guard.store import WorkspaceStore
from tests.store.test_contract import is_sound, open_at, recorded
from tests.support import commit, run
from tests.support.events import run_started, spawned, updated
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


def fill(store: WorkspaceStore) -> None:
    with store.change() as change:
        change.append(spawned(agent="a1"), spawned(agent="a2"), spawned(task="T2"), run_started())
    with store.change() as change:
        change.append(updated("completed", agent="a1"), updated(agent="a2"))


def test_the_tables_of_an_older_guard_are_brought_up_to_date(
    postgres: PostgresServer, dsn: str
) -> None:
    store, name = open_at(dsn), dsn.partition("@/")[2].partition("?")[0]
    fill(store)
    documents: dict[str, ViewDocument] = {
        AGENT_REGISTRY.path(key): found for key, found in store.views(AGENT_REGISTRY).items()
    }
    overall = store.view(GLOBAL_REGISTRY)
    assert overall is not None
    documents[GLOBAL_REGISTRY.path("")] = overall
    for path, document in documents.items():
        data = seal(document).hex()
        postgres.query(name, f"UPDATE guard.view SET document = '\\x{data}' WHERE path = '{path}'")
    postgres.query(
        name, "DROP TABLE guard.agent, guard.finished; UPDATE guard.format SET version = 1"
    )
    newer = open_at(dsn)
    with newer.change() as change:
        assert change.view(GLOBAL_REGISTRY) == overall
        change.append(updated(message="on it", agent="a2"))
    assert is_sound(newer)
    assert postgres.query(name, "SELECT version FROM guard.format").strip() == "2"


def test_a_guard_that_runs_on_refuses_tables_that_became_newer(
    postgres: PostgresServer, dsn: str
) -> None:
    store, name = open_at(dsn), dsn.partition("@/")[2].partition("?")[0]
    fill(store)
    postgres.query(name, "UPDATE guard.format SET version = 99")
    with pytest.raises(StateProblem, match="the format 99"), store.change() as change:
        change.append(run_started())
    postgres.query(name, "UPDATE guard.format SET version = 2")
    assert len(recorded(store)) == 6
    assert is_sound(store)


DAMAGE = {
    "a row of an agent": "UPDATE guard.agent SET document = 'x' WHERE agent = 'a2'",
    "an agent is gone": "DELETE FROM guard.agent WHERE agent = 'a1'",
    "a finished agent is forgotten": "DELETE FROM guard.finished",
    "a row of a registry": "UPDATE guard.view SET document = 'x' WHERE path LIKE '%REGISTRY%'",
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_rows_are_found_and_made_again(
    case: str, postgres: PostgresServer, dsn: str
) -> None:
    store, name = open_at(dsn), dsn.partition("@/")[2].partition("?")[0]
    fill(store)
    postgres.query(name, DAMAGE[case])
    assert not store.verify().ok
    assert store.rebuild().written
    assert is_sound(open_at(dsn))


@pytest.mark.parametrize("case", ["a row of an agent", "a row of a registry"])
def test_a_change_makes_rows_again_that_cannot_be_read(
    case: str, postgres: PostgresServer, dsn: str
) -> None:
    fill(open_at(dsn))
    postgres.query(dsn.partition("@/")[2].partition("?")[0], DAMAGE[case])
    registry = open_at(dsn).view(AGENT_REGISTRY, "T1")
    assert registry is not None
    assert [agent.agent_id for agent in registry.agents] == ["a1", "a2"]
    store = open_at(dsn)
    with store.change() as change:
        change.append(updated(message="go on", agent="a2"))
    assert is_sound(open_at(dsn))


KEEP = "; ".join(f"CREATE TABLE kept_{name} AS TABLE guard.{name}" for name in ("event", "view"))
HEAD = "CREATE TABLE kept_head AS SELECT head_seq, head_hash, head_segment, head_offset FROM guard.workspace"
RETURN = """
DELETE FROM guard.event; INSERT INTO guard.event TABLE kept_event;
DELETE FROM guard.view; INSERT INTO guard.view TABLE kept_view;
UPDATE guard.workspace w SET head_seq = k.head_seq, head_hash = k.head_hash,
    head_segment = k.head_segment, head_offset = k.head_offset FROM kept_head k
"""


def test_a_store_goes_on_where_the_server_went_back(postgres: PostgresServer, dsn: str) -> None:
    store, name = open_at(dsn), dsn.partition("@/")[2].partition("?")[0]
    fill(store)
    postgres.query(name, f"{KEEP}; {HEAD}")
    for worktree in ("w1", "w2"):
        with store.change() as change:
            change.append(run_started("r2", worktree))
    postgres.query(name, RETURN)
    with store.change() as change:
        run = change.view(RUN, "w1")
        assert run is not None
        assert run.run == "r1"
        assert change.view(RUN, "w2") is None
        change.append(run_started(worktree="w3"))
    assert is_sound(open_at(dsn))


def test_another_history_of_the_same_length_is_refused(postgres: PostgresServer, dsn: str) -> None:
    store, name = open_at(dsn), dsn.partition("@/")[2].partition("?")[0]
    fill(store)
    postgres.query(name, f"{KEEP}; {HEAD}")
    with store.change() as change:
        change.append(run_started("r2"))
    postgres.query(name, RETURN)
    with open_at(dsn).change() as change:
        change.append(run_started("r3"), run_started("r4"))
    with pytest.raises(StateProblem, match="another one than before"), store.change() as change:
        change.append(run_started("r5"))
    assert is_sound(open_at(dsn))


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


def test_a_run_whose_server_goes_gives_its_verdict_and_is_recorded_later_once(
    beside: Path, own_server: PostgresServer
) -> None:
    running = begin_run(beside)
    own_server.stop("fast")
    (beside / "go").touch()
    said, _ = running.communicate(timeout=300)
    assert running.returncode == 0, said
    assert run("check").code == 6
    own_server.start()
    done = run("run", "--", sys.executable, "-c", "pass")
    assert done.code == 10, done.err
    assert "left unfinished" not in done.err
    ends = run(
        "log", "--type", IterationEnded.model_fields["type"].default, "--format", "json"
    ).json
    assert [event["status"] for event in ends["events"]] == ["complete", "timeout"]
    assert run("verify").code == 0
