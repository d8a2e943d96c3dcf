"""What is not believed: shortened logs, emptied and stray segments, old and foreign views, replaced locks."""

import os
import shutil
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from guard.core.agents.events import AgentSpawned
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.log.events import BaseEvent
from guard.errors import StateProblem, StoreUnavailable
from guard.store.file_store import FileStore
from tests.support import run
from tests.support.events import spawned, updated


def record(store: FileStore, *events: BaseEvent) -> None:
    with store.change() as change:
        change.append(*events)


def cut_log(workspace: Path, lines: int) -> None:
    log = workspace / "events.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:lines]))


def many_segments(workspace: Path, tasks: int = 4) -> FileStore:
    """A log of several segments, in which the first task stands only in the first one."""
    store = FileStore(workspace, segment_max_bytes=4096)
    for task in range(tasks):
        record(store, spawned(task=f"T{task}"))
        for _ in range(12):
            record(store, updated(task=f"T{task}"))
        record(store, updated("completed", task=f"T{task}"))
    assert len(list(workspace.glob("events.0*.jsonl"))) >= 2
    return store


def test_a_refusal_does_not_disarm_itself(store: FileStore, workspace: Path) -> None:
    record(store, spawned())
    for _ in range(5):
        record(FileStore(workspace), updated())
    cut_log(workspace, 2)
    for _ in range(3):
        with pytest.raises(StateProblem, match="cut off"):
            record(store, updated())
    assert not FileStore(workspace).verify().ok


@pytest.mark.parametrize("name", ["output.d", "rollbacks.d", "workspace.queue", "T9"])
def test_a_pipe_in_place_of_anything_in_the_workspace_is_a_finding(
    name: str, store: FileStore, workspace: Path
) -> None:
    record(store, spawned())
    assert store.verify().ok
    (workspace / name).unlink(missing_ok=True)
    os.mkfifo(workspace / name)
    assert not store.verify().ok, "a run would refuse it"
    assert name in store.verify().findings[0].problem


def test_an_emptied_sealed_segment_is_found_and_salvaged(workspace: Path) -> None:
    many_segments(workspace)
    (workspace / "events.000002.jsonl").write_bytes(b"")
    store = FileStore(workspace, segment_max_bytes=4096)
    (finding, *_) = store.verify().findings
    assert finding.file == "events.000002.jsonl"
    store.salvage(datetime.now(UTC), "salvage-1")
    assert store.verify().ok, store.verify().findings
    record(store, spawned("new", task="T9"))
    assert FileStore(workspace).verify().ok


@pytest.mark.parametrize(
    "name", ["events.000009.jsonl", "events.1.jsonl", "events.0000010.jsonl", "events.².jsonl"]
)
def test_a_stray_file_named_like_a_segment_costs_nothing(workspace: Path, name: str) -> None:
    many_segments(workspace)
    before = [entry.event for entry in FileStore(workspace).entries()]
    (workspace / name).touch()
    store = FileStore(workspace)
    assert [entry.event for entry in store.entries()] == before
    assert [finding.file for finding in store.verify().findings] in ([], [name])
    store.salvage(datetime.now(UTC), "salvage-1")
    assert [entry.event for entry in store.entries()][: len(before)] == before
    assert store.verify().ok, store.verify().findings


def test_a_deleted_lock_file_lets_nobody_cut_what_another_wrote(workspace: Path) -> None:
    first, second = FileStore(workspace), FileStore(workspace)
    record(first, spawned())
    with first.change() as change:
        (workspace / "workspace.lock").unlink()
        record(second, updated("completed"))
        with pytest.raises(StoreUnavailable, match="another process wrote"):
            change.append(updated("working"))
    registry = FileStore(workspace).view(AGENT_REGISTRY, "T1")
    assert registry is not None
    assert registry.completed_count == 1
    assert FileStore(workspace).verify().ok


def test_a_time_in_another_zone_is_recorded_in_utc(store: FileStore) -> None:
    there = datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))
    event = AgentSpawned(
        at=there, id="x", task_id="T1", agent_id="a1", incarnation=1, agent_type="builder"
    )
    record(store, event)
    (_, entry) = store.entries()
    assert entry.event.at.isoformat() == "2026-01-31T12:00:00+00:00"


def test_after_a_restart_old_views_of_sealed_segments_are_brought_up_to_date(
    workspace: Path,
) -> None:
    store = many_segments(workspace)
    view = workspace / "T0" / "AGENT_REGISTRY.json"
    current = view.read_bytes()
    elsewhere = workspace.parent / "elsewhere"
    record(FileStore(elsewhere), spawned(task="T0"))
    assert store.view(AGENT_REGISTRY, "T0") is not None
    view.unlink()
    (workspace / "workspace.lock").write_bytes(b"")
    record(FileStore(workspace), updated(task="T3"))
    assert view.read_bytes() == current
    assert FileStore(workspace).verify().ok


def test_an_old_copy_of_a_view_is_not_believed(store: FileStore, workspace: Path) -> None:
    record(store, spawned())
    view = workspace / "T1" / "AGENT_REGISTRY.json"
    old = view.read_bytes()
    record(store, updated("completed"))
    current = view.read_bytes()
    view.write_bytes(old)
    registry = FileStore(workspace).view(AGENT_REGISTRY, "T1")
    assert registry is not None
    assert registry.active_count == 0
    record(FileStore(workspace), updated("working"))
    task = FileStore(workspace).view(AGENT_REGISTRY, "T1")
    overall = FileStore(workspace).view(GLOBAL_REGISTRY)
    assert task is not None
    assert overall is not None
    assert task.active_count == overall.active_agents == 0
    assert view.read_bytes() not in (old, current)
    assert FileStore(workspace).verify().ok


def test_a_copy_of_another_tasks_view_is_not_believed(store: FileStore, workspace: Path) -> None:
    record(store, spawned(task="A"))
    shutil.copytree(workspace / "A", workspace / "B")
    assert FileStore(workspace).view(AGENT_REGISTRY, "B") is None
    assert "B/AGENT_REGISTRY.json" in {f.file for f in FileStore(workspace).verify().findings}
    assert FileStore(workspace).rebuild().set_aside == ("B/AGENT_REGISTRY.json.damaged-1",)
    assert FileStore(workspace).verify().ok


def test_a_task_without_its_view_file_is_still_listed(workspace: Path) -> None:
    store = many_segments(workspace)
    for task in ("T0", "T3"):
        shutil.rmtree(workspace / task)
    assert list(store.views(AGENT_REGISTRY)) == ["T0", "T1", "T2", "T3"]


def test_a_deleted_log_is_not_an_empty_one(store: FileStore, workspace: Path) -> None:
    record(store, spawned())
    (workspace / "events.jsonl").unlink()
    shutil.rmtree(workspace / "T1")
    for words in (["log"], ["agent", "list"], ["agent", "list", "--task", "T1"]):
        assert run("--workspace", workspace, *words).code == 5, words
    assert run("--workspace", workspace, "verify").code == 1


def test_a_child_that_is_forked_during_a_change_does_not_keep_the_lock(workspace: Path) -> None:
    with FileStore(workspace).change() as change:
        child = os.fork()
        if child == 0:
            time.sleep(300)
            os._exit(0)
        change.append(spawned())
    try:
        record(FileStore(workspace, lock_timeout_seconds=240), updated())
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
