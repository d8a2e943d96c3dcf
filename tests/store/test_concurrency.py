"""Many processes on one workspace: nothing lost, nothing torn, and every reader sees whole files."""

import fcntl
import json
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import pytest

from guard.agents import registry as agents
from guard.core.agents.events import AgentUpdated
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.log.table import view_kinds
from guard.core.log.view import unseal
from guard.errors import StoreUnavailable
from guard.store.file_store import FileStore
from tests.support import run
from tests.support.events import MOMENT, updated
from tests.support.series import times
from tests.support.sessions import until
from tests.support.writer import AGENTS, populate, start

pytestmark = pytest.mark.long

Writer = subprocess.Popen[str]
_DEADLINE = 240
_UPDATES = times(50, full=200)


def _messages(store: FileStore) -> list[str]:
    events = (entry.event for entry in store.entries())
    return [event.message for event in events if isinstance(event, AgentUpdated)]


def _acknowledged(folder: Path) -> set[str]:
    return {line for file in folder.glob("*.ack") for line in file.read_text().splitlines()}


def _have_all_written(folder: Path, life: int, count: int) -> bool:
    """Whether each writer of this life has acknowledged something, and all of them together more than ten writes."""
    files = list(folder.glob(f"{life}-*.ack"))
    return len(files) == count and sum(len(file.read_text().splitlines()) for file in files) > 10


def _read_every_view_file(workspace: Path) -> int:
    """How many files there were; each must be whole."""
    count = 0
    for file in workspace.glob("*/*.json"):
        path = str(file.relative_to(workspace))
        kind = next(kind for kind in view_kinds() if kind.key_in(path) is not None)
        data = file.read_bytes()
        json.loads(data)
        unseal(data, kind.document)
        count += 1
    return count


def _finished(writers: Iterable[Writer]) -> bool:
    return all(writer.poll() is not None for writer in writers)


def _assert_well(writers: Iterable[Writer]) -> None:
    for writer in writers:
        _out, err = writer.communicate(timeout=_DEADLINE)
        assert (writer.returncode, err) == (0, "")


@contextmanager
def _ended(*writers: Writer) -> Iterator[None]:
    """Whatever happens, none of them outlives the test."""
    try:
        yield
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


def _wait_until_somebody_waits(workspace: Path) -> None:
    with (workspace / "workspace.queue").open("rb") as queue:
        until(lambda: not _is_free(queue.fileno()), _DEADLINE)


def _is_free(queue: int) -> bool:
    try:
        fcntl.flock(queue, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(queue, fcntl.LOCK_UN)
    return True


@pytest.mark.series
def test_sixteen_processes_lose_nothing_and_readers_see_whole_files(
    workspace: Path, store: FileStore, tmp_path: Path
) -> None:
    populate(store)
    writers = [start(workspace, f"w{n}", _UPDATES, tmp_path / f"{n}.ack") for n in range(16)]
    files, rounds = 0, 0
    with _ended(*writers):
        # On a busy machine the writers may have finished before this process has read often.
        while rounds <= 20 or not _finished(writers):
            files += _read_every_view_file(workspace)
            task, _agent = AGENTS[rounds % len(AGENTS)]
            assert store.view(AGENT_REGISTRY, task)
            overall = store.view(GLOBAL_REGISTRY)
            assert overall
            assert overall.active_agents == len(AGENTS)
            rounds += 1
            sleep(0.003)
        _assert_well(writers)

    assert files > 20
    messages = _messages(store)
    assert len(messages) == 16 * _UPDATES
    assert set(messages) == {f"w{n}-{number}" for n in range(16) for number in range(_UPDATES)}
    report = store.verify()
    assert report.ok, report.findings
    assert (report.behind, report.torn_bytes) == ((), 0)
    assert (
        report.records == 1 + 2 * len(AGENTS) + 16 * _UPDATES
    )  # Each is at work for the first time once.
    assert _updates_by_agent(store) == _updates_in_the_log(store)


def test_a_reader_never_sees_half_of_a_view(
    workspace: Path, store: FileStore, tmp_path: Path
) -> None:
    """One writer alone has nobody to leave the views to: it writes them at every update."""
    populate(store)
    file, seen = workspace / "registry/GLOBAL_REGISTRY.json", set[bytes]()
    writer = start(workspace, "alone", 10**6, tmp_path / "alone.ack")
    with _ended(writer):
        while len(seen) <= 100:
            seen.add(file.read_bytes())
            assert writer.poll() is None
    for data in seen:
        unseal(data, GLOBAL_REGISTRY.document)


def _updates_by_agent(store: FileStore) -> Counter[tuple[str, str]]:
    registry = store.view(GLOBAL_REGISTRY)
    assert registry
    return Counter({(agent.task_id, agent.agent_id): agent.updates for agent in registry.agents})


def _updates_in_the_log(store: FileStore) -> Counter[tuple[str, str]]:
    events = (entry.event for entry in store.entries())
    return Counter(
        (event.task_id, event.agent_id) for event in events if isinstance(event, AgentUpdated)
    )


def test_writers_killed_at_random_moments_lose_nothing_acknowledged(
    workspace: Path, store: FileStore, tmp_path: Path
) -> None:
    populate(store)
    chance = random.Random(20260131)
    for life in range(2):
        writers = [
            start(workspace, f"life{life}-{n}", 10**6, tmp_path / f"{life}-{n}.ack")
            for n in range(8)
        ]
        with _ended(*writers):
            until(partial(_have_all_written, tmp_path, life, len(writers)), _DEADLINE)
            assert not any(writer.poll() for writer in writers)
            for writer in writers:
                sleep(chance.uniform(0.01, 0.2))
                writer.send_signal(signal.SIGKILL)
                writer.wait()

    acknowledged = _acknowledged(tmp_path)
    assert len(acknowledged) > 20
    report = store.verify()
    assert report.ok, report.findings
    messages = _messages(FileStore(workspace))
    assert acknowledged <= set(messages)
    assert len(messages) == len(set(messages))
    assert len(messages) <= len(acknowledged) + 16

    said = ["--status", "completed", "--message", "after"]
    words = ["agent", "update", "--task", "T0", "--agent", "a0"]
    assert run("--workspace", workspace, *words, *said).code == 0
    report = store.verify()
    assert (report.ok, report.behind, report.torn_bytes) == (True, (), 0)


def test_a_lock_that_is_not_let_go_is_reported_with_its_holder(
    workspace: Path, store: FileStore, tmp_path: Path
) -> None:
    populate(store)
    before = (workspace / "events.jsonl").read_bytes()
    holder = start(workspace, "holder", 0, tmp_path / "none")
    with _ended(holder):
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        hasty, begin = FileStore(workspace, lock_timeout_seconds=0.3), monotonic()
        with pytest.raises(StoreUnavailable, match=rf"\bpid {holder.pid}\b"), hasty.change():
            pass
        assert 0.3 <= monotonic() - begin < _DEADLINE

        said = ["agent", "update", "--task", "T0", "--agent", "a0", "--status", "working"]
        limit = {"GUARD_STORE__LOCK_TIMEOUT_SECONDS": "0.3"}
        result = run("--workspace", workspace, *said, env=limit)
        assert result.code == 6
        assert f"pid {holder.pid} " in result.err
        assert [line.split(":")[0] for line in result.err.splitlines()] == ["guard", "hint"]
        assert store.view(AGENT_REGISTRY, "T0")
        assert (workspace / "events.jsonl").read_bytes() == before

    assert run("--workspace", workspace, *said, env=limit).code == 0


@contextmanager
def _left_to_one_that_waits(workspace: Path, store: FileStore, folder: Path) -> Iterator[Writer]:
    """A writer that is stopped while it waits for the lock, with views that are left to it."""
    populate(store)
    with store.change() as change:
        waiting = start(workspace, "waiting", 1, folder / "1.ack")
        _wait_until_somebody_waits(workspace)
        waiting.send_signal(signal.SIGSTOP)
        change.append(updated(agent="a0", task="T0", message="left"))
    with _ended(waiting):
        yield waiting


def test_views_are_left_to_who_waits_and_written_in_the_end(
    workspace: Path, store: FileStore, tmp_path: Path
) -> None:
    with _left_to_one_that_waits(workspace, store, tmp_path) as waiting:
        report = store.verify()
        assert report.ok, report.findings
        assert report.behind == ("T0/AGENT_REGISTRY.json", "registry/GLOBAL_REGISTRY.json")
        registry = store.view(AGENT_REGISTRY, "T0")
        assert registry
        assert [agent.message for agent in registry.agents if agent.agent_id == "a0"] == ["left"]

        waiting.send_signal(signal.SIGCONT)
        _assert_well([waiting])
    report = store.verify()
    assert (report.ok, report.behind) == (True, ())
    assert _messages(store) == ["left", "waiting-0"]


def test_views_left_to_a_process_that_dies_are_written_by_the_next(
    workspace: Path, store: FileStore, tmp_path: Path
) -> None:
    with _left_to_one_that_waits(workspace, store, tmp_path):
        pass
    assert store.verify().behind
    next_one = FileStore(workspace)
    agents.update(next_one, MOMENT, agents.AgentUpdate("T1", "a1", "working"))
    report = next_one.verify()
    assert (report.ok, report.behind) == (True, ())


def test_rotation_among_eight_processes(workspace: Path, store: FileStore, tmp_path: Path) -> None:
    populate(store)
    writers = [
        start(workspace, f"w{n}", 100, tmp_path / f"{n}.ack", segment_max_bytes=8192)
        for n in range(8)
    ]
    with _ended(*writers):
        while not _finished(writers):
            registry = store.view(GLOBAL_REGISTRY)
            assert registry
            assert registry.active_agents == len(AGENTS)
            _read_every_view_file(workspace)
            sleep(0.003)
        _assert_well(writers)
    assert set(_messages(store)) == _acknowledged(tmp_path)
    assert len(_messages(store)) == 8 * 100
    report = store.verify()
    assert report.ok, report.findings
    assert (report.behind, report.torn_bytes) == ((), 0)
    assert report.segments > 20
