"""What is uncommitted: every kind of it, whose it is, and that looking at it runs nothing of the repository's."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from guard.core.iteration.facts import DirtyFile
from guard.core.work.leftovers import Uncommitted, files_changed_since
from guard.errors import RepositoryProblem
from guard.git.dirty import MOST_LISTED, read_dirty
from tests.support import TIME_LIMIT, commit, git, new_repository, write
from tests.support.baselines import left_since, reader, taken

Act = Callable[[Path], Any]


@pytest.fixture
def project(repository: Path) -> Path:
    """Four files in one commit."""
    for name in ("a.txt", "b.txt", "folder/c.txt"):
        write(repository / name, f"{name}\n")
    (repository / "link").symlink_to("a.txt")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Begin")
    return repository


def found(project: Path) -> dict[str, DirtyFile]:
    return {file.path: file for file in read_dirty(reader(project)).files}


def stage(project: Path, name: str, text: str) -> None:
    write(project / name, text)
    git(project, "add", "--", name)


def conflict(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "other")
    commit(project, "a.txt", "theirs\n")
    git(project, "checkout", "-q", "main")
    commit(project, "a.txt", "ours\n")
    with pytest.raises(Exception, match="returned non-zero"):
        git(project, "merge", "-q", "other")


def fifo(project: Path) -> None:
    (project / "a.txt").unlink()
    os.mkfifo(project / "a.txt")


def listening(project: Path) -> None:
    (project / "a.txt").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        before = os.getcwd()
        os.chdir(project)
        server.bind("a.txt")
        os.chdir(before)


def hide(flag: str) -> Act:
    def act(project: Path) -> None:
        git(project, "update-index", flag, "a.txt")
        write(project / "a.txt", "edited\n")

    return act


def relink(project: Path) -> None:
    (project / "link").unlink()
    (project / "link").symlink_to("/etc/passwd")


STATES: dict[str, tuple[Act, str, str, str]] = {
    "a changed file": (lambda p: write(p / "a.txt", "x\n"), "a.txt", "file", "unstaged"),
    "a staged file": (lambda p: stage(p, "a.txt", "x\n"), "a.txt", "file", "staged"),
    "a new file": (lambda p: write(p / "new.txt", "x\n"), "new.txt", "file", "untracked"),
    "a new file that is staged": (
        lambda p: stage(p, "new.txt", "x\n"),
        "new.txt",
        "file",
        "staged",
    ),
    "a new file that is only announced": (
        lambda p: (write(p / "new.txt", "x\n"), git(p, "add", "-N", "new.txt")),
        "new.txt",
        "file",
        "unstaged",
    ),
    "a deleted file": (lambda p: (p / "a.txt").unlink(), "a.txt", "missing", "unstaged"),
    "a file deleted by git": (lambda p: git(p, "rm", "-q", "a.txt"), "a.txt", "missing", "staged"),
    "a file made executable": (
        lambda p: (p / "a.txt").chmod(0o755),
        "a.txt",
        "executable",
        "unstaged",
    ),
    "a link to elsewhere": (relink, "link", "link", "unstaged"),
    "a conflict": (conflict, "a.txt", "file", "unstaged"),
    "a pipe in place of a file": (fifo, "a.txt", "special", "unstaged"),
    "a socket in place of a file": (listening, "a.txt", "special", "unstaged"),
    "an edit that git was told to take for none": (
        hide("--assume-unchanged"),
        "a.txt",
        "file",
        "unstaged",
    ),
    "an edit of a file that git was told to be absent": (
        hide("--skip-worktree"),
        "a.txt",
        "file",
        "unstaged",
    ),
    "a name of bytes": (
        lambda p: write(p / os.fsdecode(b"caf\xe9\n"), "x"),
        "caf\\xe9\n",
        "file",
        "untracked",
    ),
    "a name with a backslash": (lambda p: write(p / "a\\b", "x"), "a\\\\b", "file", "untracked"),
    "a name that looks like an option": (
        lambda p: write(p / "-rf", "x"),
        "-rf",
        "file",
        "untracked",
    ),
}


@pytest.mark.parametrize(("act", "path", "kind", "state"), STATES.values(), ids=STATES)
def test_listed_is(act: Act, path: str, kind: str, state: str, project: Path) -> None:
    assert found(project) == {}
    baseline = taken(project)
    act(project)
    files = found(project)
    assert list(files) == [path]
    file = files[path]
    assert file.kind == kind
    assert [name for name in ("staged", "unstaged", "untracked") if getattr(file, name)] == [state]
    left = left_since(baseline, project)
    assert (getattr(left, state), left.users) == ((path,), 0)
    before = taken(project)
    assert left_since(before, project) == Uncommitted(users=1)


def test_a_file_that_is_hidden_and_not_edited_is_not_listed(project: Path) -> None:
    git(project, "update-index", "--assume-unchanged", "a.txt", "link")
    git(project, "update-index", "--skip-worktree", "b.txt", "folder/c.txt")
    (project / "b.txt").unlink()
    assert found(project) == {}


def test_ignored_files_are_not_listed(project: Path) -> None:
    write(project / ".git" / "info" / "exclude", "*.log\n")
    write(project / "x.log", "x\n")
    assert found(project) == {}


def rewrite(project: Path) -> None:
    write(project / "a.txt", "agents\n")


def same_again(project: Path) -> None:
    write(project / "a.txt", "users\n")
    os.utime(project / "a.txt", ns=(1, 1))


def stage_other(project: Path) -> None:
    stage(project, "a.txt", "agents\n")
    write(project / "a.txt", "users\n")


USERS: dict[str, tuple[Act, Act, dict[str, Any]]] = {
    "untouched": (lambda p: write(p / "a.txt", "users\n"), lambda _: None, {"users": 1}),
    "written again as it was": (lambda p: write(p / "a.txt", "users\n"), same_again, {"users": 1}),
    "changed": (lambda p: write(p / "a.txt", "users\n"), rewrite, {"unstaged": ("a.txt",)}),
    "deleted": (
        lambda p: write(p / "a.txt", "users\n"),
        lambda p: (p / "a.txt").unlink(),
        {"unstaged": ("a.txt",)},
    ),
    "staged by the agent": (
        lambda p: write(p / "a.txt", "users\n"),
        lambda p: git(p, "add", "a.txt"),
        {"users": 1},
    ),
    "unstaged by the agent": (
        lambda p: stage(p, "a.txt", "users\n"),
        lambda p: git(p, "reset", "-q"),
        {"users": 1},
    ),
    "untracked, then staged": (
        lambda p: write(p / "new.txt", "users\n"),
        lambda p: git(p, "add", "."),
        {"users": 1},
    ),
    "the same, with something else staged": (
        lambda p: write(p / "a.txt", "users\n"),
        stage_other,
        {"staged": ("a.txt",), "unstaged": ("a.txt",)},
    ),
    "made executable": (
        lambda p: write(p / "a.txt", "users\n"),
        lambda p: (p / "a.txt").chmod(0o755),
        {"unstaged": ("a.txt",)},
    ),
    "beside one of the agent's": (
        lambda p: write(p / "a.txt", "users\n"),
        lambda p: write(p / "new.txt", "x"),
        {"users": 1, "untracked": ("new.txt",)},
    ),
    "committed by the agent": (
        lambda p: write(p / "a.txt", "users\n"),
        lambda p: git(p, "commit", "-qam", "x"),
        {"gone": ("a.txt",)},
    ),
    "set back by the agent": (
        lambda p: write(p / "a.txt", "users\n"),
        lambda p: git(p, "checkout", "-q", "."),
        {"gone": ("a.txt",)},
    ),
}


@pytest.mark.parametrize(("users", "agents", "expected"), USERS.values(), ids=USERS)
def test_a_file_of_the_users(
    users: Act, agents: Act, expected: dict[str, Any], project: Path
) -> None:
    users(project)
    baseline = taken(project)
    agents(project)
    assert left_since(baseline, project) == Uncommitted(**expected)


def test_what_an_iteration_left_is_not_the_users_at_the_next_baseline(project: Path) -> None:
    write(project / "a.txt", "users\n")
    first = taken(project)
    write(project / "b.txt", "agents\n")
    write(project / "folder/c.txt", "agents\n")
    left = left_since(first, project)
    carried = tuple(
        file for file in read_dirty(reader(project)).files if file.path in left.unstaged
    )
    write(project / "folder/c.txt", "users, afterwards\n")
    second = taken(project, carried)
    assert {file.path: file.left_by for file in second.dirty} == {
        "a.txt": "user",
        "b.txt": "iteration",
        "folder/c.txt": "user",
    }
    assert left_since(second, project) == Uncommitted(unstaged=("b.txt",), users=2)


def test_a_large_file_is_known_by_size_and_time(project: Path) -> None:
    with open(project / "large", "wb") as file:
        file.truncate(65 * 1024 * 1024)
    baseline = taken(project)
    assert [file.content for file in baseline.dirty] == [None]
    assert left_since(baseline, project) == Uncommitted(users=1)
    with open(project / "large", "r+b") as again:
        again.write(b"x")
    os.utime(project / "large", ns=(2, 2))
    assert left_since(baseline, project) == Uncommitted(untracked=("large",))


def filled(folder: Path, count: int) -> None:
    for number in range(count):
        write(folder / str(number % 7) / f"{number}.txt", "x")


def test_folders_of_very_many_files_are_one_each_the_largest_first(project: Path) -> None:
    filled(project / "many", MOST_LISTED)
    filled(project / "few", 3)
    baseline = taken(project)
    assert [(file.path, file.kind) for file in baseline.dirty] == [
        ("few/0/0.txt", "file"),
        ("few/1/1.txt", "file"),
        ("few/2/2.txt", "file"),
        ("many/", "folder"),
    ]
    assert left_since(baseline, project) == Uncommitted(users=4)
    write(project / "many" / "3" / "3.txt", "changed")
    assert left_since(baseline, project) == Uncommitted(untracked=("many/",), users=3)


def test_what_was_listed_as_one_is_so_again_though_it_shrank(project: Path) -> None:
    filled(project / "many", MOST_LISTED + 1)
    baseline = taken(project)
    shutil.rmtree(project / "many" / "3")
    assert left_since(baseline, project) == Uncommitted(untracked=("many/",))


def test_a_file_of_the_users_is_told_from_very_many_new_ones_beside_it(project: Path) -> None:
    write(project / "mine.txt", "x")
    write(project / "a.txt", "edited")
    baseline = taken(project)
    for number in range(MOST_LISTED + 1):
        write(project / f"{number}.txt", "x")
    now = read_dirty(reader(project), baseline.dirty)
    left = files_changed_since(baseline.dirty, now.files)
    assert [file.path for file in left] == ["./"]
    assert sorted(now.paths(left)) == sorted(b"%d.txt" % n for n in range(MOST_LISTED + 1))
    assert left_since(baseline, project) == Uncommitted(untracked=("./",), users=2)


def nested_repository(project: Path) -> Path:
    return new_repository(project / "inner", "x.txt")


@pytest.mark.parametrize(
    "act",
    [
        lambda inner: commit(inner, "y.txt"),
        lambda inner: write(inner / "x.txt", "edited\n"),
        lambda inner: write(inner / "new.txt", "new\n"),
    ],
    ids=["a commit in it", "an edit in it", "a new file in it"],
)
def test_a_repository_inside_is_known_by_all_that_is_in_it(act: Act, project: Path) -> None:
    inner = nested_repository(project)
    baseline = taken(project)
    assert [(file.path, file.kind) for file in baseline.dirty] == [("inner/", "repository")]
    assert left_since(baseline, project) == Uncommitted(users=1)
    act(inner)
    assert left_since(baseline, project) == Uncommitted(untracked=("inner/",))


def test_a_submodule_with_an_edit_in_it(project: Path) -> None:
    inner = nested_repository(project)
    git(project, "add", "inner")
    git(project, "commit", "-q", "-m", "Add a submodule")
    assert found(project) == {}
    baseline = taken(project)
    write(inner / "x.txt", "edited\n")
    assert left_since(baseline, project) == Uncommitted(unstaged=("inner",))
    commit(inner, "x.txt", "committed\n")
    assert left_since(baseline, project) == Uncommitted(unstaged=("inner",))


def test_a_submodule_in_a_submodule_with_an_edit_in_it(project: Path) -> None:
    inner = nested_repository(project)
    deep = new_repository(inner / "deep", "y.txt")
    git(inner, "add", "deep")
    git(inner, "commit", "-q", "-m", "Add a submodule")
    git(project, "add", "inner")
    git(project, "commit", "-q", "-m", "Add a submodule")
    baseline = taken(project)
    assert baseline.dirty == ()
    for text in ("edited\n", "edited more\n"):
        write(deep / "y.txt", text)
        assert left_since(baseline, project) == Uncommitted(unstaged=("inner",))
        baseline = taken(project)
        assert left_since(baseline, project) == Uncommitted(users=1)


def lose_git_dir(inner: Path) -> None:
    (inner / ".git").rename(inner.parent.parent / "away")


def break_settings(inner: Path) -> None:
    write(inner / ".git/config", "[core\nbroken")


def break_head(inner: Path) -> None:
    write(inner / ".git/HEAD", "nothing\n")


@pytest.mark.parametrize("spoil", [lose_git_dir, break_settings, break_head])
def test_a_submodule_that_git_cannot_look_into(spoil: Act, project: Path) -> None:
    """It is known by names, sizes and times."""
    inner = nested_repository(project)
    git(project, "add", "inner")
    git(project, "commit", "-q", "-m", "Add a submodule")
    baseline = taken(project)
    spoil(inner)
    assert left_since(baseline, project) == Uncommitted(unstaged=("inner",))
    baseline = taken(project)
    assert left_since(baseline, project) == Uncommitted(users=1)
    write(inner / "new.txt", "new\n")
    write(project / "beside.txt", "new\n")
    left = Uncommitted(unstaged=("inner",), untracked=("beside.txt",))
    assert left_since(baseline, project) == left


def test_a_work_tree_of_the_same_repository_inside_this_one(project: Path) -> None:
    git(project, "worktree", "add", "-q", "trees/helper", "-b", "helper")
    assert found(project) == {}
    write(project / "trees" / "helper" / "a.txt", "edited\n")
    assert list(found(project)) == ["trees/helper/"]


@pytest.mark.parametrize("place", ["settings", "an included file", "a name with odd characters"])
def test_filters_do_not_run(place: str, project: Path, tmp_path: Path) -> None:
    trap = write(tmp_path / "trap", f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    name = "a=b.c" if place == "a name with odd characters" else "evil"
    config = project / ".git" / "config"
    if place == "an included file":
        git(project, "config", "include.path", str(tmp_path / "hidden"))
        config = tmp_path / "hidden"
    with open(config, "a") as file:
        file.write(f'[filter "{name}"]\n clean = {trap}\n process = {trap}\n required = true\n')
    write(project / ".git" / "info" / "attributes", f"*.txt filter={name}\n")
    for path in ("a.txt", "b.txt"):
        os.utime(project / path, ns=(1, 1))
    assert found(project) == {}
    assert not (tmp_path / "sprung").exists()
    subprocess.run(
        ["git", "status"], cwd=project, capture_output=True, timeout=TIME_LIMIT, check=False
    )
    assert (tmp_path / "sprung").exists()


def test_a_flood_of_filters_is_refused(project: Path) -> None:
    with open(project / ".git" / "config", "a") as file:
        file.writelines(f'[filter "f{number}"]\n clean = x\n' for number in range(201))
    with pytest.raises(RepositoryProblem, match="201 filters"):
        found(project)


def test_settings_that_blind_git_are_overridden(project: Path) -> None:
    os.utime(project / "a.txt", ns=(10**18, 10**18))
    git(project, "update-index", "--refresh")
    sleep(1.1)  # Git compares the time of the change, which cannot be set, in whole seconds.
    for key, value in (
        ("core.worktree", "/"),
        ("core.bare", "true"),
        ("core.trustctime", "false"),
        ("core.checkStat", "minimal"),
        ("status.showUntrackedFiles", "no"),
        ("status.branch", "true"),
        ("status.relativePaths", "true"),
        ("diff.ignoreSubmodules", "all"),
        ("core.fsmonitor", "false"),
    ):
        git(project, "config", key, value)
    write(project / "a.txt", "A.txt\n")
    os.utime(project / "a.txt", ns=(10**18, 10**18))
    write(project / "folder" / "new.txt", "x\n")
    assert list(found(project)) == ["a.txt", "folder/new.txt"]


def test_a_damaged_index_is_an_error(project: Path) -> None:
    write(project / ".git" / "index", b"DIRC damaged")
    with pytest.raises(RepositoryProblem, match=r"git status failed: .*index"):
        found(project)


def test_an_index_that_is_locked_does_not_matter(project: Path) -> None:
    write(project / ".git" / "index.lock", "")
    write(project / "a.txt", "x\n")
    assert list(found(project)) == ["a.txt"]


def test_looking_changes_nothing(project: Path) -> None:
    index = (project / ".git" / "index").read_bytes()
    os.utime(project / "a.txt", ns=(1, 1))
    assert found(project) == {}
    assert (project / ".git" / "index").read_bytes() == index
