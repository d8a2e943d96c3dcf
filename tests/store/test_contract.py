"""What every store promises, whatever keeps it: the same suite over files and over PostgreSQL."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from guard.core.agents.events import RetentionSet
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.iteration.run import RUN
from guard.core.log.events import BaseEvent, SegmentOpened
from guard.core.log.replay import Replay
from guard.core.log.view import seal
from guard.errors import Refused, StoreUnavailable
from guard.store import WorkspaceStore
from tests.support import TIME_LIMIT
from tests.support.events import MOMENT, iteration_started, run_started, spawned, updated

Open = Callable[[], WorkspaceStore]
WRITER = """
import sys
from tests.store.test_contract import open_at
from tests.support.events import spawned, updated
store, name, times = open_at(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for number in range(times):
    with store.change() as change:
        change.append(spawned(task=name, agent=f"a{number}"))
    print(number, flush=True)
"""


def open_at(place: str, lock_seconds: float = 60) -> WorkspaceStore:
    """Open the store at a path or an address."""
    if place.startswith("postgresql:"):
        from guard.store.dsn import parse_dsn
        from guard.store.postgres.store import PostgresStore

        return PostgresStore(parse_dsn(place), "w", lock_timeout_seconds=lock_seconds)
    from guard.store.file_store import FileStore

    return FileStore(Path(place), lock_timeout_seconds=lock_seconds)


@pytest.fixture(params=["files", "postgres"])
def place(request: pytest.FixtureRequest, workspace: Path) -> str:
    """Where the store is."""
    return str(workspace) if request.param == "files" else str(request.getfixturevalue("dsn"))


@pytest.fixture
def opened(place: str) -> WorkspaceStore:
    return open_at(place)


def recorded(store: WorkspaceStore) -> list[BaseEvent]:
    return [e.event for e in store.entries() if not isinstance(e.event, SegmentOpened)]


def record(store: WorkspaceStore, *events: BaseEvent) -> None:
    with store.change() as change:
        change.append(*events)


def is_sound(store: WorkspaceStore) -> bool:
    """Whether the chain is whole, and every view is what a fresh fold of the log gives."""
    replay = Replay()
    for seq, entry in enumerate(store.entries(), 1):
        assert entry.position.seq == seq
        replay.feed(entry)
    for path, fold in replay.folds.items():
        kind = replay.kinds[path]
        found = store.view(kind, kind.key_in(path) or "")
        assert found is not None
        assert seal(found) == seal(fold.document()), path
    return store.verify().ok


def test_an_empty_store_has_nothing(opened: WorkspaceStore) -> None:
    assert opened.view(GLOBAL_REGISTRY) is None
    assert list(opened.entries()) == []
    assert list(opened.recent()) == []
    assert list(opened.records()) == []
    assert dict(opened.views(AGENT_REGISTRY)) == {}
    assert not opened.exists()
    assert not opened.has_state_of("w1")
    assert opened.verify().ok


def test_events_come_back_in_order(opened: WorkspaceStore, place: str) -> None:
    events: list[BaseEvent] = [spawned(), updated(), run_started()]
    for event in events:
        record(opened, event)
    assert recorded(open_at(place)) == events
    positions = [entry.position for entry in opened.entries()]
    assert [position.seq for position in positions] == [1, 2, 3, 4]
    assert [entry.event for entry in opened.entries(positions[1])] == events[1:]
    assert list(opened.recent()) == list(opened.entries())
    assert is_sound(open_at(place))


def test_a_change_sees_its_own_events_and_those_of_others(
    opened: WorkspaceStore, place: str
) -> None:
    record(opened, spawned())
    record(open_at(place), updated("completed"))
    with opened.change() as change:
        assert change.fold(AGENT_REGISTRY, "T1").counts() == (0, 1, 1)
        change.append(spawned(agent="a2"))
        assert change.fold(AGENT_REGISTRY, "T1").counts() == (1, 1, 2)
        overall = change.view(GLOBAL_REGISTRY)
        assert overall is not None
        assert overall.counts() == (1, 1, 2)
    assert is_sound(opened)


def test_a_change_of_several_events_is_there_as_a_whole(opened: WorkspaceStore) -> None:
    record(opened, run_started(), iteration_started(), spawned())
    assert [entry.more for entry in opened.entries()] == [3, 2, 1, 0]
    assert opened.has_state_of("w1")


def test_an_append_of_nothing_records_nothing(opened: WorkspaceStore) -> None:
    with opened.change() as change:
        assert list(change.append()) == []
        assert change.view(RUN, "w1") is None
    assert list(opened.entries()) == []


def test_an_event_is_found_by_its_id(opened: WorkspaceStore, place: str) -> None:
    event = spawned()
    record(opened, event)
    with open_at(place).change() as change:
        assert change.find_event(event.id) == event
        assert change.find_event("another") is None
        later = updated()
        change.append(later)
        assert change.find_event(later.id) is not None


def append_and_fail(store: WorkspaceStore) -> None:
    with store.change() as change:
        change.append(spawned())
        raise RuntimeError


def random_change(chance: Random, step: int) -> list[BaseEvent]:
    """Some events about few agents: they begin, end, begin again; and fewer or more finished ones are kept."""
    events: list[BaseEvent] = []
    for number in range(chance.randint(1, 4)):
        task, agent = f"T{chance.randrange(3)}", f"a{chance.randrange(6)}"
        kind = chance.randrange(6)
        if kind < 2:
            events.append(spawned(agent, task))
        elif kind < 5:
            events.append(updated(chance.choice(("working", "completed", "failed")), agent, task))
        else:
            keep = chance.randrange(5)
            events.append(RetentionSet(at=MOMENT, id=f"k{step}-{number}", keep_finished=keep))
    return events


@pytest.mark.parametrize("seed", range(3))
def test_registries_are_what_a_fresh_fold_gives(
    opened: WorkspaceStore, place: str, seed: int
) -> None:
    chance = Random(seed)
    for step in range(25):
        store = opened if step % 3 else open_at(place)
        with store.change() as change:
            for event in random_change(chance, step):
                change.append(event)
            overall = change.view(GLOBAL_REGISTRY)
            assert overall is None or overall.counts() == change.fold(GLOBAL_REGISTRY).counts()
        if step % 5 == 4:
            assert is_sound(open_at(place))
    lines = [record.line for record in opened.records()]
    assert opened.rebuild().written == ()
    assert [record.line for record in opened.records()] == lines
    for task, registry in opened.views(AGENT_REGISTRY).items():
        for agent in registry.agents:
            found = open_at(place).view(AGENT_REGISTRY, task, part=agent.agent_id)
            assert found is not None
            assert found.agent(agent.agent_id) == agent
            assert found.counts() == registry.counts()


def test_views_with_given_keys_come_together(opened: WorkspaceStore) -> None:
    record(opened, run_started(worktree="w1"), run_started(worktree="w2"), spawned(task="T1"))
    assert list(opened.views(RUN, ["w2", "w3"])) == ["w2"]
    assert list(opened.views(AGENT_REGISTRY, ["T1", "T2"])) == ["T1"]
    assert dict(opened.views(RUN, [])) == {}


def test_what_a_change_expects_changes_nothing(opened: WorkspaceStore) -> None:
    event = spawned()
    record(opened, event, run_started())
    with opened.change() as change:
        change.expect(AGENT_REGISTRY, "T1", "a1")
        change.expect(AGENT_REGISTRY, "T1", "a2")
        change.expect(RUN, "w9")
        change.expect_event(event.id)
        change.expect_event("another")
        registry = change.fold(AGENT_REGISTRY, "T1")
        assert registry.agent("a1") is not None
        assert registry.agent("a2") is None
        assert change.find_event(event.id) == event
        assert change.find_event("another") is None
        change.expect(RUN, "w1")
        assert change.view(RUN, "w1") is not None
        assert change.view(RUN, "w9") is None
    assert len(recorded(opened)) == 2
    assert is_sound(opened)


def test_an_error_inside_a_change_keeps_what_was_appended(opened: WorkspaceStore) -> None:
    with pytest.raises(RuntimeError):
        append_and_fail(opened)
    assert len(recorded(opened)) == 1
    assert is_sound(opened)


def test_views_are_kept_apart_by_their_keys(opened: WorkspaceStore) -> None:
    record(opened, spawned(task="T1"), spawned(task="T2"), run_started(worktree="w1"))
    assert list(opened.views(AGENT_REGISTRY)) == ["T1", "T2"]
    assert list(opened.views(RUN)) == ["w1"]


def test_a_store_with_a_memory_goes_on_after_many_changes_of_others(
    opened: WorkspaceStore, place: str
) -> None:
    record(opened, spawned())
    other = open_at(place)
    for number in range(30):
        record(other, updated(message=f"step {number}"))
    record(opened, updated("completed"))
    assert is_sound(opened)


def start(place: str, name: str, times: int) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, place, name, str(times)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_processes_lose_nothing_and_leave_no_gap(opened: WorkspaceStore, place: str) -> None:
    writers = [start(place, f"T{number}", 25) for number in range(4)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=300)
        assert writer.returncode == 0
    registry = opened.view(GLOBAL_REGISTRY)
    assert registry is not None
    assert registry.total_agents_spawned == 100
    assert is_sound(opened)


def test_what_a_killed_process_was_told_is_there(opened: WorkspaceStore, place: str) -> None:
    for times in range(3):
        writer = start(place, f"T{times}", 1000)
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
        told = [writer.stdout.readline() for _ in range(5)]
        writer.send_signal(signal.SIGKILL)
        rest, _ = writer.communicate(timeout=TIME_LIMIT)
        acknowledged = len(told) + rest.count("\n")
        registry = open_at(place).view(AGENT_REGISTRY, f"T{times}")
        assert registry is not None
        assert acknowledged <= registry.total_spawned <= acknowledged + 1
        record(opened, updated(task=f"T{times}", agent="a0"))
    assert is_sound(open_at(place))


def test_the_wait_for_the_lock_has_a_limit(opened: WorkspaceStore, place: str) -> None:
    record(opened, spawned())
    with opened.change() as change:
        assert change.view(GLOBAL_REGISTRY) is not None
        with pytest.raises(StoreUnavailable), open_at(place, 0.2).change() as other:
            other.view(GLOBAL_REGISTRY)
        with pytest.raises(StoreUnavailable), open_at(place).change(0.1) as other:
            other.view(GLOBAL_REGISTRY)
        change.append(updated())
    assert len(recorded(open_at(place))) == 2


def test_threads_that_share_a_store_wait_for_each_other(opened: WorkspaceStore) -> None:
    def work(name: str) -> None:
        for number in range(10):
            record(opened, spawned(task=name, agent=f"a{number}"))

    threads = [threading.Thread(target=work, args=(f"T{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(recorded(opened)) == 40
    assert is_sound(opened)


def test_a_forked_child_leaves_the_parent_its_store(opened: WorkspaceStore) -> None:
    record(opened, spawned())
    pid = os.fork()
    if not pid:
        try:
            record(opened, updated(message="child"))
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    record(opened, updated(message="parent"))
    assert len(recorded(opened)) == 3
    assert is_sound(opened)


def test_a_bell_tells_that_the_log_has_grown(opened: WorkspaceStore, place: str) -> None:
    from guard.system.file_events import News

    record(opened, spawned())
    with News([], log=open_at(place).bell()) as news:
        assert not news.wait(0)
        record(opened, updated())
        assert news.wait(120)


def test_leases_are_held_renewed_and_ended(opened: WorkspaceStore, place: str) -> None:
    other = open_at(place)
    assert not other.has_lease("x")
    opened.hold_lease("x", 3600)
    opened.hold_lease("x", 0)
    assert other.has_lease("x")
    other.end_lease("x")
    other.end_lease("x")
    assert not opened.has_lease("x")
    opened.hold_lease("y", 0)
    assert not opened.has_lease("y")


def test_a_log_goes_to_the_other_kind_of_store_and_back(
    place: str, opened: WorkspaceStore, tmp_path: Path
) -> None:
    source = open_at(str(tmp_path / "source"))
    record(source, spawned(), updated())
    record(source, run_started(), iteration_started())
    lines = [record.line for record in source.records()]
    assert opened.import_lines(lines) == len(lines)
    assert [record.line for record in opened.records()] == lines
    assert is_sound(open_at(place))
    record(opened, updated("completed"))
    back = open_at(str(tmp_path / "back"))
    back.import_lines(record.line for record in opened.records())
    assert list(back.records()) == list(opened.records())
    assert is_sound(back)
    with pytest.raises(Refused):
        opened.import_lines(lines)


def test_a_rebuild_of_sound_views_writes_nothing(opened: WorkspaceStore) -> None:
    record(opened, spawned(), run_started())
    report = opened.rebuild()
    assert (report.written, report.set_aside) == ((), ())
    assert len(report.unchanged) == 3
