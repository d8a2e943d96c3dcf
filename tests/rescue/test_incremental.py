"""A snapshot that starts from the one before has every byte that one from nothing has, whatever happened in between."""

import mmap
import os
import random
import shutil
import signal
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from guard.core.rescuing import Snapshot
from guard.errors import StoreUnavailable
from guard.git.locate import find
from guard.rescue import remembered
from guard.rescue.deadline import Deadline
from guard.rescue.limits import Limits
from guard.rescue.project import Project
from guard.rescue.remembered import is_same, record
from guard.rescue.snapshots import ready, take
from tests.rescue.states import STATES, start
from tests.rescue.states_start import identify
from tests.rescue.test_snapshot_faults import WITHOUT_PRIVILEGE, child
from tests.support import commit, git, write
from tests.support.incremental import (
    asked,
    assert_like_a_full_one,
    manifest,
    saved,
    take_next,
    trees,
)
from tests.support.rescuing import BY_HAND, Contents, contents, take_snapshot

Change = tuple[Callable[[Path], object], Callable[[Path], object]]
SETTLED_SECONDS = 2.2
LARGE = 51 * 1024**2


def edit_unseen(path: Path) -> None:
    """The same size, and the old time of change put back; only the time of the inode's change tells."""
    status = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_unseen(path: Path) -> None:
    status = path.stat()
    other = write(path.with_name("other"), path.read_bytes()[::-1])
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


def edit_mapped(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:2] = b"MM"


def become_file(path: Path) -> None:
    shutil.rmtree(path)
    write(path, "now a file\n")


def become_folder(path: Path, inside: str = "inside") -> None:
    path.unlink()
    write(path / inside, "now in a folder\n")


def become_link(path: Path, target: str = "elsewhere") -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    path.symlink_to(target)


def exchange(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def nothing(_folder: Path) -> None:
    pass


def text(name: str, content: str = "some text\n") -> Callable[[Path], object]:
    return lambda folder: write(folder / name, content)


def then(*steps: Callable[[Path], object]) -> Callable[[Path], object]:
    def take_them(path: Path) -> None:
        for step in steps:
            step(path)

    return take_them


def linked(folder: Path) -> None:
    folder.mkdir()
    (folder / "a").symlink_to("x")


def several(*names: str) -> Callable[[Path], object]:
    return lambda folder: [write(folder / name, f"{name}\n") for name in names]


def large(last: bytes) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        path = write(folder / "large.bin", b"")
        os.truncate(path, LARGE)
        with path.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(last)

    return make


def nested_start(folder: Path) -> None:
    folder.mkdir()
    git(folder, "init", "-q", "inner")
    identify(folder / "inner")
    commit(folder / "inner", "first.txt")


CHANGES: dict[str, Change] = {
    "nothing": (text("a"), nothing),
    "edited": (text("a"), text("a", "other and longer\n")),
    "same size and time": (text("a"), lambda f: edit_unseen(f / "a")),
    "replaced with same size and time": (text("a"), lambda f: replace_unseen(f / "a")),
    "edited in memory": (text("a"), lambda f: edit_mapped(f / "a")),
    "touched": (text("a"), lambda f: os.utime(f / "a", (1, 1))),
    "emptied": (text("a"), text("a", "")),
    "filled": (text("a", ""), text("a")),
    "made executable": (text("a"), lambda f: (f / "a").chmod(0o755)),
    "made private": (text("a"), lambda f: (f / "a").chmod(0o600)),
    "private no longer": (
        lambda f: write(f / "a", "text").chmod(0o640),
        lambda f: (f / "a").chmod(0o644),
    ),
    "deleted": (several("a", "b"), lambda f: (f / "a").unlink()),
    "all deleted": (several("a", "b/c"), lambda f: shutil.rmtree(f)),
    "added": (text("a"), several("b", "c/d/e")),
    "renamed": (text("a"), lambda f: (f / "a").rename(f / "b")),
    "folder renamed": (several("a/b", "a/c/d"), lambda f: (f / "a").rename(f / "z")),
    "names exchanged": (several("a", "b"), lambda f: exchange(f / "a", f / "b")),
    "folders exchanged": (several("a/x", "b/y"), lambda f: exchange(f / "a", f / "b")),
    "file to folder": (several("a", "a.b", "a-b"), lambda f: become_folder(f / "a")),
    "folder to file": (several("a/b", "a.b", "a-b"), lambda f: become_file(f / "a")),
    "file to deep folder": (text("a"), lambda f: become_folder(f / "a", "b/c")),
    "deep folder to file": (several("a/b/c", "a/b/d"), lambda f: become_file(f / "a")),
    "inner folder to file": (several("a/b/c", "a/x"), lambda f: become_file(f / "a/b")),
    "file to link": (text("a"), lambda f: become_link(f / "a")),
    "folder to link": (several("a/b", "c/b"), lambda f: become_link(f / "a", "c")),
    "link to file": (
        linked,
        then(lambda f: (f / "a").unlink(), text("a")),
    ),
    "link to folder": (
        linked,
        lambda f: become_folder(f / "a"),
    ),
    "link to elsewhere": (
        linked,
        lambda f: become_link(f / "a", "y"),
    ),
    "folder emptied": (
        several("a/b", "a/c"),
        then(lambda f: (f / "a/b").unlink(), lambda f: (f / "a/c").unlink()),
    ),
    "empty folder stays": (lambda f: (f / "a/b").mkdir(parents=True), nothing),
    "empty folder filled": (lambda f: (f / "a/b").mkdir(parents=True), text("a/b/c")),
    "empty folder gone": (lambda f: (f / "a/b").mkdir(parents=True), lambda f: (f / "a/b").rmdir()),
    "empty folder to file": (
        lambda f: (f / "a/b").mkdir(parents=True),
        lambda f: become_file(f / "a"),
    ),
    "escaped appear": (text("a"), several(".GIT", "git~1", "escaped%x", "b/.Git/c")),
    "escaped stay": (several(".GIT", "git~1", "escaped%x", "b/.Git/c"), nothing),
    "escaped change": (
        several(".GIT", "b/.Git/c"),
        then(lambda f: edit_unseen(f / ".GIT"), lambda f: edit_unseen(f / "b/.Git/c")),
    ),
    "escaped vanish": (
        several(".GIT", "git~1", "b/.Git/c", "a"),
        then(lambda f: (f / ".GIT").unlink(), lambda f: shutil.rmtree(f / "b")),
    ),
    "escaped file to folder": (text(".GIT"), lambda f: become_folder(f / ".GIT", "config")),
    "escaped folder to file": (several(".GIT/config", ".GIT/x"), lambda f: become_file(f / ".GIT")),
    "escape of an escape": (several("escaped%.GIT", ".GIT"), lambda f: (f / ".GIT").unlink()),
    "second hard link": (
        lambda f: os.link(write(f / "a", "text\n"), f / "b"),
        lambda f: edit_unseen(f / "b"),
    ),
    "odd names": (
        several("new\nline", '"quoted"', " ", "tab\t"),
        lambda f: edit_unseen(f / "new\nline"),
    ),
    "dashes": (several("-rf", "--", "-"), lambda f: (f / "-rf").unlink()),
    "no UTF-8": (text("caf\udce9"), lambda f: edit_unseen(f / "caf\udce9")),
    "large changes": (large(b"1"), large(b"2")),
    "large stays": (large(b"3"), nothing),
    "large shrinks": (large(b"4"), text("large.bin")),
    "nested commits": (nested_start, lambda f: commit(f / "inner", "second.txt")),
    "nested stays": (nested_start, nothing),
    "nested vanishes": (nested_start, lambda f: shutil.rmtree(f / "inner/.git")),
    "nested appears": (text("a"), lambda f: git(f, "init", "-q", ".")),
    "nested to pointer": (
        nested_start,
        lambda f: (
            (f / "inner/.git").rename(f / "real"),
            write(f / "inner/.git", "gitdir: ../real\n"),
        ),
    ),
    "folder made anew": (several("node_modules/a", "b"), nothing),
    "becomes one made anew": (several("a/b", "c"), lambda f: (f / "a").rename(f / "node_modules")),
    "made anew no longer": (
        several("node_modules/b", "c"),
        lambda f: (f / "node_modules").rename(f / "a"),
    ),
}


def read_so_far() -> int:
    """Bytes that this process and the ended ones that it started have read, from files as from pipes."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def by_change(found: Contents) -> dict[str, Contents]:
    """What is in the folder of each change, without what is made anew."""
    sorted_in: dict[str, Contents] = {name: {} for name in CHANGES}
    for path, what in found.items():
        _top, _, below = path.partition(b"changes/")
        name, _, rest = below.partition(b"/")
        if name and not rest.startswith(b"node_modules/"):
            sorted_in[name.decode()][rest] = what
    return sorted_in


def test_whatever_happened_in_between_is_in_the_next_one(repository: Path, workspace: Path) -> None:
    """Each change in a folder of its own. What did not change, 30 MB and a large file among it, is not read again."""
    start(repository)
    for name, (before, _after) in CHANGES.items():
        before(repository / "changes" / name)
    write(repository / "unchanged.bin", os.urandom(30_000_000))
    time.sleep(SETTLED_SECONDS)
    take_snapshot(repository, workspace)
    for name, (_before, after) in CHANGES.items():
        after(repository / "changes" / name)
    begun = read_so_far()
    kept = take_snapshot(repository, workspace)
    read = read_so_far() - begun
    now, then = by_change(contents(repository)), by_change(saved(workspace, kept))
    assert [name for name in CHANGES if now[name] != then[name]] == []
    assert (
        2 * LARGE < read < 2 * LARGE + 25_000_000
    )  # Of the one large file that changed git reads each byte too.
    assert kept.whole
    assert_like_a_full_one(repository, workspace, kept)


@pytest.fixture
def no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file had been written long ago: what happens between two snapshots here takes more than a tick."""
    monkeypatch.setattr(remembered, "_RACY_NS", 0)


@pytest.mark.usefixtures("no_window")
@pytest.mark.parametrize(
    "state",
    [
        "staged and on disk differ",
        "merge",
        "merge partly resolved",
        "rebase",
        "every kind of change",
    ],
)
def test_what_git_is_in_the_middle_of_comes_and_goes(
    state: str, repository: Path, workspace: Path
) -> None:
    start(repository)
    take_next(repository, workspace)
    STATES[state].build(repository)
    take_next(repository, workspace)
    git(repository, "reset", "-q", "--hard")
    take_next(repository, workspace)


@pytest.mark.usefixtures("no_window")
def test_stashes_come_and_go(repository: Path, workspace: Path) -> None:
    start(repository)
    take_next(repository, workspace)
    for number in range(3):
        write(repository / "edited.txt", f"stashed {number}\n")
        write(repository / f"new{number}.txt", "untracked\n")
        git(repository, "stash", "-q", "--include-untracked")
        kept = take_next(repository, workspace)
    listed = asked(workspace, "ls-tree", "-r", "--name-only", kept.ref).decode().split()
    assert {f"stash/{number}/worktree/edited.txt" for number in range(3)} <= set(listed)
    git(repository, "stash", "drop", "-q", "stash@{1}")
    take_next(repository, workspace)
    git(repository, "stash", "pop", "-q")
    take_next(repository, workspace)


@pytest.mark.usefixtures("no_window")
def test_wanted_paths_in_folders_that_are_left_out(repository: Path, workspace: Path) -> None:
    start(repository)
    path = write(repository / "node_modules/a/patched.js", "patched\n")
    write(repository / "node_modules/a/other.js", "other\n")
    wanted = {"paths": [b"node_modules/a/patched.js"]}
    for change in (nothing, edit_unseen, nothing, become_link):
        change(path)
        kept = take_snapshot(repository, workspace, **wanted)
        expected = contents(repository)
        del expected[b"node_modules/a/other.js"]
        assert saved(workspace, kept) == expected
        assert_like_a_full_one(repository, workspace, kept, **wanted)
    kept = take_snapshot(repository, workspace)
    assert not any(path.startswith(b"node_modules/") for path in saved(workspace, kept))


@pytest.mark.usefixtures("no_window")
def test_two_work_trees_in_one_workspace_and_one_that_moves(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    start(repository)
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    places = [repository, tmp_path / "side"]
    for number in range(3):
        for place in places:
            write(place / "own.txt", f"{place.name} {number}\n")
            take_next(place, workspace)
        if number == 1:
            git(repository, "worktree", "move", "../side", "../moved")
            places[1] = tmp_path / "moved"


@pytest.mark.usefixtures("no_window")
def test_another_work_tree_in_the_same_place(repository: Path, workspace: Path) -> None:
    start(repository)
    take_next(repository, workspace)
    repository.rename(repository.with_name("old"))
    shutil.copytree(repository.with_name("old"), repository, symlinks=True)
    edit_unseen(repository / "kept.txt")
    take_next(repository, workspace)


@pytest.mark.usefixtures("no_window")
def test_a_repository_of_the_other_hash(tmp_path: Path, workspace: Path) -> None:
    root = tmp_path / "sha256"
    root.mkdir()
    git(root, "init", "-q", "-b", "main", "--object-format=sha256")
    for number in range(3):
        write(root / f"{number}/a.txt", f"{number}\n")
        write(root / "edited.txt", f"{number}\n")
        take_next(root, workspace)


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
from guard.rescue import {module}
{module}.{name} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("module", "name"), [("snapshots", "remember"), ("packs", "note_read_back")]
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


@pytest.mark.usefixtures("no_window")
def test_a_snapshot_that_turns_out_wrong_leaves_no_trace_but_a_right_one(
    repository: Path, workspace: Path
) -> None:
    """The table says of a file that it is what it is not: it is found out when the snapshot is read back."""
    start(repository)
    take_snapshot(repository, workspace)
    root, shadow = repository.resolve(), workspace / "shadow.git"
    before = remembered.recall(shadow, root, 20)
    before.worktree[b"not/there.txt"] = before.worktree[b"kept.txt"]
    remembered.remember(shadow, root, before, remembered.Memory())
    take_next(repository, workspace)
    assert len(asked(workspace, "for-each-ref").splitlines()) == 2


def test_a_file_from_the_future_or_of_this_moment_is_always_read(tmp_path: Path) -> None:
    """As when the clock was set back since it was written."""
    status = write(tmp_path / "file", "text\n").stat()
    oid = "00" * 20
    for seconds, known in ((-3600, False), (0, False), (1.9, False), (2.1, True), (3600, True)):
        looked = status.st_ctime_ns + int(seconds * 1e9)
        assert is_same(record(status, 5, oid, True, looked), status) is known
        assert not is_same(record(status, 5, oid, False, looked), status)


def test_an_inode_without_a_number_is_always_read(tmp_path: Path) -> None:
    found = write(tmp_path / "file", "text\n").stat()
    times = {"st_mtime_ns": found.st_mtime_ns, "st_ctime_ns": found.st_ctime_ns}
    status = os.stat_result((found.st_mode, 0, *found[2:]), times)
    assert not is_same(record(status, 5, "00" * 20, True, time.time_ns() * 2), status)


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


def test_what_cannot_be_read_any_more_is_not_kept_in_its_old_version(
    repository: Path, workspace: Path
) -> None:
    """It is named, as in a snapshot from nothing; the earlier snapshot still has what could be read then."""
    start(repository)
    write(repository / "shut/inside.txt", "inside\n")
    write(repository / "inner/code.c", "code\n")
    git(repository / "inner", "init", "-q", ".")
    time.sleep(SETTLED_SECONDS)
    whole = take_snapshot(repository, workspace)
    closed = [repository / name for name in ("shut", "kept.txt", "inner/.git")]
    modes = [path.stat().st_mode for path in closed]
    for path in closed:
        path.chmod(0)
    done = child(repository, workspace, WITHOUT_PRIVILEGE)
    said, trouble = done.communicate()
    for path, mode in zip(closed, modes, strict=True):
        path.chmod(mode)
    assert done.returncode == 0, trouble
    kept = Snapshot.model_validate_json(said)
    assert kept.skipped == (
        "inner/.git: Permission denied",
        "kept.txt: Permission denied",
        "shut: Permission denied",
    )
    assert not kept.whole
    now = contents(repository)
    missing = {b"kept.txt", b"shut/inside.txt"}
    assert saved(workspace, kept) == {path: now[path] for path in now.keys() - missing}
    assert not any(line.endswith(b"\tnested") for line in trees(workspace, kept))
    assert saved(workspace, whole) == now
    take_next(repository, workspace)


@pytest.mark.usefixtures("no_window")
def test_a_walk_without_time_keeps_no_old_versions_of_what_it_did_not_reach(
    repository: Path, workspace: Path
) -> None:
    start(repository)
    several("a/1.txt", "b/2.txt", "c/d/3.txt")(repository)
    take_snapshot(repository, workspace)
    for path in ("a/1.txt", "c/d/3.txt", "kept.txt"):
        edit_unseen(repository / path)
    project = Project(find(repository, lambda _: None), os.environ, Deadline(60))
    with ready(project, workspace, BY_HAND) as shadow:
        late = replace(project, deadline=Deadline(0))
        slow = Limits(progress=lambda _message: time.sleep(0.1))
        taken = take(late, shadow, BY_HAND, limits=slow)
    assert not taken.snapshot.whole
    assert any("time limit" in line for line in taken.snapshot.skipped)
    then, now = saved(workspace, taken.snapshot), contents(repository)
    assert then.items() <= now.items()
    assert not manifest(workspace, taken.snapshot).whole
    take_next(repository, workspace)


def once(happens: Callable[[], object]) -> Limits:
    """Something that happens when the work tree has been walked, and before the rest is fetched."""
    waiting = [happens]

    def tell(message: str) -> None:
        if message.endswith(" files") and not message.endswith("; 0 files") and waiting:
            waiting.pop()()

    return Limits(progress=tell)


@pytest.mark.usefixtures("no_window")
@pytest.mark.parametrize("from_nothing", [True, False])
def test_a_file_that_becomes_a_folder_meanwhile_and_the_other_way_round(
    from_nothing: bool, repository: Path, workspace: Path
) -> None:
    several("file", "folder/inside", "zz/last")(repository)
    if not from_nothing:
        take_snapshot(repository, workspace)
    write(repository / "new.txt", "new\n")

    def exchanged() -> None:
        become_folder(repository / "file", "inside")
        become_file(repository / "folder")

    wanted = [b"file/inside", b"folder", b"folder/inside", b"file"]
    kept = take_snapshot(repository, workspace, limits=once(exchanged), paths=wanted)
    assert not kept.whole
    assert {line.partition(":")[0] for line in kept.skipped} & {"file/inside", "folder"}
    take_next(repository, workspace, paths=wanted)


@pytest.mark.usefixtures("no_window")
def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    several("a/first", "b/inside")(repository)
    write(tmp_path / "outside/inside", "not ours\n")
    os.truncate(write(repository / "b/large.bin", b""), LARGE)
    take_snapshot(repository, workspace)
    edit_unseen(repository / "b/inside")
    (repository / "b/large.bin").write_bytes(b"")
    os.truncate(repository / "b/large.bin", LARGE)

    def swapped() -> None:
        (repository / "b").rename(repository / "c")
        (repository / "b").symlink_to(tmp_path / "outside")

    kept = take_snapshot(repository, workspace, limits=once(swapped), paths=[b"b/inside"])
    assert b"not ours\n" not in {data for _kind, data in saved(workspace, kept).values()}
    take_next(repository, workspace)


class Play:
    """Random changes to a work tree, from a seed."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.random = root, random.Random(seed)

    def place(self) -> Path:
        """One of few names, at most three folders deep, so that they meet."""
        names = ["a", "b", "c.d", "c", ".GIT", "escaped%x", "ä\n"]
        return self.root.joinpath(*self.random.choices(names, k=self.random.randint(1, 3)))

    def clear(self, path: Path) -> None:
        """Make room for a file, in place of whatever is there or above."""
        above = [folder for folder in path.parents if self.root in folder.parents]
        for folder in (*reversed(above), path):
            if folder.is_symlink() or folder.is_file():
                folder.unlink()
        if path.is_dir():
            shutil.rmtree(path)
        path.parent.mkdir(parents=True, exist_ok=True)

    def files(self) -> list[Path]:
        """Regular ones."""
        every = sorted(self.root.rglob("*"))
        outside = (path for path in every if path.relative_to(self.root).parts[0] != ".git")
        return [path for path in outside if stat.S_ISREG(path.lstat().st_mode)]

    def change(self) -> None:
        """One of them."""
        make = [self.write, self.write, self.link, self.mkdir]
        alter = [self.unseen, self.touch, self.chmod, self.rename, self.delete, self.exchange]
        self.random.choice(make + alter if len(self.files()) > 2 else make)()

    def one(self) -> Path:
        return self.random.choice(self.files())

    def write(self) -> None:
        path = self.place()
        self.clear(path)
        path.write_bytes(self.random.randbytes(self.random.randrange(40)))

    def link(self) -> None:
        path = self.place()
        self.clear(path)
        path.symlink_to(self.random.choice(["a", "../b", "nowhere"]))

    def mkdir(self) -> None:
        path = self.place()
        self.clear(path)
        path.mkdir()

    def unseen(self) -> None:
        edit_unseen(self.one())

    def touch(self) -> None:
        os.utime(self.one(), (self.random.randrange(2**31),) * 2)

    def chmod(self) -> None:
        self.one().chmod(self.random.choice([0o644, 0o755, 0o600, 0o444]))

    def rename(self) -> None:
        path, aside = self.place(), self.root / "aside"
        self.one().rename(aside)
        self.clear(path)
        aside.rename(path)

    def delete(self) -> None:
        one = self.one()
        one.unlink()
        if self.random.random() < 0.3 and one.parent != self.root:
            shutil.rmtree(one.parent)

    def exchange(self) -> None:
        exchange(*self.random.sample(self.files(), 2))


@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_random_changes(
    seed: int, repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = Play(repository, seed)
    if seed:
        monkeypatch.setattr(remembered, "_RACY_NS", 0)
    for number in range(200):
        play.change()
        if number % 8 == 0:
            kept = take_snapshot(repository, workspace)
            assert saved(workspace, kept) == contents(repository), number
            assert kept.whole
        if number % 48 == 0:
            assert_like_a_full_one(repository, workspace, kept)
    take_next(repository, workspace)
