"""Commits from elsewhere: what was fetched, pushed in or unbundled is not the agent's; what the agent pushed is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guard.core.work.count import Work, count_work
from guard.git.history import read_history
from tests.support import commit, git, write
from tests.support.baselines import reader, taken, work_since

Act = Callable[[Path, Path], None]


@pytest.fixture
def upstream(repository: Path) -> Path:
    """Where others work: a repository whose `main` the project was cloned from; it takes pushes."""
    folder = repository.parent / "upstream"
    git(repository.parent, "init", "-q", "-b", "main", str(folder))
    for key, value in (
        ("user.name", "Somebody Else"),
        ("user.email", "else@example.com"),
        ("receive.denyCurrentBranch", "updateInstead"),
    ):
        git(folder, "config", key, value)
    commit(folder, "shared.txt")
    git(repository, "remote", "add", "origin", str(folder))
    git(repository, "pull", "-q", "origin", "main")
    git(repository, "fetch", "-q", "origin")
    git(repository, "branch", "-q", "--set-upstream-to=origin/main", "main")
    return folder


def five(upstream: Path) -> None:
    for number in range(5):
        commit(upstream, f"theirs{number}.txt")


def fast_forward(project: Path, upstream: Path) -> None:
    five(upstream)
    git(project, "pull", "-q", "--ff-only")


def fetch_and_merge(project: Path, upstream: Path) -> None:
    five(upstream)
    git(project, "fetch", "-q")
    git(project, "merge", "-q", "origin/main")


def fetch_into_branch(project: Path, upstream: Path) -> None:
    five(upstream)
    git(project, "fetch", "-q", "origin", "main:theirs")


def pull_by_path(project: Path, upstream: Path) -> None:
    """No remote-tracking ref tells of this one."""
    git(project, "remote", "remove", "origin")
    five(upstream)
    git(project, "pull", "-q", "--ff-only", str(upstream), "main")


def merge_by_path(project: Path, upstream: Path) -> None:
    commit(project, "mine.txt")
    git(project, "remote", "remove", "origin")
    five(upstream)
    git(project, "pull", "-q", "--no-rebase", "--no-edit", str(upstream), "main")


def rebase_by_path(project: Path, upstream: Path) -> None:
    commit(project, "mine.txt")
    git(project, "remote", "remove", "origin")
    five(upstream)
    git(project, "pull", "-q", "--rebase", str(upstream), "main")


def merge_both(project: Path, upstream: Path) -> None:
    commit(project, "mine.txt")
    five(upstream)
    git(project, "pull", "-q", "--no-rebase", "--no-edit")


def rebase_onto(project: Path, upstream: Path) -> None:
    commit(project, "mine.txt")
    five(upstream)
    git(project, "fetch", "-q")
    git(project, "rebase", "-q", "origin/main")


def pull_rebase(project: Path, upstream: Path) -> None:
    commit(project, "mine.txt")
    five(upstream)
    git(project, "pull", "-q", "--rebase")


def push(project: Path, upstream: Path) -> None:
    commit(project, "mine1.txt")
    commit(project, "mine2.txt")
    git(project, "push", "-q", "origin", "main")


def plumbing_and_push(project: Path, upstream: Path) -> None:
    """No reflog tells of each commit: only that the branch was pushed."""
    tip = git(project, "rev-parse", "HEAD").strip()
    for number in range(2):
        write(project / "mine.txt", f"{number}\n")
        git(project, "add", "mine.txt")
        tree = git(project, "write-tree").strip()
        tip = git(project, "commit-tree", "-p", tip, "-m", f"Mine {number}", tree).strip()
    git(project, "update-ref", "refs/heads/main", tip)
    git(project, "push", "-q", "origin", "main")


def plumbing_pushed_and_fetched(project: Path, upstream: Path) -> None:
    plumbing_and_push(project, upstream)
    git(project, "fetch", "-q")


def fetch_and_reset(project: Path, upstream: Path) -> None:
    five(upstream)
    git(project, "fetch", "-q", str(upstream), "main")
    git(project, "reset", "-q", "--hard", "FETCH_HEAD")


def fetch_and_point(project: Path, upstream: Path) -> None:
    five(upstream)
    git(project, "fetch", "-q", str(upstream), "main")
    git(project, "checkout", "-q", "FETCH_HEAD")
    git(project, "branch", "-f", "main")


def fetch_reset_and_fetch_again(project: Path, upstream: Path) -> None:
    """Git remembers only the last fetch; the words of the reset tell of the first."""
    fetch_and_reset(project, upstream)
    git(upstream, "branch", "older", "HEAD~3")
    git(project, "fetch", "-q", str(upstream), "older")


def push_and_fetch(project: Path, upstream: Path) -> None:
    push(project, upstream)
    git(project, "fetch", "-q")


def push_then_pull_more(project: Path, upstream: Path) -> None:
    push(project, upstream)
    five(upstream)
    git(project, "pull", "-q", "--ff-only")


def merged_elsewhere(project: Path, upstream: Path) -> None:
    """A branch is pushed, merged by a merge commit there, and comes back with `main`."""
    git(project, "checkout", "-q", "-b", "feature")
    commit(project, "mine.txt")
    git(project, "push", "-q", "origin", "feature")
    git(upstream, "merge", "-q", "--no-ff", "--no-edit", "feature")
    git(project, "checkout", "-q", "main")
    git(project, "pull", "-q", "--ff-only")
    git(project, "branch", "-q", "-D", "feature")


def fork_in_sync(project: Path, upstream: Path) -> None:
    """From one remote to another, nothing of one's own."""
    fork = project.parent / "fork.git"
    git(project.parent, "clone", "-q", "--bare", str(upstream), str(fork))
    git(project, "remote", "add", "fork", str(fork))
    five(upstream)
    git(project, "pull", "-q", "--ff-only", "origin", "main")
    git(project, "push", "-q", "fork", "main")


def fetched_only(project: Path, upstream: Path) -> None:
    five(upstream)
    git(project, "fetch", "-q")


def tags_fetched(project: Path, upstream: Path) -> None:
    git(upstream, "checkout", "-q", "--detach")
    five(upstream)
    git(upstream, "tag", "v1")
    git(project, "fetch", "-q", "origin", "tag", "v1")


def local_pull(project: Path, upstream: Path) -> None:
    """The other branch is one of this repository, and no reflog tells of its making."""
    write(project / "mine.txt", "mine\n")
    git(project, "add", "mine.txt")
    tree = git(project, "write-tree").strip()
    mine = git(project, "commit-tree", "-p", "HEAD", "-m", "Mine", tree).strip()
    git(project, "update-ref", "refs/heads/work", mine)
    git(project, "reset", "-q", "--hard")
    git(project, "pull", "-q", "--ff-only", ".", "work")


def pushed_in(project: Path, upstream: Path) -> None:
    five(upstream)
    git(upstream, "push", "-q", str(project), "HEAD:refs/heads/theirs")


def pushed_in_and_merged(project: Path, upstream: Path) -> None:
    pushed_in(project, upstream)
    git(project, "merge", "-q", "theirs")
    git(project, "branch", "-q", "-d", "theirs")


def pushed_to_checked_out(project: Path, upstream: Path) -> None:
    git(project, "config", "receive.denyCurrentBranch", "updateInstead")
    five(upstream)
    git(upstream, "push", "-q", str(project), "HEAD:main")


def pushed_beside(project: Path, upstream: Path) -> None:
    commit(project, "mine.txt")
    pushed_in(project, upstream)
    git(project, "merge", "-q", "--no-edit", "theirs")


def unbundled(*words: str) -> Act:
    """Take five commits out of a bundle, for which no ref and no FETCH_HEAD stands, and make a ref lead to them."""

    def act(project: Path, upstream: Path) -> None:
        five(upstream)
        git(upstream, "bundle", "create", "-q", "../theirs", "main")
        git(project, "bundle", "unbundle", "../theirs")
        git(project, *words, git(upstream, "rev-parse", "main").strip())

    return act


def pulled_bundle(project: Path, upstream: Path) -> None:
    five(upstream)
    git(upstream, "bundle", "create", "-q", "../theirs", "main")
    git(project, "pull", "-q", "--ff-only", "../theirs", "main")


def fetch_and_merge_id(project: Path, upstream: Path) -> None:
    five(upstream)
    git(project, "fetch", "-q", str(upstream), "main")
    git(project, "merge", "-q", git(upstream, "rev-parse", "main").strip())
    git(project, "remote", "remove", "origin")
    (project / ".git/FETCH_HEAD").unlink()


def fetch_elsewhere(project: Path, upstream: Path) -> None:
    five(upstream)
    wanted = "+refs/heads/*:refs/imported/*"
    git(project, "fetch", "-q", "--no-write-fetch-head", str(upstream), wanted)
    git(project, "merge", "-q", "refs/imported/main")


def merged_from_work_tree(project: Path, upstream: Path) -> None:
    git(project, "worktree", "add", "-q", "../linked", "-b", "work")
    commit(project.parent / "linked", "mine.txt")
    git(project, "merge", "-q", "work")
    git(project, "worktree", "remove", "../linked")
    git(project, "branch", "-q", "-d", "work")


def pull_then_revert_mine(project: Path, upstream: Path) -> None:
    fast_forward(project, upstream)
    commit(project, "mine.txt")
    git(project, "revert", "--no-edit", "HEAD")


def fetched_then(*words: str) -> Act:
    """Fetch five by path, and make copies of them."""

    def act(project: Path, upstream: Path) -> None:
        five(upstream)
        git(project, "fetch", "-q", str(upstream), "main")
        git(project, *words)

    return act


def pick_from_remote(project: Path, upstream: Path) -> None:
    commit(project, "mine.txt")
    five(upstream)
    git(project, "fetch", "-q")
    git(project, "cherry-pick", "origin/main~4..origin/main")


def pull_and_reword(project: Path, upstream: Path) -> None:
    fast_forward(project, upstream)
    git(project, "commit", "-q", "--amend", "-m", "Mine?")


def pull_and_add(project: Path, upstream: Path) -> None:
    fast_forward(project, upstream)
    write(project / "mine.txt", "mine\n")
    git(project, "add", "mine.txt")
    git(project, "commit", "-q", "--amend", "-m", "Mine")


def pull_and_rebase_again(project: Path, upstream: Path) -> None:
    fast_forward(project, upstream)
    git(project, "rebase", "-q", "--force-rebase", "HEAD~3")


def rebased_elsewhere(project: Path, upstream: Path) -> None:
    """A branch is pushed, and comes back with `main` as a copy that was made there."""
    git(project, "checkout", "-q", "-b", "feature")
    commit(project, "mine.txt")
    git(project, "push", "-q", "origin", "feature")
    commit(upstream, "theirs.txt")
    git(upstream, "cherry-pick", "feature")
    git(project, "checkout", "-q", "main")
    git(project, "pull", "-q", "--ff-only")


def commit_anew(*script: str, mine: bool = False) -> Act:
    """Fetch five by path, and commit their content once more, by lines of shell."""

    def act(project: Path, upstream: Path) -> None:
        if mine:
            commit(project, "mine.txt")
        five(upstream)
        git(project, "fetch", "-q", str(upstream), "main")
        for line in script:
            git(project, "-c", f"alias.x=!{line}", "x")

    return act


def change_both(*script: str) -> Act:
    """Change the head of a long file here and its end there, fetch, and commit their change once more."""

    def act(project: Path, upstream: Path) -> None:
        lines = [f"{number}\n" for number in range(40)]
        commit(upstream, "long.txt", "".join(lines))
        git(project, "pull", "-q", "--ff-only")
        commit(project, "long.txt", "".join(["mine\n", *lines]))
        commit(upstream, "long.txt", "".join([*lines, "theirs\n"]))
        git(project, "fetch", "-q", str(upstream), "main")
        for line in script:
            git(project, "-c", f"alias.x=!{line}", "x")

    return act


def own_branch_squashed(*script: str) -> Act:
    """The branch was pushed and fetched before the agent merges it."""

    def act(project: Path, upstream: Path) -> None:
        git(project, "checkout", "-q", "-b", "feature")
        commit(project, "mine.txt")
        git(project, "push", "-q", "origin", "feature")
        git(project, "checkout", "-q", "main")
        for line in script:
            git(project, "-c", f"alias.x=!{line}", "x")

    return act


def pull_and_restore(project: Path, upstream: Path) -> None:
    """What others changed and changed again, the agent changes back."""
    for text in ("first", "second"):
        commit(upstream, "shared.txt", f"{text}\n")
    git(project, "pull", "-q", "--ff-only")
    git(project, "checkout", "HEAD~", "--", "shared.txt")
    git(project, "commit", "-q", "-m", "Change it back")


def empty_by_chance(project: Path, upstream: Path) -> None:
    commit(upstream, "empty.txt", "")
    commit_anew("touch empty.txt", ALL)(project, upstream)


SQUASH = ("git merge -q --squash FETCH_HEAD", "git commit -qm Squash")
ALL = "git add -A && git commit -qm Anew"

STORIES: dict[str, tuple[Act, dict[str, Any]]] = {
    "five pulled by fast-forward": (fast_forward, {"imported": 5}),
    "five fetched and merged by fast-forward": (fetch_and_merge, {"imported": 5}),
    "five fetched into a local branch": (fetch_into_branch, {"imported": 5}),
    "five pulled by path": (pull_by_path, {"imported": 5}),
    "one commit, five merged by path": (
        merge_by_path,
        {"new_commits": 1, "imported": 5, "merges": 1},
    ),
    "one commit, rebased onto five by path": (rebase_by_path, {"new_commits": 1, "imported": 5}),
    "one commit, five merged": (merge_both, {"new_commits": 1, "imported": 5, "merges": 1}),
    "one commit, rebased onto five": (rebase_onto, {"new_commits": 1, "imported": 5}),
    "one commit, pulled with --rebase": (pull_rebase, {"new_commits": 1, "imported": 5}),
    "two commits, pushed": (push, {"new_commits": 2}),
    "two commits made by plumbing, pushed": (plumbing_and_push, {"new_commits": 2}),
    "two commits made by plumbing, pushed and fetched again": (
        plumbing_pushed_and_fetched,
        {"new_commits": 2},
    ),
    "five fetched by path, and the branch set to them": (fetch_and_reset, {"imported": 5}),
    "five fetched by path, checked out, and a branch made there": (
        fetch_and_point,
        {"imported": 5},
    ),
    "five fetched by path, the branch set to them, fetched again": (
        fetch_reset_and_fetch_again,
        {"imported": 5},
    ),
    "two commits, pushed and fetched again": (push_and_fetch, {"new_commits": 2}),
    "two commits pushed, five pulled on top": (
        push_then_pull_more,
        {"new_commits": 2, "imported": 5},
    ),
    "a branch merged on the other side": (merged_elsewhere, {"new_commits": 1, "imported": 1}),
    "a fork brought up to date": (fork_in_sync, {"imported": 5}),
    "fetched and left there": (fetched_only, {}),
    "a tag fetched": (tags_fetched, {"imported": 5}),
    "an own branch pulled from here": (
        local_pull,
        {
            "new_commits": 1,
            "warnings": ("nothing tells where 1 new commit came from: counted as the agent's",),
        },
    ),
    "five pushed in to a new branch": (pushed_in, {"imported": 5}),
    "five pushed in and merged": (pushed_in_and_merged, {"imported": 5}),
    "five pushed in to the branch that is checked out": (pushed_to_checked_out, {"imported": 5}),
    "one commit, five pushed in beside and merged": (
        pushed_beside,
        {"new_commits": 1, "imported": 5, "merges": 1},
    ),
    "five unbundled and merged by id": (unbundled("merge", "-q"), {"imported": 5}),
    "five unbundled and the branch set to them": (
        unbundled("reset", "-q", "--hard"),
        {"imported": 5},
    ),
    "five unbundled and the ref moved": (
        unbundled("update-ref", "refs/heads/main"),
        {"imported": 5},
    ),
    "five unbundled on a branch of their own": (unbundled("branch", "theirs"), {"imported": 5}),
    "five pulled from a bundle": (pulled_bundle, {"imported": 5}),
    "five fetched by path and merged by id, fetched again": (fetch_and_merge_id, {"imported": 5}),
    "five fetched into refs of their own and merged": (fetch_elsewhere, {"imported": 5}),
    "one commit of an own work tree that is gone": (
        merged_from_work_tree,
        {
            "new_commits": 1,
            "warnings": ("nothing tells where 1 new commit came from: counted as the agent's",),
        },
    ),
    "one commit, four picked from what was fetched": (
        pick_from_remote,
        {"new_commits": 1, "copies": 4},
    ),
    "two picked from what was fetched by path": (
        fetched_then("cherry-pick", "FETCH_HEAD~2..FETCH_HEAD"),
        {"copies": 2},
    ),
    "five pulled, the last with another message": (
        pull_and_reword,
        {"imported": 4, "copies": 1},
    ),
    "five pulled, something added to the last": (
        pull_and_add,
        {"new_commits": 1, "imported": 4},
    ),
    "five pulled, three rebased once more": (
        pull_and_rebase_again,
        {"imported": 2, "copies": 3},
    ),
    "a branch that comes back as a copy": (
        rebased_elsewhere,
        {"new_commits": 1, "imported": 2},
    ),
    "five squashed": (commit_anew(*SQUASH), {"copies": 1}),
    "one commit, five squashed": (
        commit_anew(*SQUASH, mine=True),
        {"new_commits": 1, "copies": 1},
    ),
    "five squashed beside a change to the same file": (
        change_both(*SQUASH),
        {"new_commits": 1, "imported": 1, "copies": 1},
    ),
    "one picked without a commit, and committed": (
        commit_anew("git cherry-pick -n FETCH_HEAD~2", "git commit -qm Anew"),
        {"copies": 1},
    ),
    "one picked without a commit beside a change to the same file": (
        change_both("git cherry-pick -n FETCH_HEAD", "git commit -qm Anew"),
        {"new_commits": 1, "imported": 1, "copies": 1},
    ),
    "two files checked out of what was fetched": (
        commit_anew("git checkout FETCH_HEAD -- theirs1.txt theirs3.txt", ALL),
        {"copies": 1},
    ),
    "a fetched tree restored": (
        commit_anew("git restore -s FETCH_HEAD -SW -- .", ALL),
        {"copies": 1},
    ),
    "a fetched tree read": (commit_anew("git read-tree -um HEAD FETCH_HEAD", ALL), {"copies": 1}),
    "a patch of what was fetched, applied": (
        commit_anew("git diff HEAD FETCH_HEAD | git apply --index", ALL),
        {"copies": 1},
    ),
    "mails of what was fetched, applied": (
        commit_anew("git format-patch -q --stdout HEAD..FETCH_HEAD | git am -q"),
        {"copies": 5},
    ),
    "five pulled and squashed": (
        commit_anew("git merge -q FETCH_HEAD", "git reset -q --soft HEAD~5", ALL),
        {"copies": 1},
    ),
    "five squashed, one edited since": (
        commit_anew(*SQUASH, "echo mine >> theirs1.txt", ALL),
        {"new_commits": 1, "copies": 1},
    ),
    "five squashed, one edited before the commit": (
        commit_anew(SQUASH[0], "echo mine >> theirs1.txt", ALL),
        {"new_commits": 1},
    ),
    "five squashed with a file of the agent's": (
        commit_anew(SQUASH[0], "echo mine > mine.txt", ALL),
        {"new_commits": 1},
    ),
    "a conflict in a squash, resolved": (
        commit_anew(
            "echo mine > theirs1.txt",
            ALL,
            "git merge -q --squash FETCH_HEAD; echo both > theirs1.txt",
            ALL,
        ),
        {"new_commits": 2},
    ),
    "the same file by chance, after the fetch": (
        commit_anew("echo text > theirs1.txt", ALL),
        {"copies": 1},
    ),
    "an empty file that others have too": (
        empty_by_chance,
        {"new_commits": 1},
    ),
    "an own branch squashed": (
        own_branch_squashed("git merge -q --squash feature", ALL),
        {"new_commits": 2},
    ),
    "an own branch fetched and squashed": (
        own_branch_squashed("git fetch -q origin feature", *SQUASH),
        {"new_commits": 2},
    ),
    "an own branch fetched and squashed, and deleted": (
        own_branch_squashed("git fetch -q origin feature", "git branch -q -D feature", *SQUASH),
        {"new_commits": 1},
    ),
    "a change of others taken back": (
        pull_and_restore,
        {"new_commits": 1, "imported": 2, "net_change": False},
    ),
    "a revert of one's own after a pull": (
        pull_then_revert_mine,
        {"new_commits": 2, "imported": 5, "net_change": False},
    ),
}
NAMES = ("new_commits", "imported", "merges", "copies", "lost", "rewritten")


@pytest.mark.parametrize(("act", "found"), STORIES.values(), ids=STORIES)
def test_after(act: Act, found: dict[str, Any], repository: Path, upstream: Path) -> None:
    baseline = taken(repository)
    act(repository, upstream)
    work = work_since(baseline, repository)
    expected = dict.fromkeys(NAMES, 0) | {"net_change": found.get("new_commits", 0) > 0}
    expected |= {"warnings": (), **found}
    assert {name: getattr(work, name) for name in expected} == expected


def without_reflogs(repository: Path) -> None:
    git(repository, "config", "core.logAllRefUpdates", "false")
    git(repository, "reflog", "expire", "--expire=now", "--all")
    for log in (repository / ".git" / "logs").rglob("*"):
        if log.is_file():
            log.unlink()


def found_without_reflogs(
    repository: Path, upstream: Path, act: Callable[[Path, Path], None]
) -> Work:
    without_reflogs(repository)
    baseline = taken(repository)
    act(repository, upstream)
    return work_since(baseline, repository)


def test_without_reflogs_what_was_pushed_counts_and_a_warning_says_so(
    repository: Path, upstream: Path
) -> None:
    work = found_without_reflogs(repository, upstream, push)
    assert work.new_commits > 0
    assert work.warnings == (
        "refs/remotes/origin/main has no reflog: guard counts pulled commits as new",
    )


def test_without_reflogs_what_was_pulled_is_known_by_the_fetch(
    repository: Path, upstream: Path
) -> None:
    work = found_without_reflogs(repository, upstream, fast_forward)
    assert (work.new_commits, work.imported, work.warnings) == (0, 5, ())


def test_a_rebase_of_what_the_user_had_repeats_it(repository: Path, upstream: Path) -> None:
    commit(repository, "users.txt")
    baseline = taken(repository)
    five(upstream)
    git(repository, "pull", "-q", "--rebase")
    work = work_since(baseline, repository)
    assert (work.new_commits, work.copies, work.rewritten, work.lost) == (0, 1, 1, 0)
    assert (work.imported, work.net_change) == (5, False)


def test_a_change_that_moved_within_its_file_is_the_same(repository: Path, upstream: Path) -> None:
    lines = [f"{number}\n" for number in range(40)]
    commit(upstream, "long.txt", "".join(lines))
    git(repository, "pull", "-q", "--ff-only")
    commit(repository, "long.txt", "".join([*lines, "users\n"]))
    baseline = taken(repository)
    commit(upstream, "long.txt", "".join(["theirs\n", *lines]))
    git(repository, "pull", "-q", "--rebase")
    work = work_since(baseline, repository)
    assert (work.new_commits, work.copies, work.rewritten, work.imported) == (0, 1, 1, 1)


def test_a_commit_that_a_hook_noted_is_made_here(repository: Path, upstream: Path) -> None:
    baseline = taken(repository)
    unbundled("reset", "-q", "--hard")(repository, upstream)
    head = git(repository, "rev-parse", "HEAD").strip()
    work = count_work(read_history(reader(repository), baseline, noted=frozenset({head})))
    assert (work.new_commits, work.imported) == (1, 4)


def test_commits_of_the_same_committer_that_nothing_tells_of_count_with_a_warning(
    repository: Path, upstream: Path
) -> None:
    git(upstream, "config", "user.email", "author@example.com")
    baseline = taken(repository)
    unbundled("merge", "-q")(repository, upstream)
    work = work_since(baseline, repository)
    assert (work.new_commits, work.imported) == (5, 0)
    assert "5 new commits came from: counted as the agent's" in work.warnings[0]


def test_a_mail_that_no_ref_knows_counts_with_a_warning(repository: Path, upstream: Path) -> None:
    commit(upstream, "theirs.txt")
    mail = git(upstream, "format-patch", "-q", "-1", "--stdout")
    write(repository.parent / "mail", mail)
    baseline = taken(repository)
    git(repository, "am", "-q", "../mail")
    work = work_since(baseline, repository)
    assert (work.new_commits, work.copies) == (1, 0)
    assert work.warnings == (
        "another author wrote 1 commit that `git am` applied: counted as the agent's",
    )
