"""What every store promises: this suite is the contract."""

from pathlib import Path

import pytest

from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.iteration.run import RUN
from guard.core.log.events import BaseEvent, SegmentOpened
from guard.store.file_store import FileStore
from tests.support.events import (
    iteration_ended,
    iteration_started,
    run_started,
    spawned,
    updated,
)


def recorded(store: FileStore) -> list[BaseEvent]:
    return [e.event for e in store.entries() if not isinstance(e.event, SegmentOpened)]


def record(store: FileStore, *events: BaseEvent) -> None:
    with store.change() as change:
        change.append(*events)


def test_an_empty_store_has_nothing(store: FileStore) -> None:
    assert store.view(GLOBAL_REGISTRY) is None
    assert list(store.entries()) == []
    assert list(store.views(AGENT_REGISTRY)) == []
    assert store.verify().ok
    assert not store.path.exists()


def test_events_come_back_in_order_with_their_places(store: FileStore) -> None:
    events: list[BaseEvent] = [spawned(), updated(), run_started()]
    for event in events:
        record(store, event)
    assert recorded(store) == events
    positions = [entry.position for entry in store.entries()]
    assert [position.seq for position in positions] == [1, 2, 3, 4]
    assert [entry.event for entry in store.entries(positions[1])] == events[1:]


def test_another_process_sees_what_was_recorded(store: FileStore, workspace: Path) -> None:
    record(store, spawned(), updated("completed"))
    registry = FileStore(workspace).view(AGENT_REGISTRY, "T1")
    assert registry is not None
    assert (registry.active_count, registry.completed_count) == (0, 1)


def test_a_change_sees_its_own_events(store: FileStore) -> None:
    with store.change() as change:
        assert change.view(AGENT_REGISTRY, "T1") is None
        change.append(spawned())
        registry = change.view(AGENT_REGISTRY, "T1")
        assert registry is not None
        assert registry.active_count == 1
        assert change.fold(AGENT_REGISTRY, "T1").counts().active == 1


def test_a_change_sees_what_another_store_recorded_since(store: FileStore, workspace: Path) -> None:
    record(store, spawned())
    record(FileStore(workspace), updated("completed"))
    with store.change() as change:
        assert change.fold(AGENT_REGISTRY, "T1").counts() == (0, 1, 1)


def test_views_are_kept_apart_by_their_keys(store: FileStore) -> None:
    record(store, spawned(task="T1"), spawned(task="T2"), run_started(worktree="w1"))
    assert list(store.views(AGENT_REGISTRY)) == ["T1", "T2"]
    assert list(store.views(RUN)) == ["w1"]
    first, second = store.view(AGENT_REGISTRY, "T1"), store.view(AGENT_REGISTRY, "T2")
    assert first is not None
    assert second is not None
    assert (first.seq, second.seq) == (2, 3)


def test_an_append_of_nothing_records_nothing(store: FileStore) -> None:
    with store.change() as change:
        assert list(change.append()) == []
    assert list(store.entries()) == []


def append_and_fail(store: FileStore) -> None:
    with store.change() as change:
        change.append(spawned())
        raise RuntimeError


def test_an_error_inside_a_change_keeps_what_was_appended(store: FileStore) -> None:
    with pytest.raises(RuntimeError):
        append_and_fail(store)
    assert len(recorded(store)) == 1
    assert store.verify().ok
    assert store.verify().behind == ()


def test_an_update_touches_only_the_views_that_it_concerns(store: FileStore) -> None:
    record(store, spawned(task="T1"), spawned(task="T2"))
    other = store.path / "T2" / "AGENT_REGISTRY.json"
    before = other.stat().st_mtime_ns, other.read_bytes()
    record(store, updated(task="T1"))
    assert (other.stat().st_mtime_ns, other.read_bytes()) == before


def test_rotation_keeps_every_event_and_every_view(workspace: Path) -> None:
    store = FileStore(workspace, segment_max_bytes=4096)
    events: list[BaseEvent] = [spawned(), run_started(), iteration_started()]
    events += [updated(message=f"step {number}") for number in range(60)]
    events += [iteration_ended(), updated("completed")]
    for event in events:
        record(store, event)
    assert len(list(workspace.glob("events.0*.jsonl"))) >= 4
    fresh = FileStore(workspace, segment_max_bytes=4096)
    assert recorded(fresh) == events
    report = fresh.verify()
    assert report.ok, report.findings
    assert report.segments == len(list(workspace.glob("events*.jsonl")))
    run = fresh.view(RUN, "w1")
    assert run is not None
    assert run.last_iteration is not None


def test_a_view_in_an_old_segment_is_read_without_the_segments(workspace: Path) -> None:
    """The checkpoint vouches for it: even an unreadable old segment is not looked at."""
    store = FileStore(workspace, segment_max_bytes=4096)
    record(store, spawned(task="old"))
    for number in range(60):
        record(store, spawned("b1", task="new") if not number else updated(agent="b1", task="new"))
    for segment in workspace.glob("events.0*.jsonl"):
        segment.write_bytes(b"x" * segment.stat().st_size)
    (workspace / "workspace.lock").write_bytes(b"")
    fresh = FileStore(workspace)
    old = fresh.view(AGENT_REGISTRY, "old")
    assert old is not None
    assert old.active_count == 1
    assert fresh.view(AGENT_REGISTRY, "never") is None


def test_rebuilt_views_are_byte_identical(workspace: Path) -> None:
    store = FileStore(workspace, segment_max_bytes=4096)
    for number in range(40):
        record(store, spawned(f"a{number}", task=f"T{number % 3}"))
        record(store, updated("completed", agent=f"a{number}", task=f"T{number % 3}"))
    record(store, run_started())
    files = [path for path in workspace.rglob("*.json") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    assert len(before) >= 6
    for path in files:
        path.unlink()
    report = FileStore(workspace).rebuild()
    assert {path: path.read_bytes() for path in files} == before
    assert len(report.written) == len(before)
    assert FileStore(workspace).rebuild().written == ()


def test_the_workspace_is_for_its_owner_alone(store: FileStore) -> None:
    record(store, spawned(), run_started())
    modes = {path: path.stat().st_mode & 0o777 for path in store.path.rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert store.path.stat().st_mode & 0o777 == 0o700


def test_guards_own_entries_have_a_dot_or_are_reserved(store: FileStore) -> None:
    record(store, spawned(), run_started())
    own = {path.name for path in store.path.iterdir()} - {"T1"}
    assert {name for name in own if "." not in name} == {"registry"}


@pytest.mark.parametrize("segment", [4096, 2**20])
def test_all_views_of_a_kind_at_once_are_those_that_are_read_one_by_one(
    workspace: Path, segment: int
) -> None:
    store = FileStore(workspace, segment_max_bytes=segment)
    for number in range(40):
        with store.change() as change:
            change.append(spawned(f"a{number}", f"T{number % 7}"))
    (workspace / "T1" / "AGENT_REGISTRY.json").unlink()
    (workspace / "T2" / "AGENT_REGISTRY.json").write_bytes(b"{}")
    one_by_one = {f"T{number}": store.view(AGENT_REGISTRY, f"T{number}") for number in range(7)}
    assert FileStore(workspace).views(AGENT_REGISTRY) == one_by_one
    assert FileStore(workspace / "none").views(AGENT_REGISTRY) == {}
