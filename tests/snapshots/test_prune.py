"""Pruning for real: what must stay is whole afterwards, whoever else is at work and whenever it is killed."""

import fcntl
import os
import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from guard.core.rescue.settings import RescueSettings
from guard.core.snapshots.retention import due_ids
from guard.errors import StoreUnavailable
from guard.snapshots import prune as retention
from guard.snapshots.inventory import open_shelf
from guard.snapshots.prune import PruneResult, prune, prune_if_worth_it
from tests.rescue.states import start
from tests.support import ROOT, TIME_LIMIT, git, write
from tests.support.rescues import NOW, contents, recovered, take_snapshot
from tests.support.sessions import until
from tests.support.shelves import hold_unpromoted, keep, lose, refs, shadow_git

ONE = RescueSettings(keep_snapshots=1, keep_days=0)


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def pruned(workspace: Path, keeping: RescueSettings = ONE) -> PruneResult:
    return prune(workspace, os.environ, keeping, now=NOW, time_limit=TIME_LIMIT)


def packs(workspace: Path) -> int:
    return len(list((workspace / "shadow.git/objects/pack").glob("*.pack")))


def ids(workspace: Path) -> list[str]:
    with open_shelf(workspace, os.environ, time_limit=TIME_LIMIT) as shelf:
        return [entry.id for entry in shelf.inventory().entries]


def several(repository: Path, workspace: Path, days: range) -> list[str]:
    """A snapshot a day, each with something of its own in it."""
    made = []
    for ago in days:
        write(repository / "big.bin", random.Random(ago).randbytes(50_000))
        made.append(keep(repository, workspace, ago))
    return made


def test_what_is_due_goes_with_its_space_and_the_rest_is_sound(
    repository: Path, workspace: Path
) -> None:
    made = several(repository, workspace, range(6, 0, -1))
    held = made[0]
    hold_unpromoted(workspace, held)
    kept = take_snapshot(repository, workspace)
    gone = pruned(workspace, RescueSettings(keep_snapshots=3, keep_days=0))
    assert gone.ids == tuple(made[1:4])
    assert gone.freed_bytes > 3 * 50_000
    assert gone.left is None
    assert ids(workspace) == [held, *made[4:], kept.id]
    assert packs(workspace) == 1
    shadow_git(workspace, "fsck", "--strict", "--full")
    assert recovered(kept, workspace.parent / "back") == contents(repository)
    assert pruned(workspace, RescueSettings(keep_snapshots=3, keep_days=0)) == PruneResult()


def test_the_newest_of_each_work_tree_stays(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    other = keep(tmp_path / "linked", workspace, 900)
    made = several(repository, workspace, range(3, 0, -1))
    assert pruned(workspace).ids == tuple(made[:2])
    assert set(ids(workspace)) == {other, made[2]}


def test_one_that_cannot_be_read_stays_and_so_does_all_that_it_may_need(
    repository: Path, workspace: Path
) -> None:
    first, second, _third = several(repository, workspace, range(3, 0, -1))
    lose(workspace, f"refs/guard/snapshot/{first}:manifest.json")
    with pytest.raises(StoreUnavailable, match="cannot prune"):
        pruned(workspace)
    assert f"refs/guard/snapshot/{first}" in refs(workspace)
    assert f"refs/guard/snapshot/{second}" not in refs(workspace)
    shadow_git(workspace, "cat-file", "-e", f"refs/guard/snapshot/{first}:worktree/big.bin")


def test_objects_of_a_broken_ref_are_not_thrown_away(repository: Path, workspace: Path) -> None:
    first, _second, _third = several(repository, workspace, range(3, 0, -1))
    commit = shadow_git(workspace, "rev-parse", f"refs/guard/snapshot/{first}")
    (workspace / f"shadow.git/refs/guard/snapshot/{first}").write_bytes(b"")
    assert prune_if_worth_it(workspace, os.environ, ONE, now=NOW, time_limit=TIME_LIMIT).left
    shadow_git(workspace, "cat-file", "-e", f"{commit}:worktree/big.bin")


def test_a_snapshot_that_becomes_somebodys_only_copy_meanwhile_stays(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a rescue marks it between the look at the list and the deletion."""
    first, second = several(repository, workspace, range(2, 0, -1))
    decide = due_ids

    def marked(*words: object, **options: object) -> tuple[str, ...]:
        hold_unpromoted(workspace, first)
        return decide(*words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(retention, "due_ids", marked)
    with pytest.raises(StoreUnavailable):
        pruned(workspace)
    assert ids(workspace) == [first, second]


def test_while_somebody_writes_the_space_is_left_for_the_next_time(
    repository: Path, workspace: Path
) -> None:
    made = several(repository, workspace, range(3, 0, -1))
    with open(workspace / "shadow.git/guard.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        gone = pruned(workspace)
    assert gone.ids == tuple(made[:2])
    assert gone.left
    assert (gone.freed_bytes, packs(workspace)) == (0, 3)
    assert pruned(workspace).freed_bytes > 50_000
    assert packs(workspace) == 1


def test_many_packs_become_few_and_nothing_goes(repository: Path, workspace: Path) -> None:
    for number in range(52):
        write(repository / "new.txt", f"{number}\n")
        keep(repository, workspace, 52 - number)
    assert pruned(workspace, RescueSettings(keep_snapshots=100, keep_days=0)).ids == ()
    assert packs(workspace) < 10
    assert len(ids(workspace)) == 52
    shadow_git(workspace, "fsck", "--strict", "--full")


def test_unasked_it_waits_until_it_is_worth_it(repository: Path, workspace: Path) -> None:
    made = several(repository, workspace, range(23, 0, -1))
    for expected in (made[:3], [], made[3:5]):
        found = prune_if_worth_it(
            workspace,
            os.environ,
            RescueSettings(keep_snapshots=20, keep_days=0),
            now=NOW,
            time_limit=TIME_LIMIT,
        )
        assert found.ids == tuple(expected)
        keep(repository, workspace)


def test_trouble_does_not_spoil_the_snapshot_before_it(workspace: Path) -> None:
    (workspace / "shadow.git").mkdir(parents=True)
    workspace.chmod(0o700)
    (workspace / "shadow.git").chmod(0o700)
    found = prune_if_worth_it(workspace, os.environ, ONE, now=NOW, time_limit=TIME_LIMIT)
    assert (found.ids, found.freed_bytes) == ((), 0)
    assert found.left
    assert "cannot read the snapshots in " in found.left


def test_without_a_shadow_there_is_nothing_to_do(workspace: Path) -> None:
    assert pruned(workspace) == PruneResult()
    assert not workspace.exists()


CHILD = """
import os, sys
from pathlib import Path
from guard.core.rescue.settings import RescueSettings
from guard.snapshots.prune import prune
from tests.support.rescues import NOW
prune(Path(sys.argv[1]), os.environ, RescueSettings(keep_snapshots=2, keep_days=0), now=NOW, time_limit=120)
"""


def started_pruning(workspace: Path) -> subprocess.Popen[bytes]:
    """A guard that prunes, once it has begun to delete."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(workspace)], env=environ, cwd=ROOT)
    while not (workspace / "shadow.git/guard.owed").exists() and child.poll() is None:
        time.sleep(0.001)
    return child


@pytest.mark.long
def test_killed_at_any_moment_what_stays_is_whole(repository: Path, workspace: Path) -> None:
    moments = random.Random(4)
    for _ in range(10):
        several(repository, workspace, range(4, 0, -1))
        kept = take_snapshot(repository, workspace)
        child = started_pruning(workspace)
        time.sleep(moments.uniform(0, 0.08))
        child.kill()
        child.wait()
        assert kept.id in ids(workspace)
        shadow_git(workspace, "fsck", "--full", "--connectivity-only")
    until(
        lambda: (
            packs(workspace) == 1
            or bool(pruned(workspace, RescueSettings(keep_snapshots=2, keep_days=0)))
        )
    )
    assert len(ids(workspace)) == 2
    shadow_git(workspace, "fsck", "--strict", "--full")
    assert recovered(kept, workspace.parent / "back") == contents(repository)


TAKING = """
import sys
from pathlib import Path
from tests.support.rescues import take_snapshot
take_snapshot(Path(sys.argv[2]), Path(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("script", "word"), [(CHILD, "repack"), (TAKING, "fast-import")], ids=["pruning", "taking"]
)
def test_git_holds_the_lock_after_its_guard_was_killed(
    script: str, word: str, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    several(repository, workspace, range(4, 0, -1))
    waits = f"touch {tmp_path}/begun; while ! [ -e {tmp_path}/go ]; do sleep 0.05; done"
    slow = f'case "$*" in *{word}*) {waits};; esac'
    write(tmp_path / "bin/git", f'#!/bin/sh\n{slow}\nexec {shutil.which("git")} "$@"\n')
    (tmp_path / "bin/git").chmod(0o755)
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    environ["PATH"] = f"{tmp_path / 'bin'}:{environ['PATH']}"
    words = [sys.executable, "-c", script, str(workspace), str(repository)]
    child = subprocess.Popen(words, env=environ, cwd=ROOT)
    until(lambda: (tmp_path / "begun").exists())
    child.kill()
    child.wait()
    with open(workspace / "shadow.git/guard.lock", "rb") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (tmp_path / "go").touch()
        fcntl.flock(lock, fcntl.LOCK_EX)
    shadow_git(workspace, "fsck", "--full")


@pytest.mark.long
def test_snapshots_taken_while_others_are_pruned_are_whole(
    repository: Path, workspace: Path
) -> None:
    several(repository, workspace, range(4, 0, -1))

    def taking(number: int) -> str:
        return keep(repository, workspace, -number)

    def pruning(_: int) -> PruneResult:
        return prune_if_worth_it(
            workspace, os.environ, ONE, now=NOW + timedelta(days=9), time_limit=TIME_LIMIT
        )

    with ThreadPoolExecutor(3) as pool:
        taken = [pool.submit(taking, number) for number in range(12)]
        tidied = [pool.submit(pruning, number) for number in range(12)]
        made = {task.result() for task in taken}
        gone = {name for task in tidied for name in task.result().ids}
    assert made - gone <= set(ids(workspace))
    shadow_git(workspace, "fsck", "--strict", "--full")
