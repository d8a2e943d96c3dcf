"""A task's commits reverted in a real repository: what changes, what stays, and what is refused."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.rollback.prepare import RollbackStopped
from tests.support import commit, git, write
from tests.support.rescues import contents
from tests.support.reverts import rolled_back, state


@pytest.fixture
def project(repository: Path) -> Path:
    write(repository / ".gitignore", "*.log\n")
    for name in ("kept.txt", "changed.txt", "deep/er/gone.txt"):
        write(repository / name, f"{name}\n" * 20)
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Begin")
    return repository


def committed(root: Path, message: str = "Work") -> str:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)
    return git(root, "rev-parse", "HEAD").strip()


def edits(root: Path) -> None:
    write(root / "changed.txt", "another\n")
    write(root / "new/folder/file.txt", "new\n")


def deletes(root: Path) -> None:
    (root / "deep/er/gone.txt").unlink()


def renames(root: Path) -> None:
    git(root, "mv", "kept.txt", "elsewhere.txt")


def makes_executable(root: Path) -> None:
    (root / "kept.txt").chmod(0o755)


def links(root: Path) -> None:
    (root / "kept.txt").unlink()
    (root / "kept.txt").symlink_to("changed.txt")
    (root / "dangling").symlink_to("nowhere")


def writes_binary(root: Path) -> None:
    write(root / "changed.txt", bytes(range(256)) * 50)


def names_oddly(root: Path) -> None:
    for name in (b"-rf", b"new\nline", b"\xff\xfe", b":(top)x", 'quo"te é'.encode(), b"tr ail "):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(b"odd\n")


def folder_for_file(root: Path) -> None:
    (root / "kept.txt").unlink()
    write(root / "kept.txt/inside/file.txt", "a file in a folder\n")


def file_for_folder(root: Path) -> None:
    (root / "deep/er/gone.txt").unlink()
    (root / "deep/er").rmdir()
    (root / "deep").rmdir()
    write(root / "deep", "a file now\n")


def changes_line_ends(root: Path) -> None:
    write(root / ".gitattributes", "*.txt text eol=crlf\n")


WORKS = (
    edits,
    deletes,
    renames,
    makes_executable,
    links,
    writes_binary,
    names_oddly,
    folder_for_file,
    file_for_folder,
    changes_line_ends,
)


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
def test_the_work_is_taken_back(
    work: Callable[[Path], None], project: Path, workspace: Path
) -> None:
    before = contents(project)
    tree = git(project, "rev-parse", "HEAD^{tree}")
    work(project)
    oid = committed(project)
    done = rolled_back(project, workspace, [oid])
    assert git(project, "rev-parse", "HEAD").strip() == done.to_sha
    assert git(project, "rev-parse", "HEAD^").strip() == oid
    assert git(project, "rev-parse", "HEAD^{tree}") == tree
    assert contents(project) == before
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "for-each-ref", "refs/guard") == ""
    assert not list((project / ".git").glob("*guard*"))
    assert list((workspace / "rollbacks.d").iterdir()) == []
    git(project, "fsck", "--strict")


def test_what_the_revert_says(project: Path, workspace: Path) -> None:
    first, second = commit(project, "a.txt"), commit(project, "b.txt")
    rolled_back(project, workspace, [second, first])
    message = git(project, "log", "-1", "--format=%B")
    assert message.startswith("Revert task 1.1: Add a thing\n")
    assert first in message
    assert second in message
    assert (
        git(project, "log", "-1", "--format=%(trailers:key=Guard-Rollback,valueonly)") == "T1\n\n"
    )
    assert git(project, "log", "-1", "--format=%an <%ae>") == "Test Author <author@example.com>\n"
    assert "guard: rollback T1" in git(project, "reflog", "-1")


def test_without_an_identity_the_revert_is_guards(project: Path, workspace: Path) -> None:
    oid = commit(project, "a.txt")
    git(project, "config", "--unset", "user.name")
    git(project, "config", "--unset", "user.email")
    rolled_back(project, workspace, [oid])
    assert git(project, "log", "-1", "--format=%an <%ae>") == "guard <guard@localhost>\n"


def test_no_hook_filter_or_merge_driver_of_the_repository_runs(
    project: Path, workspace: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    for name in (
        "pre-commit",
        "commit-msg",
        "post-commit",
        "reference-transaction",
        "post-checkout",
    ):
        write(project / ".git/hooks" / name, f"#!/bin/sh\ntouch {mark}\n").chmod(0o755)
    git(project, "config", "merge.evil.driver", f"touch {mark}")
    git(project, "config", "merge.default", "evil")
    write(project / "changed.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    git(project, "add", "-A")
    tree = git(project, "write-tree").strip()
    base = git(project, "commit-tree", tree, "-p", "HEAD", "-m", "Lines").strip()
    git(project, "-c", "core.hooksPath=/dev/null", "reset", "-q", "--hard", base)
    quiet = ("-c", "core.hooksPath=/dev/null")
    write(project / "changed.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n")
    git(project, *quiet, "commit", "-q", "-am", "Task")
    oid = git(project, "rev-parse", "HEAD").strip()
    write(project / "changed.txt", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n")
    git(project, *quiet, "commit", "-q", "-am", "Other")
    mark.unlink(missing_ok=True)
    rolled_back(project, workspace, [oid])
    assert (project / "changed.txt").read_text() == "1\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    assert not mark.exists()


def test_others_commits_in_between_are_kept(project: Path, workspace: Path) -> None:
    mine = commit(project, "mine-1.txt")
    commit(project, "theirs-1.txt")
    mine_too = commit(project, "mine-2.txt")
    commit(project, "theirs-2.txt")
    rolled_back(project, workspace, [mine_too, mine])
    names = {path.name for path in project.glob("*-*.txt")}
    assert names == {"theirs-1.txt", "theirs-2.txt"}


def test_of_a_merge_everything_goes_that_it_brought(project: Path, workspace: Path) -> None:
    git(project, "checkout", "-q", "-b", "side")
    commit(project, "side-1.txt")
    commit(project, "side-2.txt")
    git(project, "checkout", "-q", "main")
    commit(project, "main.txt")
    git(project, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    merge = git(project, "rev-parse", "HEAD").strip()
    rolled_back(project, workspace, [merge])
    assert (project / "main.txt").exists()
    assert not list(project.glob("side-*"))


def test_the_first_commit_of_all(repository: Path, workspace: Path) -> None:
    oid = commit(repository, "a.txt")
    rolled_back(repository, workspace, [oid])
    assert contents(repository) == {}
    assert git(repository, "ls-files") == ""


def test_what_is_reverted_already_makes_no_commit(project: Path, workspace: Path) -> None:
    oid = commit(project, "a.txt")
    git(project, "revert", "--no-edit", oid)
    before = state(project)
    done = rolled_back(project, workspace, [oid])
    assert (done.to_sha, done.snapshot) == (before[1], None)
    assert state(project) == before


def test_a_repository_with_sha256(home: Path, tmp_path: Path, workspace: Path) -> None:
    root = tmp_path / "long"
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", str(root))
    git(root, "config", "user.name", "A")
    git(root, "config", "user.email", "a@example.com")
    commit(root, "a.txt")
    oid = commit(root, "b.txt")
    rolled_back(root, workspace, [oid])
    assert set(contents(root)) == {b"a.txt"}
    assert git(root, "status", "--porcelain") == ""


def test_a_detached_head_moves_itself(project: Path, workspace: Path) -> None:
    oid = commit(project, "a.txt")
    git(project, "checkout", "-q", "--detach")
    done = rolled_back(project, workspace, [oid], branch=None)
    assert git(project, "rev-parse", "HEAD").strip() == done.to_sha
    assert git(project, "rev-parse", "main").strip() == oid


def test_a_conflict_leaves_everything_as_it_was(project: Path, workspace: Path) -> None:
    write(project / "changed.txt", "theirs\n")
    oid = committed(project)
    write(project / "changed.txt", "others built on it\n")
    write(project / "other.txt", "other\n")
    committed(project, "Other")
    write(project / "dirty.txt", "dirty")
    before, index = state(project), (project / ".git/index").read_bytes()
    with pytest.raises(RollbackStopped) as stopped:
        rolled_back(project, workspace, [oid])
    assert (stopped.value.why, stopped.value.paths) == ("conflict", ("changed.txt",))
    assert state(project) == before
    assert (project / ".git/index").read_bytes() == index
    assert git(project, "for-each-ref", "refs/guard") == ""


def staged(root: Path) -> None:
    write(root / "changed.txt", "staged")
    git(root, "add", "changed.txt")


def unstaged(root: Path) -> None:
    write(root / "changed.txt", "unstaged")


def deleted(root: Path) -> None:
    (root / "changed.txt").unlink()


def untracked(root: Path) -> None:
    write(root / "deep/er/gone.txt", "mine")


def ignored(root: Path) -> None:
    write(root / "was.log", "mine")


def a_folder(root: Path) -> None:
    write(root / "deep/er/gone.txt/mine", "mine")


def a_link_for_the_folder(root: Path) -> None:
    shutil.rmtree(root / "deep")
    (root / "deep").symlink_to("new")


def hidden(root: Path) -> None:
    git(root, "update-index", "--assume-unchanged", "changed.txt")
    write(root / "changed.txt", "hidden")


def filtered(root: Path) -> None:
    write(root / ".git/info/attributes", "changed.txt filter=lfs\n")
    git(root, "config", "filter.lfs.smudge", "cat")


IN_THE_WAY: dict[Callable[[Path], None], str] = {
    staged: "changed.txt",
    unstaged: "changed.txt",
    deleted: "changed.txt",
    untracked: "deep/er/gone.txt",
    ignored: "was.log",
    a_folder: "deep/er/gone.txt",
    a_link_for_the_folder: "deep/er/gone.txt",
    hidden: "changed.txt",
    filtered: "changed.txt",
}


@pytest.mark.parametrize("dirt", IN_THE_WAY, ids=lambda dirt: dirt.__name__)
def test_a_file_that_would_change_and_is_not_as_committed_is_named(
    dirt: Callable[[Path], None], project: Path, workspace: Path
) -> None:
    write(project / "was.log", "tracked all the same\n")
    git(project, "add", "-f", "was.log")
    committed(project, "Log")
    edits(project)
    deletes(project)
    git(project, "rm", "-q", "was.log")
    oid = committed(project)
    dirt(project)
    before, index = state(project), (project / ".git/index").read_bytes()
    with pytest.raises(RollbackStopped) as stopped:
        rolled_back(project, workspace, [oid])
    assert stopped.value.why == "dirty"
    assert stopped.value.paths == (IN_THE_WAY[dirt],)
    assert state(project) == before
    assert (project / ".git/index").read_bytes() == index


def test_dirty_files_that_the_revert_does_not_touch_stay(project: Path, workspace: Path) -> None:
    edits(project)
    oid = committed(project)
    write(project / "kept.txt", "staged\n")
    git(project, "add", "kept.txt")
    write(project / "kept.txt", "and edited\n")
    write(project / "deep/er/gone.txt", "edited\n")
    write(project / "new/untracked.txt", "untracked\n")
    write(project / "some.log", "ignored\n")
    (project / "added.txt").write_text("added")
    git(project, "add", "-N", "added.txt")
    status = git(project, "status", "--porcelain", "-uall", "--ignored")
    mine = {k: v for k, v in contents(project).items() if k != b"new/folder/file.txt"}
    rolled_back(project, workspace, [oid])
    assert git(project, "status", "--porcelain", "-uall", "--ignored") == status
    found = contents(project)
    assert found.pop(b"changed.txt") != mine.pop(b"changed.txt")
    assert found == mine
    assert git(project, "show", ":kept.txt") == "staged\n"


def merging(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side", "HEAD~1")
    commit(root, "side.txt")
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-ff", "--no-commit", "side")


def detached(root: Path) -> None:
    git(root, "checkout", "-q", "--detach")


def elsewhere(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "other")


def locked(root: Path) -> None:
    write(root / ".git/index.lock", "")


@pytest.mark.parametrize("what", [merging, detached, elsewhere, locked], ids=lambda f: f.__name__)
def test_in_another_state_nothing_is_done(
    what: Callable[[Path], None], project: Path, workspace: Path
) -> None:
    edits(project)
    oid = committed(project)
    what(project)
    before = state(project)
    with pytest.raises(RollbackStopped) as stopped:
        rolled_back(project, workspace, [oid])
    assert stopped.value.why == "not_ready"
    assert state(project) == before


def test_a_commit_that_history_has_left_behind(project: Path, workspace: Path) -> None:
    oid = commit(project, "a.txt")
    git(project, "commit", "-q", "--amend", "-m", "Reworded")
    before = state(project)
    with pytest.raises(RollbackStopped) as stopped:
        rolled_back(project, workspace, [oid])
    assert stopped.value.why == "not_in_history"
    assert state(project) == before


def test_a_submodule_is_not_moved(project: Path, workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    git(
        other,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.c",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "1",
    )
    git(
        project,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(other),
        "sub",
    )
    oid = committed(project)
    before = state(project)
    with pytest.raises(RollbackStopped, match="submodule"):
        rolled_back(project, workspace, [oid])
    assert state(project) == before


def test_a_sparse_checkout_gets_no_file_outside_of_it(project: Path, workspace: Path) -> None:
    deletes(project)
    oid = committed(project)
    git(project, "sparse-checkout", "set", "--no-cone", "/*.txt")
    with pytest.raises(RollbackStopped, match="sparse"):
        rolled_back(project, workspace, [oid])


def commits_something(root: Path) -> None:
    commit(root, "another.txt")


def edits_the_file(root: Path) -> None:
    write(root / "changed.txt", "edited at the last moment\n")


def makes_the_file(root: Path) -> None:
    write(root / "deep/er/gone.txt", "made at the last moment\n")


@pytest.mark.parametrize(
    "what", [commits_something, edits_the_file, makes_the_file], ids=lambda f: f.__name__
)
def test_what_somebody_does_at_the_last_moment_stands(
    what: Callable[[Path], None], project: Path, workspace: Path
) -> None:
    edits(project)
    deletes(project)
    oid = committed(project)
    found = []

    def meanwhile() -> None:
        what(project)
        found.append(state(project))

    with pytest.raises(RollbackStopped) as stopped:
        rolled_back(project, workspace, [oid], meanwhile=meanwhile)
    assert stopped.value.why == "changed_meanwhile"
    assert [state(project)] == found
    assert not (project / ".git/index.lock").exists()
    assert list((workspace / "rollbacks.d").iterdir()) == []


def test_what_somebody_stages_at_the_last_moment_stays_staged(
    project: Path, workspace: Path
) -> None:
    edits(project)
    oid = committed(project)

    def meanwhile() -> None:
        write(project / "kept.txt", "staged at the last moment\n")
        git(project, "add", "kept.txt")

    rolled_back(project, workspace, [oid], meanwhile=meanwhile)
    assert git(project, "status", "--porcelain") == "M  kept.txt\n"
