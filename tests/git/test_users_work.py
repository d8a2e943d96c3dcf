"""Commits of what the user had left uncommitted before the iteration: they are not the agent's work."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support import commit, git, run, sessions, write
from tests.support.baselines import taken, work_since

Act = Callable[[Path], Any]


def does(*script: str) -> Act:
    """Run lines of shell in the repository."""
    return lambda folder: [git(folder, "-c", f"alias.x=!{line}", "x") for line in script]


ALL = "git add -A && git commit -qm 'All of it'"
MODIFIED = does("echo users >> one.txt")
STAGED = does("echo users >> one.txt", "git add one.txt")
BOTH = does("echo staged >> one.txt", "git add one.txt", "echo more >> one.txt")
UNTRACKED = does("mkdir -p notes && echo users > notes/mine.txt")
DELETED = does("rm two.txt")
RENAMED = does("git mv two.txt renamed.txt")
MODE = does("chmod +x one.txt")
LINK = does("ln -s one.txt link")
CRLF = does("git config core.autocrlf true", r"printf 'a\r\nb\r\n' > one.txt")
UNCACHED = does("git rm -q --cached two.txt")
LARGE_FILES = does(
    "git config filter.lfs.clean false", "echo '*.bin filter=lfs' > .git/info/attributes",
    "echo users > large.bin",
)  # fmt: skip

HUNKS = does(
    "seq 1 40 > one.txt; git commit -qam Base",
    "sed -i -e 's/^2$/two/' -e 's/^38$/thirty/' -e 's/^20$/20\\nA\\nB\\nC/' one.txt",
)
SUBMODULE = does(
    "git init -q sub",
    "git -C sub -c user.name=A -c user.email=a@example.com commit -q --allow-empty -m Sub",
)
STASH = does("echo users >> one.txt; echo users > new.txt; git stash -q -u")


def commit_edited(*expressions: str) -> Act:
    """Commit the baseline's one.txt with a part of the user's changes, or others, and leave the file on disk as it is."""
    edits = " ".join(f"-e '{expression}'" for expression in expressions)
    return does(
        f"git show HEAD:one.txt | sed {edits} > .git/part",
        "git update-index --cacheinfo 100644,$(git hash-object -w .git/part),one.txt",
        "git commit -qm Part",
    )


FIRST = "s/^2$/two/"
LAST = "s/^38$/thirty/"

USERS: dict[str, tuple[Act, Act, int]] = {
    "a modified file": (MODIFIED, does("git commit -qam Users"), 1),
    "a staged file": (STAGED, does("git commit -qm Users"), 1),
    "a file staged and modified again, as staged": (BOTH, does("git commit -qm Users"), 1),
    "a file staged and modified again, as it lies there": (BOTH, does("git commit -qam Users"), 1),
    "both states of a file, one after the other": (
        BOTH,
        does("git commit -qm Users", "git commit -qam Users"),
        2,
    ),
    "an untracked file": (UNTRACKED, does(ALL), 1),
    "an untracked file under another name": (UNTRACKED, does("mv notes/mine.txt new.txt", ALL), 1),
    "a copy of an untracked file beside it": (UNTRACKED, does("cp notes/mine.txt new.txt", ALL), 1),
    "a deleted file": (DELETED, does(ALL), 1),
    "a renamed file": (RENAMED, does("git commit -qm Users"), 1),
    "a mode": (MODE, does(ALL), 1),
    "a link": (LINK, does(ALL), 1),
    "a file taken out of the index": (UNCACHED, does("git commit -qm Users"), 1),
    "a file with other line ends": (CRLF, does(ALL), 1),
    "a file changed back since": (MODIFIED, does("git commit -qam Users", "echo > one.txt"), 1),
    "several files in several commits": (
        lambda folder: (MODIFIED(folder), UNTRACKED(folder), DELETED(folder)),
        does("git commit -qam Users", ALL),
        2,
    ),
    "an amended commit": (MODIFIED, does("git commit -qa --amend --no-edit"), 1),
    "a squash of older commits": (
        MODIFIED,
        does("git reset -q --soft HEAD~2", "git commit -qam Squash"),
        1,
    ),
    "a branch": (MODIFIED, does("git checkout -qb other", "git commit -qam U"), 1),
    "a branch merged": (
        MODIFIED,
        does("git checkout -qb other", "git commit -qam U", "git checkout -q main",
             "git merge -q --no-ff -m Merge other"),
        1,
    ),
    "one hunk of a file": (HUNKS, commit_edited(FIRST), 1),
    "two hunks one by one": (
        HUNKS,
        lambda folder: (commit_edited(FIRST)(folder), commit_edited(LAST)(folder)),
        2,
    ),
    "all hunks one by one": (
        HUNKS,
        lambda folder: (
            commit_edited(FIRST)(folder),
            commit_edited(LAST)(folder),
            does("git commit -qam Rest")(folder),
        ),
        3,
    ),
    "some lines of a hunk": (HUNKS, commit_edited("s/^20$/20\\nB/"), 1),
    "some lines of an untracked file": (
        does("seq 1 5 > new.txt"),
        does(
            "seq 2 4 > .git/part",
            "git update-index --add --cacheinfo "
            "100644,$(git hash-object -w .git/part),new.txt; git commit -qm Part",
        ),
        1,
    ),
    "a nested repository": (SUBMODULE, does(ALL), 1),
    "the stash": (STASH, does("git stash pop -q", ALL), 1),
    "the stash, applied": (STASH, does("git stash apply -q", ALL), 1),
    "a part of the stash": (
        does("seq 1 40 > one.txt; git commit -qam Base; sed -i -e 's/^2$/two/' -e 's/^38$/x/' "
             "one.txt; git stash -q"),
        commit_edited(FIRST),
        1,
    ),
    "a pointer to a large file": (
        LARGE_FILES,
        does(
            r"printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 6\n' "
            "$(sha256sum large.bin | cut -d' ' -f1) > .git/pointer",
            "git update-index --add --cacheinfo "
            "100644,$(git hash-object -w --no-filters .git/pointer),large.bin",
            "git commit -qm Users",
        ),
        1,
    ),
}  # fmt: skip


@pytest.fixture
def project(repository: Path) -> Path:
    for name in ("one.txt", "two.txt", "three.txt"):
        commit(repository, name)
    return repository


@pytest.mark.parametrize(("before", "act", "count"), USERS.values(), ids=USERS)
def test_is_the_users(before: Act, act: Act, count: int, project: Path) -> None:
    before(project)
    baseline = taken(project)
    act(project)
    work = work_since(baseline, project)
    assert (work.users, work.new_commits, work.net_change) == (count, 0, False)


MIXED: dict[str, tuple[Act, Act]] = {
    "a file of the agent's beside": (MODIFIED, does("echo agent > new.txt", ALL)),
    "the user's file, changed further": (MODIFIED, does("echo agent >> one.txt", ALL)),
    "a tracked file of the user's under another name": (
        MODIFIED,
        does("git mv one.txt new.txt", ALL),
    ),
    "an untracked file under another name, changed further": (
        UNTRACKED,
        does("mv notes/mine.txt new.txt; echo agent >> new.txt", ALL),
    ),
    "an untracked file, changed further": (UNTRACKED, does("echo agent >> notes/mine.txt", ALL)),
    "a deleted file, written anew": (DELETED, does("echo agent > two.txt", ALL)),
    "a mode beside": (MODIFIED, does("chmod +x one.txt", ALL)),
    "the user's file deleted": (MODIFIED, does("git rm -qf one.txt", ALL)),
    "a hunk of the user's and a line of the agent's": (
        HUNKS,
        commit_edited(FIRST, "s/^20$/20\\nmine/"),
    ),
    "lines of the user's in another order": (HUNKS, commit_edited("s/^20$/20\\nC\\nB/")),
    "a hunk of the user's, and a line moved": (
        HUNKS,
        commit_edited(FIRST, "30d", "s/^35$/35\\n30/"),
    ),
    "a hunk of the user's and a mode": (
        HUNKS,
        does(
            "git show HEAD:one.txt | sed 's/^2$/two/' > .git/part",
            "git update-index --cacheinfo 100755,$(git hash-object -w .git/part),one.txt",
            "git commit -qm Part",
        ),
    ),
    "a commit more in a nested repository": (
        SUBMODULE,
        does(
            "git -C sub -c user.name=A -c user.email=a@example.com commit -q --allow-empty -m Mine",
            ALL,
        ),
    ),
    "the stash, and a line of the agent's": (
        STASH,
        does("git stash pop -q; echo mine >> one.txt", ALL),
    ),
    "the stash, and a file of the agent's": (
        STASH,
        does("git stash pop -q; echo mine > mine.txt", ALL),
    ),
    "a file deleted that the stash deletes": (
        does("git rm -q two.txt; git stash -q"),
        does("git rm -q two.txt; git commit -qm Delete"),
    ),
    "only other files": (
        MODIFIED,
        does("echo agent > new.txt", "git add new.txt", "git commit -qm N"),
    ),
}


@pytest.mark.parametrize(("before", "act"), MIXED.values(), ids=MIXED)
def test_counts(before: Act, act: Act, project: Path) -> None:
    before(project)
    baseline = taken(project)
    act(project)
    work = work_since(baseline, project)
    assert (work.users, work.new_commits, work.net_change) == (0, 1, True)


def test_a_commit_of_both_counts_and_one_of_the_users_does_not(project: Path) -> None:
    MODIFIED(project)
    baseline = taken(project)
    does("git commit -qam Users", "echo agent > new.txt", ALL)(project)
    work = work_since(baseline, project)
    assert (work.users, work.new_commits, work.net_change) == (1, 1, True)


TAKEN_BACK = {
    "the agent's part": ("echo agent > new.txt", ALL, "git rm -q new.txt", "git commit -qm Back"),
    "the user's part in pieces": (
        "cp one.txt .git/users",
        "echo half > one.txt",
        "git commit -qam Half",
        "cp .git/users one.txt",
        "git commit -qam Rest",
    ),
}


@pytest.mark.parametrize("script", TAKEN_BACK.values(), ids=TAKEN_BACK)
def test_only_the_users_work_is_left_in_sum(script: tuple[str, ...], project: Path) -> None:
    MODIFIED(project)
    baseline = taken(project)
    does(*script)(project)
    assert not work_since(baseline, project).net_change


def test_what_an_iteration_left_before_is_not_the_users(project: Path) -> None:
    MODIFIED(project)
    baseline = taken(project, carried=taken(project).dirty)
    does(ALL)(project)
    work = work_since(baseline, project)
    assert (work.users, work.new_commits) == (0, 1)


def test_the_first_commit_of_all(tmp_path: Path, repository: Path) -> None:
    write(repository / "one.txt", "users\n")
    baseline = taken(repository)
    does(ALL)(repository)
    work = work_since(baseline, repository)
    assert (work.users, work.new_commits, work.net_change) == (1, 0, False)


def test_a_merge_that_takes_the_users_work_along(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "other")
    commit(project, "other.txt")
    git(project, "checkout", "-q", "main")
    UNTRACKED(project)
    baseline = taken(project)
    does("git merge -q --no-ff --no-commit other", ALL)(project)
    work = work_since(baseline, project)
    assert (work.users, work.new_commits) == (1, 0)


def test_a_check_does_not_complete_with_the_users_work(project: Path, tmp_path: Path) -> None:
    UNTRACKED(project)
    asked = ("--probe-command", sessions.answering(tmp_path, "working"))
    found = run("run", "--format", "json", *sessions.QUICK, *asked, "--", "sh", "-c", ALL).json
    assert (found["status"], found["new_commits"]) == ("timeout", 0)
    assert "1 of the user's own earlier work" in str(found["evidence"])
    assert os.path.exists(project / "notes/mine.txt")


IGNORED: dict[str, tuple[Act, int]] = {
    "as it was": (does("git add -f my.log", "git commit -qm Log"), 0),
    "with a line of the agent's": (
        does("echo mine >> my.log; git add -f my.log", "git commit -qm Log"),
        1,
    ),
    "beside a file of the agent's": (
        does("echo mine > new.txt; git add -f my.log new.txt", "git commit -qm Log"),
        1,
    ),
    "another one, which the agent wrote": (
        does("echo mine > new.log; git add -f new.log", "git commit -qm Log"),
        1,
    ),
    "moved": (does("mv my.log new.log; git add -f new.log", "git commit -qm Log"), 1),
    "not ignored any more": (does("echo > .gitignore", ALL), 1),
}


@pytest.mark.parametrize(("act", "count"), IGNORED.values(), ids=IGNORED)
def test_an_ignored_file_that_is_committed(act: Act, count: int, project: Path) -> None:
    does("echo '*.log' > .gitignore; git add .gitignore; git commit -qm Ignore")(project)
    write(project / "my.log", "users\n")
    # A file system's clock is a little behind.
    time.sleep(0.1)
    baseline = taken(project).model_copy(update={"at": datetime.now(UTC)})
    time.sleep(0.1)
    act(project)
    work = work_since(baseline, project)
    assert (work.users, work.new_commits, work.net_change) == (1 - count, count, bool(count))


def test_the_stash_of_an_earlier_iteration_is_not_taken_for_the_users(project: Path) -> None:
    STASH(project)
    baseline = taken(project).model_copy(update={"iteration": 2})
    does("git stash pop -q", ALL)(project)
    work = work_since(baseline, project)
    assert (work.users, work.new_commits) == (0, 1)
