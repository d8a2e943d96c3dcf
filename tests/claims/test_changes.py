"""What an agent did since it was spawned: committed or not, here or in a linked work tree, and never less than the truth."""

import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from guard.claims.changes import changes_since, read_ground, tracked_files
from guard.core.agents.baseline import Ground
from guard.core.claims.evidence import WorkSinceBaseline
from guard.core.claims.runner_settings import RunnerSettings
from guard.core.claims.substance import Substance
from guard.errors import RepositoryProblem
from guard.git import changed_paths
from guard.git.dirty import MOST_LISTED
from guard.git.named_files import find_named
from tests.support import commit, git, new_repository, write
from tests.support.baselines import reader
from tests.support.git_hooks import commit_without_trace

Act = Callable[[Path], Any]
HOUR = timedelta(hours=1)


@pytest.fixture
def project(repository: Path) -> Path:
    """Three files, committed long ago."""
    for name in ("a.txt", "b.txt", "folder/c.txt"):
        write(repository / name, f"{name}\n")
    git(repository, "add", ".")
    at(repository, datetime(2020, 1, 1, tzinfo=UTC), "commit", "-q", "-m", "Begin")
    return repository


def at(project: Path, moment: datetime, *words: str) -> str:
    """Run git with another clock."""
    dated = {"GIT_COMMITTER_DATE": moment.isoformat(), "GIT_AUTHOR_DATE": moment.isoformat()}
    done = subprocess.run(
        ["git", *words], cwd=project, env={**os.environ, **dated}, check=True, capture_output=True
    )
    return done.stdout.decode()


def began(project: Path) -> Ground:
    return read_ground(reader(project))


def measured(ground: Ground, project: Path, spawned: datetime | None = None) -> WorkSinceBaseline:
    moment = spawned or datetime.now(UTC) - timedelta(minutes=1)
    return changes_since(ground, moment, reader(project))


def since(ground: Ground, project: Path, spawned: datetime | None = None) -> WorkSinceBaseline:
    """What was changed and how many commits count, without what else is known of it."""
    found = measured(ground, project, spawned)
    return WorkSinceBaseline(found.files, found.commits)


def edit(project: Path) -> None:
    write(project / "a.txt", "edited\n")


def commit_edit(project: Path) -> None:
    commit(project, "a.txt", "edited\n")


def rename(project: Path) -> None:
    git(project, "mv", "a.txt", "renamed.txt")
    git(project, "commit", "-q", "-m", "Rename")


def change_and_set_back(project: Path) -> None:
    commit(project, "a.txt", "edited\n")
    commit(project, "a.txt", "a.txt\n")


def set_back_in_part(project: Path) -> None:
    write(project / "b.txt", "edited\n")
    commit(project, "a.txt", "edited\n")
    git(project, "add", "b.txt")
    commit(project, "a.txt", "a.txt\n")


def commit_nothing(project: Path) -> None:
    git(project, "commit", "-q", "--allow-empty", "-m", "All done")


def commit_on_other_branch(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "topic")
    commit(project, "topic.txt")
    git(project, "checkout", "-q", "main")


def merge_with_own_change(project: Path) -> None:
    commit_on_other_branch(project)
    commit(project, "b.txt", "edited\n")
    git(project, "merge", "-q", "--no-commit", "topic")
    write(project / "folder/c.txt", "in the merge\n")
    git(project, "commit", "-q", "-a", "-m", "Merge")


def amend(project: Path) -> None:
    write(project / "b.txt", "amended\n")
    git(project, "commit", "-q", "-a", "--amend", "-m", "Amend")


def begin_anew(project: Path) -> None:
    git(project, "checkout", "-q", "--orphan", "anew")
    git(project, "rm", "-q", "-f", "a.txt")
    commit(project, "b.txt", "anew\n")


def detach(project: Path) -> None:
    git(project, "checkout", "-q", "--detach")
    commit(project, "a.txt", "detached\n")


def commit_by_a_wrong_clock(project: Path) -> None:
    write(project / "a.txt", "edited\n")
    at(project, datetime(2001, 1, 1, tzinfo=UTC), "commit", "-q", "-a", "-m", "Edit")


def stage_and_delete(project: Path) -> None:
    write(project / "b.txt", "staged\n")
    git(project, "add", "b.txt")
    (project / "a.txt").unlink()


@pytest.mark.parametrize(
    ("act", "files", "commits"),
    [
        pytest.param(lambda _: None, set(), 0, id="nothing"),
        pytest.param(edit, {"a.txt"}, 0, id="uncommitted"),
        pytest.param(lambda p: write(p / "new/x.txt", ""), {"new/x.txt"}, 0, id="untracked"),
        pytest.param(stage_and_delete, {"a.txt", "b.txt"}, 0, id="staged-and-deleted"),
        pytest.param(commit_edit, {"a.txt"}, 1, id="committed"),
        pytest.param(rename, {"a.txt", "renamed.txt"}, 1, id="both-names-of-a-rename"),
        pytest.param(change_and_set_back, set(), 0, id="changed-and-set-back"),
        pytest.param(commit_nothing, set(), 0, id="empty-commit"),
        pytest.param(set_back_in_part, {"b.txt"}, 2, id="set-back-in-part"),
        pytest.param(commit_on_other_branch, {"topic.txt"}, 1, id="on-another-branch"),
        pytest.param(merge_with_own_change, {"b.txt", "folder/c.txt", "topic.txt"}, 3, id="merge"),
        pytest.param(amend, {"b.txt"}, 1, id="amended-without-what-was-there"),
        pytest.param(begin_anew, {"a.txt", "b.txt"}, 1, id="orphan-without-what-was-there"),
        pytest.param(detach, {"a.txt"}, 1, id="detached"),
        pytest.param(commit_by_a_wrong_clock, {"a.txt"}, 1, id="committed-by-a-wrong-clock"),
    ],
)
def test_what_was_changed(project: Path, act: Act, files: set[str], commits: int) -> None:
    ground = began(project)
    act(project)
    assert since(ground, project) == WorkSinceBaseline(frozenset(files), commits)


def test_an_amended_commit_and_a_rebased_one_are_not_new_as_a_whole(project: Path) -> None:
    commit(project, "first.txt")
    commit(project, "second.txt")
    ground = began(project)
    amend(project)
    assert since(ground, project).files == {"b.txt"}
    git(project, "rebase", "-q", "--force-rebase", "--root")
    assert since(ground, project).files == {"b.txt"}


def test_what_was_dirty_before_is_not_the_agents(project: Path) -> None:
    edit(project)
    write(project / "notes.txt", "mine\n")
    write(project / "scratch.txt", "mine\n")
    ground = began(project)
    assert since(ground, project).files == frozenset()
    write(project / "notes.txt", "changed by the agent\n")
    (project / "scratch.txt").unlink()
    git(project, "checkout", "-q", "a.txt")
    assert since(ground, project).files == {"a.txt", "notes.txt", "scratch.txt"}


def test_the_users_dirty_file_that_the_agent_commits(project: Path) -> None:
    edit(project)
    ground = began(project)
    git(project, "commit", "-q", "-a", "-m", "Commit all")
    assert since(ground, project).files == frozenset()
    write(project / "a.txt", "and more of it\n")
    git(project, "commit", "-q", "-a", "-m", "Go on")
    assert since(ground, project).files == {"a.txt"}


@pytest.mark.parametrize(
    ("act", "words"),
    [
        pytest.param(commit_nothing, "1 empty commit", id="empty"),
        pytest.param(change_and_set_back, "2 commits that change nothing in sum", id="set-back"),
    ],
)
def test_what_does_not_count_is_named(project: Path, act: Act, words: str) -> None:
    ground = began(project)
    act(project)
    assert measured(ground, project).uncounted == (words,)


def test_a_commit_that_only_repeats_one_of_another_branch(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "topic")
    picked = commit(project, "topic.txt")
    git(project, "checkout", "-q", "main")
    ground = began(project)
    git(project, "cherry-pick", picked)
    assert since(ground, project) == WorkSinceBaseline(frozenset(), 0)


def test_what_another_agent_commits_in_its_own_work_tree(project: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(project, "worktree", "add", "-q", "-b", "topic", str(linked))
    ground = began(project)
    commit(linked, "theirs.txt")
    moment, theirs = datetime.now(UTC) - HOUR, {"refs/heads/topic", "worktrees/linked/HEAD"}
    assert changes_since(ground, moment, reader(project), theirs).files == frozenset()
    assert changes_since(ground, moment, reader(project)).files == {"theirs.txt"}


def blanks(project: Path) -> None:
    commit(project, "a.txt", "  a.txt \n\n")


def deletes_a_test(project: Path) -> None:
    git(project, "rm", "-q", "tests/test_c.py")
    commit(project, "a.txt", "edited\n")


def skips_a_test(project: Path) -> None:
    text = (project / "tests" / "test_c.py").read_text()
    write(project / "tests" / "test_c.py", f"import pytest\n\n\n@pytest.mark.skip\n{text}")


@pytest.mark.parametrize(
    ("act", "found"),
    [
        pytest.param(edit, Substance(), id="a-change"),
        pytest.param(blanks, Substance(only_blanks=True), id="blanks"),
        pytest.param(deletes_a_test, Substance(tests_removed=1), id="a-deleted-test"),
        pytest.param(skips_a_test, Substance(tests_skipped=1), id="a-skipped-test-uncommitted"),
        pytest.param(
            lambda p: write(p / "pytest.ini", "[pytest]\naddopts = -k smoke\n"),
            Substance(steering=RunnerSettings(disarmed=("pytest.ini",))),
            id="a-config-that-git-does-not-know",
        ),
        pytest.param(
            lambda p: write(p / "new.py", "def f():\n    pass\n"),
            Substance(functions=1, stubs=1),
            id="a-stub-that-git-does-not-know",
        ),
    ],
)
def test_what_the_changes_amount_to(project: Path, act: Act, found: Substance) -> None:
    commit(project, "tests/test_c.py", "def test_c():\n    assert 1 + 1 == 2\n")
    ground = began(project)
    act(project)
    assert measured(ground, project).substance == found


def test_names_that_are_no_text(project: Path) -> None:
    ground = began(project)
    (project / os.fsdecode(b"caf\xe9 \\.txt")).write_text("x")
    (project / "line\nbreak").write_text("x")
    commit(project, "grüße.txt")
    assert since(ground, project).files == {"caf\\xe9 \\\\.txt", "line\nbreak", "grüße.txt"}


def test_an_old_commit_of_another_branch_is_not_the_agents(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "old")
    commit_by_a_wrong_clock(project)
    git(project, "checkout", "-q", "main")
    ground = began(project)
    assert since(ground, project) == WorkSinceBaseline(frozenset(), 0)


def test_old_commits_that_are_pulled_are_not_the_agents(project: Path, tmp_path: Path) -> None:
    git(project, "clone", "-q", str(project), str(tmp_path / "upstream"))
    upstream = tmp_path / "upstream"
    git(upstream, "config", "user.name", "Other")
    git(upstream, "config", "user.email", "other@example.com")
    commit_by_a_wrong_clock(upstream)
    git(project, "remote", "add", "origin", str(upstream))
    ground = began(project)
    git(project, "pull", "-q", "--ff-only", "origin", "main")
    commit(project, "own.txt")
    assert since(ground, project) == WorkSinceBaseline(frozenset({"own.txt"}), 1)


def test_a_commit_that_a_hook_noted_is_the_agents(project: Path) -> None:
    ground = began(project)
    head = commit_without_trace(project, "own.txt")
    moment = datetime.now(UTC) - timedelta(minutes=1)
    unknown = changes_since(ground, moment, reader(project))
    noted = changes_since(ground, moment, reader(project), noted=frozenset([head]))
    assert (unknown.files, unknown.commits) == (frozenset(), 0)
    assert unknown.uncounted == ("1 commit of others",)
    assert (noted.files, noted.commits, noted.uncounted) == (frozenset(["own.txt"]), 1, ())


def test_a_linked_work_tree_from_which_the_agent_reports(project: Path, tmp_path: Path) -> None:
    ground = began(project)
    linked = tmp_path / "linked"
    git(project, "worktree", "add", "-q", "-b", "topic", str(linked))
    commit(linked, "committed.txt")
    write(linked / "new.txt", "x")
    (linked / "a.txt").unlink()
    write(project / "here.txt", "x")
    told = WorkSinceBaseline(frozenset({"committed.txt", "new.txt", "a.txt", "here.txt"}), 1)
    assert since(ground, linked) == told
    assert since(ground, project) == WorkSinceBaseline(frozenset({"committed.txt", "here.txt"}), 1)


def test_what_lay_in_a_linked_work_tree_before_is_not_the_agents(
    project: Path, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    git(project, "worktree", "add", "-q", "-b", "topic", str(linked))
    write(linked / "before.txt", "x")
    ground = began(project)
    spawned = datetime.now(UTC) + HOUR
    assert since(ground, linked, spawned).files == frozenset()
    assert since(ground, linked).files == {"before.txt"}


def test_a_detached_linked_work_tree(project: Path, tmp_path: Path) -> None:
    ground = began(project)
    linked = tmp_path / "linked"
    git(project, "worktree", "add", "-q", "--detach", str(linked))
    commit(linked, "committed.txt")
    assert since(ground, project) == WorkSinceBaseline(frozenset({"committed.txt"}), 1)


def test_a_linked_work_tree_inside_this_one_counts_what_is_dirty_in_it(project: Path) -> None:
    ground = began(project)
    git(project, "worktree", "add", "-q", "-b", "topic", str(project / "trees" / "one"))
    commit(project / "trees" / "one", "committed.txt")
    write(project / "trees" / "one" / "new.txt", "x")
    files = {"committed.txt", "trees/one/", "trees/one/new.txt"}
    assert since(ground, project).files == files


def test_a_clone_in_which_the_agent_worked(project: Path, tmp_path: Path) -> None:
    ground = began(project)
    clone = tmp_path / "clone"
    git(project, "clone", "-q", str(project), str(clone))
    git(clone, "config", "user.name", "Agent")
    git(clone, "config", "user.email", "agent@example.com")
    commit(clone, "cloned.txt")
    write(clone / "dirty.txt", "x")
    commit(project, "here.txt")
    told = WorkSinceBaseline(frozenset({"cloned.txt", "dirty.txt", "here.txt"}), 2)
    assert since(ground, clone) == told


def test_a_nested_repository(project: Path) -> None:
    ground = began(project)
    nested = new_repository(project / "nested", "committed.txt")
    write(nested / "new.txt", "x")
    assert since(ground, project).files == {"nested/", "nested/committed.txt", "nested/new.txt"}


def test_a_submodule_whose_new_commit_is_committed(project: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    git(project, "clone", "-q", str(project), str(library))
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    git(project, "commit", "-q", "-m", "Add a library")
    git(project / "lib", "config", "user.name", "Agent")
    git(project / "lib", "config", "user.email", "agent@example.com")
    ground = began(project)
    commit(project / "lib", "inside.txt")
    assert since(ground, project).files == {"lib", "lib/inside.txt"}
    git(project, "commit", "-q", "-a", "-m", "Take the new library")
    assert since(ground, project).files >= {"lib", "lib/inside.txt"}


def test_files_of_a_folder_that_is_listed_as_one(project: Path) -> None:
    ground = began(project)
    for number in range(MOST_LISTED + 1):
        write(project / "many" / f"{number}.txt", "x")
    assert any(file.path == "many/" for file in began(project).dirty)
    files = since(ground, project).files
    assert len(files) == MOST_LISTED + 1
    assert "many/7.txt" in files


def test_of_a_folder_that_was_listed_as_one_only_what_was_written_since(project: Path) -> None:
    for number in range(MOST_LISTED + 1):
        write(project / "many" / f"{number}.txt", "x")
    ground = began(project)
    assert since(ground, project, datetime.now(UTC) + HOUR).files == frozenset()
    (project / "many" / "8.txt").write_text("changed")
    newest = max(one.stat().st_ctime for one in (project / "many").iterdir() if one.stem != "8")
    os.utime(project / "many" / "8.txt")
    spawned = datetime.fromtimestamp(newest, UTC) + timedelta(seconds=2, milliseconds=1)
    while datetime.now(UTC) <= spawned:
        (project / "many" / "8.txt").write_text("changed later")
    assert since(ground, project, spawned).files == {"many/8.txt"}


def test_a_repository_without_a_commit(repository: Path) -> None:
    write(repository / "before.txt", "x")
    ground = began(repository)
    assert ground.head is None
    assert since(ground, repository) == WorkSinceBaseline(frozenset(), 0)
    commit(repository, "first.txt")
    write(repository / "new.txt", "x")
    assert since(ground, repository) == WorkSinceBaseline(frozenset({"first.txt", "new.txt"}), 1)


def test_a_shallow_clone(project: Path, tmp_path: Path) -> None:
    commit(project, "more.txt")
    clone = tmp_path / "clone"
    git(project, "clone", "-q", "--depth=1", f"file://{project}", str(clone))
    git(clone, "config", "user.name", "Agent")
    git(clone, "config", "user.email", "agent@example.com")
    ground = began(clone)
    commit(clone, "new.txt")
    assert since(ground, clone) == WorkSinceBaseline(frozenset({"new.txt"}), 1)


def test_a_history_that_was_cut_off_since_is_whole_for_guard(project: Path) -> None:
    ground = began(project)
    commit(project, "a.txt", "edited\n")
    last = commit(project, "b.txt", "edited\n")
    write(project / ".git" / "shallow", f"{last}\n")
    assert since(ground, project) == WorkSinceBaseline(frozenset({"a.txt", "b.txt"}), 2)


def lose_the_baseline(project: Path) -> None:
    amend(project)
    git(project, "reflog", "expire", "--expire=now", "--all")
    git(project, "gc", "-q", "--prune=now")


def break_head(project: Path) -> None:
    write(project / ".git" / "refs" / "heads" / "main", "0" * 39 + "1\n")


@pytest.mark.parametrize(
    ("act", "words"),
    [
        pytest.param(
            lose_the_baseline, "the repository no longer has the baseline", id="baseline-collected"
        ),
        pytest.param(break_head, "does not lead to a commit", id="head-leads-nowhere"),
        pytest.param(lambda p: shutil.rmtree(p / ".git"), "", id="no-git-directory"),
        pytest.param(shutil.rmtree, "no longer exists", id="no-work-tree"),
    ],
)
def test_what_cannot_be_told_is_an_error(project: Path, act: Act, words: str) -> None:
    ground, git = began(project), reader(project)
    act(project)
    os.chdir("/")
    with pytest.raises(RepositoryProblem) as told:
        changes_since(ground, datetime.now(UTC) - HOUR, git)
    assert words in told.value.message


def test_a_strange_repository_tells_nothing(project: Path, tmp_path: Path) -> None:
    other, unborn = new_repository(tmp_path / "other", "strange.txt"), tmp_path / "unborn"
    git(tmp_path, "init", "-q", str(unborn))
    with pytest.raises(RepositoryProblem, match="the repository no longer has the baseline"):
        since(began(project), other)
    with pytest.raises(RepositoryProblem, match="not in the repository in which"):
        since(began(unborn), other)


@pytest.mark.parametrize("text", ["0" * 39 + "1\n", "garbage\n", ""])
def test_a_broken_head_is_not_taken_for_an_empty_beginning(project: Path, text: str) -> None:
    write(project / ".git" / "refs" / "heads" / "main", text)
    with pytest.raises(RepositoryProblem):
        began(project)


def test_too_many_commits_are_an_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ground = began(project)
    for name in ("one", "two", "three"):
        commit(project, name)
    monkeypatch.setattr(changed_paths, "MOST_COMMITS", 3)
    with pytest.raises(RepositoryProblem, match="there are 3 new commits or more"):
        since(ground, project)


def test_too_many_paths_are_an_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ground = began(project)
    commit(project, "one")
    commit(project, "two")
    monkeypatch.setattr(changed_paths, "MOST_PATHS", 1)
    with pytest.raises(RepositoryProblem, match="more than 1 files"):
        since(ground, project)


def test_nothing_of_the_repository_is_run_or_written(project: Path) -> None:
    mark = project.parent / "mark"
    for key in ("core.fsmonitor", "diff.external", "filter.x.clean"):
        git(project, "config", key, f"touch {mark}; cat")
    write(project / ".gitattributes", "* filter=x\n")
    refs = git(project, "for-each-ref")
    ground = began(project)
    mark.unlink(missing_ok=True)
    edit(project)
    since(ground, project)
    assert not mark.exists()
    assert git(project, "for-each-ref") == refs


def there(project: Path, *names: str) -> frozenset[str]:
    return find_named(reader(project), names)


@pytest.mark.parametrize(
    ("name", "exists"),
    [
        ("a.txt", True),
        ("./a.txt", True),
        ("folder/c.txt", True),
        ("folder/", True),
        ("c.txt", True),
        ("deep/er/file.py", True),
        ("er/file.py", True),
        ("new.txt", True),
        ("link", True),
        ("folder/../a.txt", True),
        ("caf\\xe9", True),
        ("r/file.py", False),
        ("nothing.txt", False),
        ("ignored/x.log", True),
        ("x.log", False),
        ("deleted.txt", False),
        ("../outside.txt", False),
        ("folder/../../outside.txt", False),
        ("link/outside.txt", False),
        ("/etc/passwd", False),
        ("a\0b", False),
        ("", False),
        (".", False),
        ("\ud83d", False),
        ("x" * 5000, False),
    ],
)
def test_names_that_are_there(project: Path, name: str, exists: bool) -> None:
    commit(project, "below/deep/er/file.py")
    commit(project, "sub/deleted.txt")
    (project / "sub" / "deleted.txt").unlink()
    commit(project, ".gitignore", "ignored/\n")
    write(project / "ignored" / "x.log", "x")
    write(project / "sub" / "new.txt", "x")
    (project / os.fsdecode(b"caf\xe9")).write_text("x")
    write(project.parent / "outside.txt", "x")
    (project / "link").symlink_to("..")
    assert there(project, name, "a.txt") == ({name, "a.txt"} if exists else {"a.txt"})


def test_whole_paths_inside_the_work_tree_are_there(project: Path) -> None:
    inside = str(project / "folder" / "c.txt")
    assert there(project, inside, str(project / "c.txt")) == {inside}


def test_what_is_tracked(project: Path) -> None:
    write(project / "new.txt", "x")
    assert tracked_files(reader(project)) == {"a.txt", "b.txt", "folder/c.txt"}
