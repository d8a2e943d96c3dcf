"""A rollback takes back exactly the task's own work, wherever it is, or says why it takes back nothing."""

import os
from pathlib import Path
from typing import Any

import pytest

from guard.coordinator.record import record
from guard.core.coordinator.decide_tasks import dispatch_developer, pass_audit, submit_for_audit
from guard.core.rollback.report import RollbackReport
from guard.rollback.rollback import rollback
from tests.support import commit, git, write
from tests.support.landings import PLAN, LandingPlan
from tests.support.reverts import state


@pytest.fixture
def planned(repository: Path, workspace: Path) -> LandingPlan:
    return LandingPlan(repository, workspace, "A", "B", needs={})


def rolled(planned: LandingPlan, task: str, root: Path | None = None, **how: Any) -> RollbackReport:
    options = {"reason": "no", "cascade": False, "dry": False, "tell": lambda _one: None, **how}
    return rollback(planned.guard_in(root or planned.root), task, **options)


def dispatched(planned: LandingPlan, *names: str) -> None:
    for name in names:
        record(planned.guard, dispatch_developer(task_id=name, agent_id=f"dev-{name}"))


def passed(planned: LandingPlan, name: str, root: Path | None = None, **more: Any) -> None:
    guard = planned.guard_in(root or planned.root)
    record(guard, submit_for_audit(task_id=name))
    verdict = pass_audit(
        task_id=name, agent_id=f"audit-{name}", evidence_summary="it works", **more
    )
    record(guard, verdict)


def tree_of(planned: LandingPlan, branch: str) -> Path:
    """A work tree of a developer's own, on a branch that guard knows nothing of."""
    folder = planned.root.parent / branch.replace("/", "-")
    git(planned.root, "worktree", "add", "-q", "-b", branch, os.fspath(folder))
    return folder


def work(root: Path, name: str, text: str = "", author: str = "Any One") -> str:
    write(root / f"{name}.txt", text or f"{name}\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", f"--author={author} <one@example.com>", "-m", f"Work on {name}")
    return git(root, "rev-parse", "HEAD").strip()


def texts(root: Path) -> set[str]:
    return {path.name for path in root.glob("*.txt")} - {"base.txt"}


def names_at(planned: LandingPlan, ref: str = PLAN) -> set[str]:
    names = git(planned.root, "ls-tree", "--name-only", ref).split()
    return {name for name in names if name.endswith(".txt")} - {"base.txt"}


def test_pass_recorded_on_main_before_the_merge(planned: LandingPlan) -> None:
    dispatched(planned, "A")
    tree = tree_of(planned, "dev-A")
    oid = work(tree, "A")
    passed(planned, "A")
    recorded = planned.state.task_commits["A"]
    assert (recorded.commit_sha, recorded.branch) == (oid, "dev-A")
    git(planned.root, "merge", "-q", "--no-ff", "dev-A", "-m", "Merge dev-A")
    report = rolled(planned, "A")
    assert (report.done, report.reason) == (True, "rolled_back")
    assert texts(planned.root) == set()


def test_pass_without_any_commit_is_no_work_to_revert(planned: LandingPlan) -> None:
    dispatched(planned, "A")
    passed(planned, "A", no_commits=True)
    before = state(planned.root)
    report = rolled(planned, "A")
    assert (report.done, report.reason) == (False, "no_commit_recorded")
    assert state(planned.root) == before
    assert planned.state.completed_tasks == ("A",)


@pytest.mark.parametrize("how", ["--no-ff", "--ff-only", "--squash", "rebase"])
def test_pass_recorded_in_the_work_tree_and_then_merged(how: str, planned: LandingPlan) -> None:
    dispatched(planned, "A")
    tree = tree_of(planned, "task/A")
    work(tree, "A")
    work(tree, "A2")
    passed(planned, "A", tree)
    if how != "--ff-only":
        work(planned.root, "other")
    if how == "rebase":
        git(planned.root, "cherry-pick", "main..task/A")
    else:
        git(planned.root, "merge", "-q", how, "task/A", *(("-m", "M") if how == "--no-ff" else ()))
    if how == "--squash":
        git(planned.root, "commit", "-q", "-m", "Squashed")
    work(planned.root, "later")
    refused = rolled(planned, "A", tree)
    assert (refused.done, refused.reason) == (False, "merged_elsewhere")
    report = rolled(planned, "A")
    assert (report.done, report.reason) == (True, "rolled_back")
    others = {"later.txt"} if how == "--ff-only" else {"later.txt", "other.txt"}
    assert texts(planned.root) == others


def test_merged_with_other_changes_in_the_same_commit_is_refused(planned: LandingPlan) -> None:
    dispatched(planned, "A")
    tree = tree_of(planned, "task/A")
    work(tree, "A")
    passed(planned, "A", tree)
    git(planned.root, "merge", "-q", "--squash", "task/A")
    work(planned.root, "mine")
    before = state(planned.root)
    report = rolled(planned, "A")
    assert (report.done, report.reason) == (False, "not_ready")
    assert "task/A" in report.detail
    assert rolled(planned, "A", tree).reason == "merged_elsewhere"
    assert state(planned.root) == before


def test_two_developers_on_one_branch_whose_commits_tell(planned: LandingPlan) -> None:
    dispatched(planned, "A", "B")
    one = work(planned.root, "A", author="dev-A")
    work(planned.root, "B", author="dev-B")
    two = work(planned.root, "A", "more\n", author="dev-A")
    passed(planned, "A")
    work(planned.root, "B", "more\n", author="dev-B")
    passed(planned, "B")
    commits = planned.state.task_commits
    assert commits["A"].commits == (two, one)
    assert len(commits["B"].commits) == 2
    assert rolled(planned, "A").reason == "rolled_back"
    assert texts(planned.root) == {"B.txt"}
    assert rolled(planned, "B").reason == "rolled_back"
    assert texts(planned.root) == set()


def test_two_developers_on_one_branch_whose_commits_do_not_tell(planned: LandingPlan) -> None:
    dispatched(planned, "A", "B")
    work(planned.root, "A")
    work(planned.root, "B")
    passed(planned, "A")
    before = state(planned.root)
    report = rolled(planned, "A")
    assert (report.done, report.reason) == (False, "shared")
    assert "B" in report.detail
    passed(planned, "B")
    assert planned.state.task_commits["B"].shared_with == ("A",)
    assert {rolled(planned, name).reason for name in "AB"} == {"shared"}
    assert state(planned.root) == before


def test_another_developer_that_turns_out_to_have_worked_elsewhere(planned: LandingPlan) -> None:
    dispatched(planned, "A", "B")
    work(planned.root, "A")
    passed(planned, "A")
    tree = tree_of(planned, "dev-B")
    git(tree, "reset", "-q", "--hard", "HEAD^")
    work(tree, "B")
    passed(planned, "B", tree)
    assert rolled(planned, "A").reason == "rolled_back"
    assert texts(planned.root) == set()


def test_two_tasks_on_one_branch_after_each_other(planned: LandingPlan) -> None:
    tree = tree_of(planned, "feature")
    for name in "AB":
        record(planned.guard_in(tree), dispatch_developer(task_id=name, agent_id=f"dev-{name}"))
        work(tree, name)
        passed(planned, name, tree)
    assert rolled(planned, "A", tree).reason == "rolled_back"
    assert texts(tree) == {"B.txt"}


@pytest.mark.parametrize("mode", ["squash", "merge"])
def test_a_landed_task_goes_from_the_target_that_is_not_checked_out(
    mode: str, planned: LandingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_LANDING__MODE", mode)
    planned.passes("A")
    planned.passes("B")
    planned.lands()
    before = state(planned.root)
    report = rolled(planned, "A")
    assert (report.done, report.reason) == (True, "rolled_back")
    assert names_at(planned) == {"B.txt"}
    assert state(planned.root) == before
    boxes = planned.shown("plan.md").splitlines()[2:]
    assert boxes == ["- [ ] A: Add A", "- [x] B: Add B"]
    (taken,) = report.tasks
    assert taken.to_sha == planned.tip()


@pytest.mark.parametrize("mode", ["squash", "merge"])
def test_landed_again_after_a_rollback_the_whole_work_is_back(
    mode: str, planned: LandingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_LANDING__MODE", mode)
    planned.passes("A", {"A.txt": "A\n", "A2.txt": "A2\n"})
    tip = planned.tip("guard/task/A")
    planned.lands()
    rolled(planned, "A")
    assert names_at(planned) == set()
    git(planned.root, "branch", "-f", "guard/task/A", tip)
    planned.passes("A", {"A3.txt": "A3\n"})
    assert planned.outcomes() == {"A": "landed"}
    assert names_at(planned) == {"A.txt", "A2.txt", "A3.txt"}


def test_work_that_a_person_merged_is_back_after_a_rollback_when_it_lands_again(
    planned: LandingPlan,
) -> None:
    planned.passes("A")
    tip = planned.tip("guard/task/A")
    planned.lands("B")
    git(planned.root, "update-ref", PLAN, tip)
    assert planned.outcomes() == {"A": "already_landed"}
    assert rolled(planned, "A").reason == "rolled_back"
    assert names_at(planned) == set()
    planned.passes("A", {"A3.txt": "A3\n"})
    assert planned.outcomes() == {"A": "landed"}
    assert names_at(planned) == {"A.txt", "A3.txt"}


def test_a_passed_task_that_has_not_landed_goes_from_its_own_branch(planned: LandingPlan) -> None:
    planned.passes("A")
    assert rolled(planned, "A").reason == "rolled_back"
    assert names_at(planned, "guard/task/A") == set()
    assert planned.outcomes() == {}


def test_later_edits_to_the_same_lines_are_a_conflict(planned: LandingPlan) -> None:
    planned.passes("A")
    planned.lands()
    planned.passes("B", {"A.txt": "edited\n"})
    planned.lands()
    tip = planned.tip()
    report = rolled(planned, "A")
    assert (report.done, report.reason, report.paths) == (False, "conflict", ("A.txt",))
    assert planned.tip() == tip
    assert planned.state.completed_tasks == ("A", "B")


def test_lines_of_a_changelog_go_alone(planned: LandingPlan) -> None:
    write(planned.root / "CHANGELOG.md", "# Changes\n\n- begin\n")
    git(planned.root, "add", "-A")
    git(planned.root, "commit", "-q", "-m", "Changelog")
    for name in "AB":
        planned.passes(name, {"CHANGELOG.md": f"# Changes\n\n- {name}\n- begin\n"})
    planned.lands()
    assert sorted(planned.shown("CHANGELOG.md").splitlines()[2:]) == ["- A", "- B", "- begin"]
    assert rolled(planned, "A").reason == "rolled_back"
    assert planned.shown("CHANGELOG.md") == "# Changes\n\n- B\n- begin\n"


def test_completed_dependents_forbid_it_and_cascade_takes_them_first(
    repository: Path, workspace: Path
) -> None:
    planned = LandingPlan(repository, workspace, "A", "B", needs={"B": ("A",)})
    planned.passes("A")
    planned.lands()
    planned.passes("B")
    planned.lands()
    report = rolled(planned, "A")
    assert (report.reason, report.dependents) == ("dependent_tasks_completed", ("B",))
    report = rolled(planned, "A", cascade=True)
    assert [task.task_id for task in report.tasks] == ["B", "A"]
    assert names_at(planned) == set()


def test_a_checked_out_target_moves_with_its_files(planned: LandingPlan) -> None:
    planned.passes("A")
    planned.lands(target="main")
    assert texts(planned.root) == {"A.txt"}
    write(planned.root / "mine.txt", "mine\n")
    elsewhere = tree_of(planned, "elsewhere")
    assert rolled(planned, "A", elsewhere).reason == "rolled_back"
    assert texts(planned.root) == {"mine.txt"}
    assert git(planned.root, "status", "--porcelain") == "?? mine.txt\n"


def test_a_checked_out_target_with_dirty_files_in_the_way_stays(planned: LandingPlan) -> None:
    planned.passes("A")
    planned.lands(target="main")
    write(planned.root / "A.txt", "a person's\n")
    before = state(planned.root)
    report = rolled(planned, "A")
    assert (report.done, report.reason, report.paths) == (False, "dirty", ("A.txt",))
    assert state(planned.root) == before


def test_a_target_that_a_person_rebased_has_the_same_work(planned: LandingPlan) -> None:
    planned.passes("A")
    planned.passes("B")
    planned.lands()
    work(planned.root, "other")
    git(planned.root, "branch", "-f", "copy", PLAN)
    git(planned.root, "checkout", "-q", "copy")
    git(planned.root, "rebase", "-q", "main")
    git(planned.root, "checkout", "-q", "main")
    git(planned.root, "update-ref", PLAN, "copy")
    assert rolled(planned, "A").reason == "rolled_back"
    assert names_at(planned) == {"B.txt", "other.txt"}


def test_a_target_that_lost_the_commit_is_refused(planned: LandingPlan) -> None:
    planned.passes("A")
    planned.lands()
    git(planned.root, "update-ref", PLAN, f"{PLAN}^")
    report = rolled(planned, "A")
    assert (report.done, report.reason) == (False, "not_in_history")


def test_a_target_that_was_merged_elsewhere_is_said(
    planned: LandingPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    planned.passes("A")
    planned.lands()
    git(planned.root, "merge", "-q", "--ff-only", "guard/plan/plan")
    assert rolled(planned, "A").reason == "rolled_back"
    assert "also on main" in capsys.readouterr().err
    assert names_at(planned) == set()


def test_the_rollback_of_a_landed_task_keeps_a_persons_later_commit(planned: LandingPlan) -> None:
    planned.passes("A")
    planned.lands(target="main")
    commit(planned.root, "mine.txt")
    assert rolled(planned, "A").reason == "rolled_back"
    assert texts(planned.root) == {"mine.txt"}
