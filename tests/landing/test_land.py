"""Tasks that passed their audit land on the target, each once, without touching anybody's work tree."""

from pathlib import Path

from tests.support import git
from tests.support.landings import LandingPlan
from tests.support.reverts import state


def test_a_task_lands_as_one_commit(repository: Path, workspace: Path) -> None:
    planned = LandingPlan(repository, workspace, "A", "B")
    planned.tree("A")
    planned.work("A", {"one.txt": "1\n"}, "feat: add one")
    planned.passes("A", {"two.txt": "2\n"})
    before, begin = state(repository), planned.tip("HEAD")
    report = planned.lands()
    assert (report.landed, report.exit_code, report.head) == (1, 0, begin)
    assert state(repository) == before
    assert planned.subjects() == ["feat: Add A", "Begin"]
    assert planned.tip(f"{report.target}^") == begin
    assert planned.shown("one.txt") + planned.shown("two.txt") == "1\n2\n"
    assert planned.shown("plan.md") == "# Plan\n\n- [x] A: Add A\n- [ ] B: Add B\n"
    trailers = git(
        repository, "log", "-1", "--format=%(trailers:key=Guard-Task,valueonly)", report.target
    )
    assert trailers.strip() == "A"
    commit = planned.state.task_commits["A"]
    assert (commit.commit_sha, commit.base_sha) == (report.to_sha, begin)
    assert commit.branch == "guard/plan/plan"


def test_it_lands_once(repository: Path, workspace: Path) -> None:
    planned = LandingPlan(repository, workspace, "A")
    planned.passes("A")
    first = planned.lands()
    again, named = planned.lands(), planned.lands("A")
    assert (again.tasks, again.to_sha) == ((), first.to_sha)
    assert [task.outcome for task in named.tasks] == ["already_landed"]
    assert named.to_sha == first.to_sha


def test_the_branch_goes_and_its_commits_are_kept(repository: Path, workspace: Path) -> None:
    planned = LandingPlan(repository, workspace, "A", "B")
    planned.passes("A")
    planned.passes("B")
    planned.work("B", {"later.txt": "not audited\n"})
    planned.leave("B")
    tips = [planned.tip(f"guard/task/{name}") for name in "AB"]
    a, b = planned.lands().tasks
    assert git(repository, "branch", "--list", "guard/task/*").split() == ["guard/task/B"]
    assert (a.kept_branch, b.kept_branch) == (None, "refs/heads/guard/task/B")
    assert "have not landed" in b.detail
    assert a.kept_ref
    assert planned.tip(a.kept_ref) == tips[0]
    assert b.kept_ref
    assert planned.tip(b.kept_ref) == planned.tip(f"{tips[1]}^")
    names = git(repository, "ls-tree", "--name-only", "guard/plan/plan").split()
    assert names == ["A.txt", "B.txt", "base.txt", "plan.md"]


def test_a_task_that_did_not_pass_does_not_land(repository: Path, workspace: Path) -> None:
    planned = LandingPlan(repository, workspace, "A")
    planned.work("A", {"a.txt": "a\n"})
    report = planned.lands("A")
    assert [(task.outcome, task.detail) for task in report.tasks] == [
        ("not_audited", "it is available")
    ]
    assert report.exit_code == 1
    assert planned.subjects() == ["Begin"]
