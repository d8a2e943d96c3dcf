"""What the last snapshot left for the next: damaged, outdated or without its objects, it never makes a wrong one."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from guard.errors import StoreUnavailable
from guard.snapshots import stat_cache as remembered
from guard.snapshots.stat_cache import is_same_file, stat_record
from tests.rescue.states import start
from tests.snapshots.test_take_faults import child
from tests.support import write
from tests.support.changes import edit_unseen, then
from tests.support.rescues import contents, take_snapshot
from tests.support.snapshot_chain import (
    asked,
    read_so_far,
    saved,
    take_next,
)


def memory(workspace: Path) -> tuple[Path, Path, Path]:
    """The file that names the last snapshot, the table of files, and the list of packs."""
    folder = workspace / "shadow.git/guard.memory"
    [table] = folder.glob("*.files")
    return folder / table.stem, table, folder / "packs"


def flip(path: Path, at: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(at * (len(data) - 1))] ^= 1
    path.write_bytes(data)


def become_foreign(path: Path) -> None:
    path.chmod(0o666)


DAMAGE: dict[str, Callable[[Path], object]] = {
    **{f"bit flipped at {at:.0%}": partial(flip, at=at) for at in (0, 0.1, 0.4, 0.6, 0.9, 1)},
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut by a byte": lambda path: os.truncate(path, path.stat().st_size - 1),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "gone": lambda path: path.unlink(),
    "writable by others": become_foreign,
    "a link": then(
        lambda path: path.rename(path.with_name("real")), lambda path: path.symlink_to("real")
    ),
    "a second name": lambda path: os.link(path, path.with_name("second")),
    "a folder": then(lambda path: path.unlink(), lambda path: path.mkdir()),
    "a pipe": then(lambda path: path.unlink(), lambda path: os.mkfifo(path)),
}


@pytest.mark.usefixtures("no_window")
@pytest.mark.parametrize("which", [0, 1, 2], ids=["pointer", "table", "packs"])
def test_a_damaged_memory_is_no_memory(which: int, repository: Path, workspace: Path) -> None:
    start(repository)
    for number, damage in enumerate(DAMAGE.values()):
        take_snapshot(repository, workspace)
        damage(memory(workspace)[which])
        write(repository / "edited.txt", f"{number}\n")
        edit_unseen(repository / "kept.txt")
        kept = take_snapshot(repository, workspace)
        assert kept.whole
        assert saved(workspace, kept) == contents(repository)
        shutil.rmtree(workspace / "shadow.git/guard.memory")


@pytest.mark.usefixtures("no_window")
def test_a_memory_in_another_place_is_not_believed(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    """That of another work tree, with other files of the same names, put in place of ours."""
    start(repository)
    take_snapshot(repository, workspace)
    ours = memory(workspace)
    shutil.copytree(repository, tmp_path / "other", symlinks=True)
    edit_unseen(tmp_path / "other/kept.txt")
    take_snapshot(tmp_path / "other", tmp_path / "elsewhere")
    for mine, theirs in zip(ours, memory(tmp_path / "elsewhere"), strict=True):
        shutil.copy(theirs, mine)
    take_next(repository, workspace)


def packs(workspace: Path) -> list[Path]:
    """From the oldest on."""
    found = (workspace / "shadow.git/objects/pack").glob("*.pack")
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture
def three_packs(repository: Path, workspace: Path) -> list[Path]:
    """A snapshot that has its files in the packs of three."""
    start(repository)
    for number in range(3):
        write(repository / f"{number}/{number}.txt", f"{number}\n")
        take_snapshot(repository, workspace)
    return packs(workspace)


@pytest.mark.usefixtures("no_window")
@pytest.mark.parametrize("gone", [[0], [1], [2], [0, 1, 2]])
def test_objects_that_are_gone_are_written_again(
    gone: list[int], three_packs: list[Path], repository: Path, workspace: Path
) -> None:
    for number in gone:
        for suffix in (".pack", ".idx"):
            three_packs[number].with_suffix(suffix).unlink()
    take_next(repository, workspace)
    take_next(repository, workspace)


@pytest.mark.usefixtures("no_window", "three_packs")
def test_another_work_tree_does_not_cover_up_that_objects_are_gone(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    shutil.copytree(repository, tmp_path / "other", symlinks=True)
    shutil.rmtree(tmp_path / "other/1")
    oldest = packs(workspace)[0]
    for suffix in (".pack", ".idx"):
        oldest.with_suffix(suffix).unlink()
    take_next(tmp_path / "other", workspace)
    take_next(repository, workspace)


@pytest.mark.usefixtures("no_window", "three_packs")
def test_a_snapshot_that_was_pruned_is_not_started_from(repository: Path, workspace: Path) -> None:
    refs = asked(workspace, "for-each-ref", "--format=delete %(refname)")
    asked(workspace, "update-ref", "--stdin", stdin=refs)
    asked(workspace, "repack", "-adq")
    asked(workspace, "prune", "--expire=now")
    take_next(repository, workspace)


@pytest.mark.usefixtures("no_window", "three_packs")
def test_packs_that_were_put_together_do(repository: Path, workspace: Path) -> None:
    asked(workspace, "repack", "-adq")
    write(repository / "large.txt", "large\n" * 1_000_000)
    take_snapshot(repository, workspace)
    asked(workspace, "repack", "-adq")
    begun = read_so_far()
    kept = take_snapshot(repository, workspace)
    assert read_so_far() - begun < 5_000_000
    assert saved(workspace, kept) == contents(repository)


@pytest.mark.usefixtures("no_window")
@pytest.mark.parametrize("number", range(3))
def test_a_pack_that_was_damaged_since_is_an_error_and_never_a_snapshot(
    number: int, three_packs: list[Path], repository: Path, workspace: Path, tmp_path: Path
) -> None:
    known = asked(workspace, "for-each-ref")
    damaged = three_packs[number]
    damaged.chmod(0o600)
    flip(damaged, 0.5)
    with pytest.raises(StoreUnavailable) as error:
        take_snapshot(repository, workspace)
    assert "move it away" in (error.value.hint or "")
    (workspace / "shadow.git").rename(tmp_path / "damaged")
    take_next(repository, workspace)
    assert known


@pytest.mark.usefixtures("no_window")
def test_many_at_once_that_start_from_the_same(repository: Path, workspace: Path) -> None:
    start(repository)
    take_snapshot(repository, workspace)
    for number in range(3):
        write(repository / f"{number}.txt", f"{number}\n")
        with ThreadPoolExecutor(4) as pool:
            every = list(pool.map(lambda _: take_snapshot(repository, workspace), range(6)))
        for kept in every:
            assert saved(workspace, kept) == contents(repository)
    take_next(repository, workspace)
    assert not list((workspace / "shadow.git/guard.memory").glob(".*"))
    asked(workspace, "fsck", "--strict")


KILL = """
import os, signal
from guard.snapshots import {module}
{module}.{name} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("module", "name"), [("take", "remember"), ("stat_cache", "note_verified_packs")]
)
def test_a_kill_before_it_is_remembered(
    module: str, name: str, repository: Path, workspace: Path
) -> None:
    start(repository)
    take_snapshot(repository, workspace)
    write(repository / "new.txt", "new\n")
    victim = child(repository, workspace, KILL.format(module=module, name=name))
    victim.communicate()
    assert victim.returncode == -signal.SIGKILL
    edit_unseen(repository / "new.txt")
    take_next(repository, workspace)


def remembered_first(repository: Path, workspace: Path) -> tuple[Path, Path, remembered.StatCache]:
    """The root, the shadow repository, and what a first snapshot remembers."""
    start(repository)
    take_snapshot(repository, workspace)
    root, shadow = repository.resolve(), workspace / "shadow.git"
    return root, shadow, remembered.recall(shadow, root, 20)


@pytest.mark.usefixtures("no_window")
def test_a_snapshot_that_turns_out_wrong_leaves_no_trace_but_a_right_one(
    repository: Path, workspace: Path
) -> None:
    """The table says of a file that it is what it is not: it is found out when the snapshot is read back."""
    root, shadow, before = remembered_first(repository, workspace)
    before.worktree[b"not/there.txt"] = before.worktree[b"kept.txt"]
    remembered.remember(shadow, root, before, remembered.StatCache())
    take_next(repository, workspace)
    assert len(asked(workspace, "for-each-ref").splitlines()) == 2


def test_a_file_from_the_future_or_of_this_moment_is_always_read(tmp_path: Path) -> None:
    """As when the clock was set back since it was written."""
    status = write(tmp_path / "file", "text\n").stat()
    oid = "00" * 20
    for seconds, known in ((-3600, False), (0, False), (1.9, False), (2.1, True), (3600, True)):
        looked = status.st_ctime_ns + int(seconds * 1e9)
        assert is_same_file(stat_record(status, 5, oid, True, looked), status) is known
        assert not is_same_file(stat_record(status, 5, oid, False, looked), status)


def test_an_inode_without_a_number_is_always_read(tmp_path: Path) -> None:
    found = write(tmp_path / "file", "text\n").stat()
    times = {"st_mtime_ns": found.st_mtime_ns, "st_ctime_ns": found.st_ctime_ns}
    status = os.stat_result((found.st_mode, 0, *found[2:]), times)
    assert not is_same_file(stat_record(status, 5, "00" * 20, True, time.time_ns() * 2), status)


def test_what_changes_in_the_moment_of_the_first_is_in_the_next(
    repository: Path, workspace: Path
) -> None:
    """Without any rest in between, with the same size and time."""
    start(repository)
    for _ in range(4):
        edit_unseen(write(repository / "quick.txt", f"{random.random():.9f}"))
        first = take_snapshot(repository, workspace)
        assert saved(workspace, first) == contents(repository)
        edit_unseen(repository / "quick.txt")
        second = take_snapshot(repository, workspace)
        assert saved(workspace, second) == contents(repository)


@pytest.mark.usefixtures("no_window")
def test_a_table_that_another_snapshot_wrote_meanwhile_is_not_taken_for_ours(
    repository: Path, workspace: Path
) -> None:
    """Of two at once the one found nothing changed, and is the last to note that."""
    root, shadow, before = remembered_first(repository, workspace)
    assert before.commit
    edit_unseen(repository / "kept.txt")
    take_snapshot(repository, workspace)
    remembered.remember(shadow, root, before, before)
    take_next(repository, workspace)


def test_what_was_remembered_long_ago_is_forgotten(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    """A work tree that is gone leaves no table for ever; one that comes back is read as if it were new."""
    start(repository)
    take_snapshot(repository, workspace)
    for path in memory(workspace):
        os.utime(path, (1, 1))
    shutil.copytree(repository, tmp_path / "other", symlinks=True)
    take_snapshot(tmp_path / "other", workspace)
    assert len(list((workspace / "shadow.git/guard.memory").iterdir())) == 3
    take_next(repository, workspace)
    assert len(list((workspace / "shadow.git/guard.memory").iterdir())) == 5
