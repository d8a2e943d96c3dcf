"""Machines that share a workspace: keys of their own, the state of older guards, leases of guards elsewhere."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from guard import breaker
from guard.breaker import BreakerKey, Outcome
from guard.context.invocation import Invocation
from guard.context.lease import Lease, find_process, is_running, lease_name
from guard.context.workspace import worktree_key_of_path
from guard.core.base.host import Host
from guard.core.iteration.baseline import BASELINE
from guard.core.iteration.facts import Process
from guard.core.iteration.run import RUN
from guard.core.log.adoption import WorktreeAdopted
from guard.errors import Refused
from guard.iteration.begin import begin
from guard.store.file_store import FileStore
from guard.system.host import machine_id, read_host
from tests.support import commit, run


@pytest.fixture(autouse=True)
def chosen(repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace that every machine of the test shares."""
    commit(repository)
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))


def on(machine: str) -> Invocation:
    return Invocation(environ={**os.environ, "GUARD_MACHINE": machine})


@contextmanager
def older_guard() -> Iterator[None]:
    """Guard as it was when a work tree's key was its path alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("guard.context.workspace.machine_id", lambda _environ: None)
        yield


def test_two_machines_with_the_same_path_share_no_baseline() -> None:
    first, second = on("a"), on("b")
    assert first.worktree_key != second.worktree_key
    begin(first)
    assert run("check", "--format", "json", env={"GUARD_MACHINE": "b"}).code == 4
    assert second.store.view(BASELINE, second.worktree_key) is None
    begin(second)
    assert set(second.store.views(BASELINE)) == {first.worktree_key, second.worktree_key}


def test_two_machines_with_the_same_path_share_no_breaker() -> None:
    assert run("breaker", "trip", "--reason", "test", env={"GUARD_MACHINE": "a"}).code == 0
    assert run("breaker", "allow", env={"GUARD_MACHINE": "b"}).code == 0
    assert run("breaker", "allow", env={"GUARD_MACHINE": "a"}).code == 20


def test_the_name_of_a_machine_may_be_any_text(repository: Path) -> None:
    keys = {on(name).worktree_key for name in ("a", "é\n", "../x", "a" * 5000, "\udc80")}
    assert len(keys) == 5
    assert all(key.startswith(f"{repository.name}-") for key in keys)


def test_state_of_an_older_guard_goes_on_under_the_key_of_the_machine(repository: Path) -> None:
    with older_guard():
        before = Invocation()
        begun = begin(before)
        with before.writable_store.change() as change:
            breaker.record(change, BreakerKey.of(before), Outcome("timeout", "no_commits"))
    assert before.worktree_key == worktree_key_of_path(repository)
    now = Invocation()
    assert now.worktree_key != before.worktree_key
    found = now.store.view(BASELINE, now.worktree_key)
    assert found is not None
    assert found.baseline == begun.baseline.baseline
    assert breaker.load(now.store, now.worktree_key).streak == 1
    commit(repository, "work.txt")
    assert run("check").code == 0
    report = now.store.verify()
    assert report.ok, report.findings


def test_adopted_state_survives_a_loss_of_all_views(repository: Path, workspace: Path) -> None:
    with older_guard():
        begun = begin(Invocation())
    key = Invocation().worktree_key
    assert Invocation().store.view(RUN, key) is not None
    folder = workspace / "worktrees.d" / key
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in folder.iterdir():
        path.unlink()
    found = Invocation().store.view(BASELINE, key)
    assert found is not None
    assert found.baseline == begun.baseline.baseline
    FileStore(workspace).rebuild()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_state_of_an_older_guard_is_adopted_by_one_machine_only() -> None:
    with older_guard():
        begin(Invocation())
    first, second = on("a"), on("b")
    assert first.store.view(BASELINE, first.worktree_key) is not None
    assert second.store.view(BASELINE, second.worktree_key) is None
    found = [e.event for e in second.store.entries() if isinstance(e.event, WorktreeAdopted)]
    assert [event.machine for event in found] == [machine_id({"GUARD_MACHINE": "a"})]


def test_the_key_stays_while_an_older_guard_watches_over_an_iteration() -> None:
    own = find_process(os.getpid())
    assert own is not None
    with older_guard():
        before = Invocation()
        begin(before, Process(pid=own.pid, start=own.start))
    assert Invocation().worktree_key == before.worktree_key


def test_older_state_that_cannot_be_moved_is_read_where_it_is(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with older_guard():
        before = Invocation()
        begin(before)
    monkeypatch.setenv("GUARD_STORE__LOCK_TIMEOUT_SECONDS", "0")
    with FileStore(workspace).change():
        assert Invocation().worktree_key == before.worktree_key


def test_a_check_of_an_older_guard_is_found_by_replay(repository: Path) -> None:
    with older_guard():
        guard = Invocation()
        begin(guard)
        commit(repository, "work.txt")
        from guard.check.verdict import check
        from guard.iteration.current import CheckTerms

        check(guard, CheckTerms())
    assert run("show", "1").code == 0
    assert run("judge", "--replay", "1").code == 0


ELSEWHERE = Host(name="other", machine="b" * 16, boot_id="another", pid_namespace="pid:[1]")


def foreign(pid: int = 4242) -> Process:
    return Process(pid=pid, start="77@another", host=ELSEWHERE)


def test_a_guard_on_another_machine_lives_as_long_as_its_lease(workspace: Path) -> None:
    store, process = FileStore(workspace), foreign()
    assert not is_running(process, store)
    store.hold_lease(lease_name(process), 3600)
    assert is_running(process, FileStore(workspace))
    store.end_lease(lease_name(process))
    assert not is_running(process, store)


def test_an_old_lease_is_over_by_the_clock_of_the_file_system(workspace: Path) -> None:
    store, process = FileStore(workspace), foreign()
    store.hold_lease(lease_name(process), 60)
    path = workspace / "leases.d" / lease_name(process)
    age = path.stat().st_mtime - 61
    os.utime(path, (age, age))
    assert not is_running(process, store)


def test_a_shorter_renewal_does_not_cut_a_lease(workspace: Path) -> None:
    store = FileStore(workspace)
    store.hold_lease("x", 3600)
    store.hold_lease("x", 1)
    path = workspace / "leases.d" / "x"
    age = path.stat().st_mtime - 60
    os.utime(path, (age, age))
    assert store.has_lease("x")


def test_a_process_of_this_machine_needs_no_lease(workspace: Path) -> None:
    own = find_process(os.getpid())
    assert own is not None
    assert own.host == read_host()
    assert is_running(own, FileStore(workspace))


def test_a_process_of_another_container_is_not_looked_for_here(workspace: Path) -> None:
    # The number and the start are those of a process that runs here: in another namespace they mean nothing.
    own = find_process(os.getpid())
    assert own is not None
    assert own.host is not None
    other = own.model_copy(
        update={"host": own.host.model_copy(update={"pid_namespace": "pid:[1]"})}
    )
    assert not is_running(other, FileStore(workspace))


def test_no_iteration_begins_beside_a_living_guard_elsewhere() -> None:
    guard, watch = Invocation(), foreign()
    begin(guard, watch)
    guard.store.hold_lease(lease_name(watch), 3600)
    with pytest.raises(Refused, match="running already"):
        begin(Invocation())
    guard.store.end_lease(lease_name(watch))
    begin(Invocation())


def test_the_trial_of_a_living_guard_elsewhere_is_not_taken_over() -> None:
    guard, holder = Invocation(), foreign()
    breaker.trip(guard, "test")
    place = BreakerKey.of(guard)
    with guard.store.change() as change:
        from guard.core.breaker import allow as core_allow

        change.append(core_allow.claim(place.case(change), "cooldown_over", holder))
    guard.store.hold_lease(lease_name(holder), 3600)
    assert breaker.allow(guard.store, place, holder=None).reason == "trial_taken"
    guard.store.end_lease(lease_name(holder))
    assert breaker.allow(guard.store, place, holder=None).reason == "holder_gone"


def test_a_lease_is_renewed_while_an_agent_runs(repository: Path, workspace: Path) -> None:
    code = "import os; print(os.listdir(os.environ['LEASES']))"
    done = run(
        "run",
        "--",
        sys.executable,
        "-c",
        code,
        env={"LEASES": str(workspace / "leases.d"), "GUARD_FLEET__LEASE_SECONDS": "5"},
    )
    names = [name for name in done.out.replace("'", " ").split() if len(name) == 32]
    assert len(names) == 1, (done.out, done.err)
    assert not (workspace / "leases.d" / names[0]).exists()


def test_a_lease_is_renewed_only_when_a_third_of_it_is_over(workspace: Path) -> None:
    lease = Lease(FileStore(workspace), 3600)
    lease.renew()
    (held,) = [path for path in (workspace / "leases.d").iterdir() if len(path.name) == 32]
    held.unlink()
    lease.renew()
    assert not held.exists()


@pytest.mark.parametrize("times", [1, 8])
def test_a_machine_without_an_id_keeps_one(home: Path, times: int) -> None:
    script = (
        "import guard.system.host as host; host._system_id = lambda: None; print(host.machine_id())"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(times)
    ]
    said = {process.communicate()[0] for process in started}
    again = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert said == {again.stdout}
    assert len(again.stdout.strip()) == 16
