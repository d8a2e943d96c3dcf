"""A snapshot that starts from the one before has every byte that one from nothing has, whatever happened in between."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.snapshots import stat_cache as remembered
from tests.rescue.states import STATES, start
from tests.rescue.states_start import identify
from tests.support import commit, git, write
from tests.support.changes import (
    LARGE,
    SETTLED_SECONDS,
    Play,
    become_file,
    become_folder,
    become_link,
    edit_mapped,
    edit_unseen,
    exchange,
    large,
    linked,
    nothing,
    replace_unseen,
    several,
    text,
    then,
)
from tests.support.rescues import Contents, contents, take_snapshot
from tests.support.snapshot_chain import (
    asked,
    assert_like_a_full_one,
    read_so_far,
    saved,
    take_next,
)

Change = tuple[Callable[[Path], object], Callable[[Path], object]]


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


def by_change(found: Contents) -> dict[str, Contents]:
    """What is in the folder of each change."""
    sorted_in: dict[str, Contents] = {name: {} for name in CHANGES}
    for path, what in found.items():
        _top, _, below = path.partition(b"changes/")
        name, _, rest = below.partition(b"/")
        if name:
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
    write(repository / ".git/info/exclude", "node_modules/\n")
    path = write(repository / "node_modules/a/patched.js", "patched\n")
    write(repository / "node_modules/a/other.js", "other\n")
    wanted = [b"node_modules/a/patched.js"]
    for change in (nothing, edit_unseen, nothing, become_link):
        change(path)
        kept = take_snapshot(repository, workspace, paths=wanted)
        expected = contents(repository)
        del expected[b"node_modules/a/other.js"]
        assert saved(workspace, kept) == expected
        assert_like_a_full_one(repository, workspace, kept, paths=wanted)
    kept = take_snapshot(repository, workspace)
    assert saved(workspace, kept) == expected, "what the last one has is kept while it is there"
    path.unlink()
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
