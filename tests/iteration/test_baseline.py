"""Baselines of repositories in every state: what is recorded, what keeps it, and what is refused."""

import os
import shutil
from pathlib import Path

import pytest

from guard.errors import RepositoryProblem
from guard.git.history import read_history
from guard.git.reader import RepositoryReader
from guard.git.reflogs import read_moves, read_moves_by_git
from guard.iteration import baseline as baselines
from tests.support import commit, git, write
from tests.support.baselines import KEY, located, reader, recorded, taken, work_since
from tests.support.events import MOMENT

PIN = f"refs/guard/baseline/{KEY}"


@pytest.fixture
def project(repository: Path) -> Path:
    """Three commits on main."""
    for name in ("one.txt", "two.txt", "three.txt"):
        commit(repository, name)
    return repository


def test_what_is_recorded(project: Path) -> None:
    git(project, "branch", "other", "HEAD~1")
    git(project, "tag", "-a", "v1", "-m", "annotated", "HEAD~2")
    git(project, "tag", "blob", git(project, "hash-object", "-w", "one.txt").strip())
    write(project / "one.txt", "stashed\n")
    git(project, "stash")
    write(project / "mine.txt", "mine\n")
    event = recorded(project)
    head, first = (git(project, "rev-parse", name).strip() for name in ("HEAD", "HEAD~2"))
    assert (event.head, event.branch) == (head, "refs/heads/main")
    assert event.tree == git(project, "rev-parse", "HEAD^{tree}").strip()
    stash = git(project, "rev-parse", "refs/stash").strip()
    assert list(event.refs)[:2] == ["refs/heads/main", "refs/heads/other"]
    assert event.refs["refs/tags/v1"] == first
    assert set(event.refs) == {"refs/heads/main", "refs/heads/other", "refs/tags/v1", "refs/stash"}
    assert event.stash == (stash,)
    assert event.shallow is None
    assert event.reflogs == {"HEAD": (project / ".git/logs/HEAD").stat().st_size}
    assert [(file.path, file.untracked, file.left_by) for file in event.dirty] == [
        ("mine.txt", True, "user")
    ]
    assert (event.pin, event.pinned) == (PIN, git(project, "rev-parse", PIN).strip())
    assert event.warnings == ()
    parents = git(project, "rev-list", "--no-walk", "--parents", PIN).split()[1:]
    assert set(parents) == {*event.refs.values()}


def test_a_pin_is_a_sound_commit_that_touches_nothing(project: Path) -> None:
    before = git(project, "status", "--porcelain", "--branch")
    taken(project)
    assert git(project, "fsck", "--strict") == ""
    assert git(project, "status", "--porcelain", "--branch") == before
    assert git(project, "log", "-1", "--format=%an %cn", PIN) == "guard guard\n"


def test_a_pinned_baseline_outlives_a_garbage_collection(project: Path) -> None:
    baseline = taken(project)
    git(project, "reset", "-q", "--hard", "HEAD~2")
    git(project, "reflog", "expire", "--expire=now", "--all")
    git(project, "gc", "-q", "--prune=now")
    work = work_since(baseline, project)
    assert (work.new_commits, work.lost) == (0, 2)
    assert work.lost_tips == (baseline.head,)


def test_a_baseline_that_is_gone_for_good_is_an_error(project: Path) -> None:
    baseline = taken(project)
    git(project, "update-ref", "-d", PIN)
    git(project, "reset", "-q", "--hard", "HEAD~2")
    commit(project, "new.txt")
    git(project, "reflog", "expire", "--expire=now", "--all")
    git(project, "gc", "-q", "--prune=now")
    with pytest.raises(
        RepositoryProblem, match="the repository no longer has the baseline"
    ) as caught:
        work_since(baseline, project)
    assert "guard baseline" in (caught.value.hint or "")


def test_another_repository_in_its_place_is_an_error(project: Path) -> None:
    baseline = taken(project)
    shutil.rmtree(project / ".git")
    git(project, "init", "-q", "-b", "main")
    git(
        project,
        "-c",
        "user.name=a",
        "-c",
        "user.email=b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
    )
    with pytest.raises(RepositoryProblem, match="the repository no longer has the baseline"):
        work_since(baseline, project)


def test_a_pin_that_was_deleted_is_told_and_not_needed(project: Path) -> None:
    git(project, "branch", "other", "HEAD~1")
    baseline = taken(project)
    git(project, "update-ref", "-d", PIN)
    commit(project, "new.txt")
    work = work_since(baseline, project)
    assert work.new_commits == 1
    assert work.warnings == (f"another program moved or deleted {PIN} since the baseline",)


def test_a_pin_that_was_moved_is_not_believed(project: Path) -> None:
    """It would hide the commit."""
    baseline = taken(project)
    commit(project, "new.txt")
    git(project, "update-ref", PIN, "HEAD")
    work = work_since(baseline, project)
    assert (work.new_commits, len(work.warnings)) == (1, 1)


def test_a_repository_that_cannot_be_pinned_has_a_baseline_all_the_same(project: Path) -> None:
    write(project / ".git" / "refs" / "guard", "in the way\n")
    event = recorded(project)
    assert (event.pin, event.pinned) == (None, None)
    assert event.warnings[0].startswith("guard could not pin the baseline: git update-ref failed: ")
    baseline = taken(project)
    commit(project, "new.txt")
    assert work_since(baseline, project).new_commits == 1


def test_more_refs_than_are_listed_are_pinned_all_the_same(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "zz-last")
    last = commit(project, "last.txt")
    git(project, "checkout", "-q", "main")
    first = git(project, "rev-parse", "HEAD~2").strip()
    lines = [f"{first} refs/heads/b{number:05}" for number in range(baselines.MOST_REFS)]
    git(project, "pack-refs", "--all")
    packed = project / ".git" / "packed-refs"
    header, *known = packed.read_text().splitlines()
    write(
        packed,
        "\n".join([header, *sorted([*known, *lines], key=lambda line: line.split()[1])]) + "\n",
    )
    baseline = taken(project)
    assert (len(baseline.refs), baseline.refs_omitted) == (10_000, 2)
    assert last not in baseline.refs.values()
    git(project, "checkout", "-q", "zz-last")
    assert work_since(baseline, project).new_commits == 0
    commit(project, "new.txt")
    assert work_since(baseline, project).new_commits == 1


def test_what_was_lost_can_be_kept(project: Path) -> None:
    baseline = taken(project)
    lost = commit(project, "new.txt")
    git(project, "reset", "-q", "--hard", "HEAD~1")
    work = work_since(baseline, project)
    assert (work.lost, work.lost_tips) == (1, (lost,))
    ref = baselines.keep_lost(reader(project), baseline, work, MOMENT)
    assert ref == f"refs/guard/lost/{baseline.baseline}"
    git(project, "reflog", "expire", "--expire=now", "--all")
    git(project, "gc", "-q", "--prune=now")
    assert git(project, "cat-file", "-t", lost) == "commit\n"
    assert work_since(baseline, project).new_commits == 0
    more = work.model_copy(update={"lost_tips": (git(project, "rev-parse", "HEAD~1").strip(),)})
    assert baselines.keep_lost(reader(project), baseline, more, MOMENT) == ref
    assert lost in git(project, "rev-list", ref).split()
    none = work.model_copy(update={"lost_tips": ()})
    assert baselines.keep_lost(reader(project), baseline, none, MOMENT) is None


def test_an_empty_repository(repository: Path) -> None:
    baseline = taken(repository)
    assert (baseline.head, baseline.branch, baseline.pin) == (None, "refs/heads/main", None)
    nothing = work_since(baseline, repository)
    assert (nothing.new_commits, nothing.head, nothing.warnings) == (0, None, ())
    git(repository, "commit", "-q", "--allow-empty", "-m", "Empty")
    empty = work_since(baseline, repository)
    assert (empty.new_commits, empty.empty, empty.net_change) == (0, 1, False)
    commit(repository)
    work = work_since(baseline, repository)
    assert (work.new_commits, work.unrelated, work.net_change) == (1, False, True)


def test_a_detached_head(project: Path) -> None:
    git(project, "checkout", "-q", "--detach", "HEAD~1")
    baseline = taken(project)
    assert baseline.branch is None
    commit(project, "new.txt")
    work = work_since(baseline, project)
    assert (work.new_commits, work.on_other_branches, work.branch_changed) == (1, 0, False)
    assert work.commits[0].branch == "HEAD"
    git(project, "checkout", "-q", "main")
    gone = work_since(baseline, project)
    assert (gone.new_commits, gone.lost, gone.branch_changed) == (0, 1, True)


def test_a_linked_work_tree_is_its_own_subject(project: Path) -> None:
    git(project, "worktree", "add", "-q", "../linked", "-b", "helper")
    linked = project.parent / "linked"
    baseline = taken(linked)
    assert baseline.branch == "refs/heads/helper"
    assert set(baseline.reflogs) == {"HEAD", "main-worktree/HEAD"}
    commit(linked, "here.txt")
    commit(project, "there.txt")
    work = work_since(baseline, linked)
    assert (work.new_commits, work.on_other_branches, work.other_branches) == (
        2,
        1,
        ("refs/heads/main",),
    )
    git(project, "checkout", "-q", "--detach")
    commit(project, "detached.txt")
    work = work_since(baseline, linked)
    assert work.other_branches == ("refs/heads/main", "main-worktree/HEAD")


@pytest.mark.parametrize("pinned", [True, False], ids=["pinned", "with its pin deleted"])
def test_a_repository_of_sha256(pinned: bool, repository: Path) -> None:
    shutil.rmtree(repository / ".git")
    git(repository, "init", "-q", "-b", "main", "--object-format=sha256")
    git(repository, "config", "user.name", "Test Author")
    git(repository, "config", "user.email", "author@example.com")
    commit(repository, "one.txt")
    commit(repository, "two.txt")
    baseline = taken(repository)
    if not pinned:
        git(repository, "update-ref", "-d", PIN)
    assert len(baseline.head or "") == 64
    write(repository / "two.txt", "other\n")
    git(repository, "commit", "-q", "-a", "--amend", "--no-edit")
    git(repository, "commit", "-q", "--allow-empty", "-m", "Empty")
    work = work_since(baseline, repository)
    assert (work.new_commits, work.rewritten, work.empty, work.lost) == (1, 1, 1, 0)
    git(repository, "fsck", "--strict")


def test_a_shallow_clone(project: Path) -> None:
    git(project.parent, "clone", "-q", "--depth=1", f"file://{project}", "shallow")
    clone = project.parent / "shallow"
    baseline = taken(clone)
    assert baseline.shallow is not None
    git(
        clone, "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "x"
    )
    write(clone / "new.txt", "x\n")
    git(clone, "add", "new.txt")
    git(clone, "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "-m", "y")
    work = work_since(baseline, clone)
    assert (work.new_commits, work.empty, work.unrelated, work.warnings) == (1, 1, False, ())
    git(clone, "fetch", "-q", "--unshallow")
    deeper = work_since(baseline, clone)
    assert (deeper.new_commits, deeper.imported) == (1, 0)
    assert deeper.warnings == ("the shallow history ends elsewhere than at the baseline",)


def test_a_forged_end_of_history_brings_no_old_commits_back(project: Path) -> None:
    baseline = taken(project)
    git(project, "branch", "forged", "HEAD~1")
    write(project / ".git" / "shallow", git(project, "rev-parse", "HEAD"))
    git(project, "commit", "-q", "--allow-empty", "-m", "Empty")
    work = work_since(baseline, project)
    assert (work.new_commits, work.empty) == (0, 1)
    assert work.warnings == ("the shallow history ends elsewhere than at the baseline",)


def test_a_fetch_of_limited_depth_does_not_break_the_count(project: Path) -> None:
    git(project.parent, "clone", "-q", str(project), "far")
    far = project.parent / "far"
    baseline = taken(project)
    for name in ("a.txt", "b.txt"):
        write(far / name, "x\n")
        git(far, "add", name)
        git(far, "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "-m", name)
    git(project, "fetch", "-q", "--depth=1", f"file://{far}", "main:far")
    commit(project, "new.txt")
    work = work_since(baseline, project)
    assert (work.new_commits, work.imported) == (1, 1)
    assert len(work.warnings) == 1


def test_a_forged_commit_graph_is_not_read(project: Path) -> None:
    """It says that a commit which changes nothing has another tree than its parent."""
    baseline = taken(project)
    git(project, "commit", "-q", "--allow-empty", "-m", "Empty")
    git(project, "commit-graph", "write", "--reachable")
    graph = project / ".git" / "objects" / "info" / "commit-graph"
    graph.chmod(0o600)
    true, other = (
        bytes.fromhex(git(project, "rev-parse", f"{name}^{{tree}}")) for name in ("HEAD", "HEAD~2")
    )
    data = graph.read_bytes()
    assert data.count(true) == 2
    write(graph, data.replace(true, other, 1))
    work = work_since(baseline, project)
    assert (work.new_commits, work.empty) == (0, 1)


def test_stashed_work_is_told(project: Path) -> None:
    write(project / "one.txt", "users\n")
    git(project, "stash")
    baseline = taken(project)
    write(project / "two.txt", "agents\n")
    git(project, "stash")
    work = work_since(baseline, project)
    newest = git(project, "rev-parse", "refs/stash").strip()
    assert (work.new_commits, work.stashed, work.lost) == (0, (newest,), 0)
    git(project, "stash", "drop", "-q", "stash@{1}")
    dropped = work_since(baseline, project)
    assert (dropped.stashed, dropped.warnings) == (
        (newest,),
        ("the stash has lost 1 earlier change",),
    )


def test_a_commit_of_what_the_user_had_stashed_is_not_the_agents(project: Path) -> None:
    write(project / "one.txt", "users\n")
    git(project, "stash")
    baseline = taken(project)
    git(project, "stash", "pop")
    git(project, "commit", "-q", "-a", "-m", "Take the stash")
    work = work_since(baseline, project)
    assert (work.new_commits, work.stashed) == (0, ())


def test_names_and_subjects_from_outside(project: Path) -> None:
    baseline = taken(project)
    git(project, "branch", os.fsdecode(b"caf\xe9-\xc3\xa9"))
    git(project, "checkout", "-q", os.fsdecode(b"caf\xe9-\xc3\xa9"))
    write(project / "x", "x\n")
    git(project, "add", "x")
    git(
        project,
        "commit",
        "-q",
        "-m",
        "\x1b]0;owned\x07 " + "long " * 200,
        "-m",
        "\nGuard-Rescues: no",
    )
    work = work_since(baseline, project)
    assert work.new_commits == 1
    line = work.commits[0]
    assert line.branch == "refs/heads/caf\\xe9-é"
    assert line.subject.startswith("\\x1b]0;owned\\x07 long")
    assert len(line.subject) < 300


@pytest.mark.parametrize(
    ("revision", "counts"),
    [
        ("HEAD~2", (2, 0)),
        ("main", (0, 0)),
        ("empty", (5, 0)),
        ("4b825dc642cb6eb9a060e54bf8d69288fbee4904", (5, 0)),
        ("old", (2, 0)),
    ],
    ids=[
        "two commits back",
        "the branch itself",
        "nothing",
        "the empty tree",
        "the tip of a branch",
    ],
)
def test_a_revision_as_baseline(revision: str, counts: tuple[int, int], project: Path) -> None:
    git(project, "branch", "old")
    commit(project, "four.txt")
    commit(project, "five.txt")
    git(project, "checkout", "-q", "-b", "elsewhere", "HEAD~4")
    commit(project, "elsewhere.txt")
    git(project, "checkout", "-q", "main")
    baseline = baselines.from_revision(reader(project), revision)
    work = work_since(baseline, project)
    assert (work.new_commits, work.lost) == counts
    assert work.warnings == ()
    assert (baseline.dirty, baseline.revision, baseline.at) == ((), revision, None)


def test_a_revision_that_was_amended_since(project: Path) -> None:
    old = git(project, "rev-parse", "HEAD").strip()
    git(project, "commit", "-q", "--amend", "-m", "Said better")
    baseline = baselines.from_revision(reader(project), old)
    work = work_since(baseline, project)
    assert (work.new_commits, work.copies, work.rewritten) == (0, 1, 1)


def test_a_revision_in_the_place_of_a_recorded_baseline(project: Path) -> None:
    write(project / "mine.txt", "users\n")
    known = taken(project)
    named = baselines.from_revision(reader(project), "HEAD~1")
    both = baselines.move_to_revision(known, named)
    assert (both.run, both.iteration, both.dirty) == (known.run, known.iteration, known.dirty)
    assert work_since(both, project).new_commits == 1


@pytest.mark.parametrize(
    "revision", ["nope", "--all", "-x", "", "HEAD:one.txt", "a\nb", "\udcff"], ids=repr
)
def test_a_revision_that_names_no_commit_is_an_error(revision: str, project: Path) -> None:
    with pytest.raises(
        RepositoryProblem, match="does not name a commit: git rev-parse failed"
    ) as caught:
        baselines.from_revision(reader(project), revision)
    assert caught.value.hint


def broken_branch(project: Path) -> None:
    write(project / ".git" / "refs" / "heads" / "main", "")


def branch_to_nowhere(project: Path) -> None:
    write(project / ".git" / "refs" / "heads" / "main", "1" * 40 + "\n")


def no_head(project: Path) -> None:
    write(project / ".git" / "HEAD", "")


def broken_config(project: Path) -> None:
    write(project / ".git" / "config", "[core\n")


def no_git_dir(project: Path) -> None:
    shutil.rmtree(project / ".git")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (broken_branch, "HEAD names refs/heads/main, which does not lead to a commit"),
        (branch_to_nowhere, "HEAD names refs/heads/main, which does not lead to a commit"),
        (no_head, "git for-each-ref failed: fatal: not a git repository"),
        (broken_config, "git for-each-ref failed: fatal: bad config line 1"),
    ],
    ids=[
        "an empty branch file",
        "a branch to a missing commit",
        "an empty HEAD",
        "broken settings",
    ],
)
def test_damage_is_an_error_and_never_no_work(damage: object, said: str, project: Path) -> None:
    baseline, repository = taken(project), located(project)
    assert callable(damage)
    damage(project)
    for attempt in (
        lambda: read_history(RepositoryReader(repository, os.environ), baseline),
        lambda: recorded(project),
    ):
        with pytest.raises(RepositoryProblem, match=said):
            attempt()


def test_a_branch_to_a_missing_commit_elsewhere_is_passed_over(project: Path) -> None:
    write(project / ".git" / "refs" / "heads" / "broken", "1" * 40 + "\n")
    baseline = taken(project)
    assert set(baseline.refs) == {"refs/heads/main"}
    commit(project, "new.txt")
    assert work_since(baseline, project).new_commits == 1


def test_a_git_dir_that_is_gone_is_an_error(project: Path) -> None:
    baseline, repository = taken(project), located(project)
    no_git_dir(project)
    gone = type(repository)(
        repository.root, repository.git_dir, repository.common_dir, git_dir_exists=False
    )
    with pytest.raises(RepositoryProblem, match="no longer exists"):
        read_history(RepositoryReader(gone, os.environ), baseline)


def test_a_git_that_does_not_end_is_an_error(project: Path, tmp_path: Path) -> None:
    baseline = taken(project)
    write(tmp_path / "bin" / "git", "#!/bin/sh\nsleep 60\n").chmod(0o755)
    slow = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    with pytest.raises(RepositoryProblem, match=r"`git for-each-ref` took longer than 0.2 s"):
        read_history(RepositoryReader(located(project), slow, 0.2), baseline)


def test_reflogs_read_by_git_say_the_same(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "work", "HEAD~1")
    git(project, "commit", "-q", "--allow-empty", "-m", "Subject: with colon")
    reader = RepositoryReader(located(project), os.environ)
    for name in ("HEAD", "refs/heads/work", "refs/heads/none"):
        plain, told = read_moves(reader, name), read_moves_by_git(reader, name)
        assert [(move.new, move.words) for move in plain] == [
            (move.new, move.words) for move in told
        ]
