"""`guard rollback`: what the plan allows, what becomes of dependents, and what is recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

from guard.context.ids import new_id
from guard.core.coordinator.upkeep_events import RollbackStarted
from guard.core.rollback.report import RollbackReport
from guard.errors import Refused
from guard.rollback import settle_unrecorded
from guard.rollback.rollback import rollback
from tests.support import commit, git, run, write
from tests.support.plan_repository import Planned
from tests.support.reverts import state


@pytest.fixture
def planned(repository: Path, workspace: Path) -> Planned:
    return Planned(repository, workspace)


def rolled(planned: Planned, task: str, **how: Any) -> RollbackReport:
    options = {
        "reason": "it broke",
        "cascade": False,
        "dry": False,
        "tell": lambda _one: None,
        **how,
    }
    return rollback(planned.guard, task, **options)


def test_a_task_is_reverted_and_available_again(planned: Planned) -> None:
    planned.complete("A-1", "one\n", "two\n")
    planned.complete("D-1")
    before = planned.state.task_commits["A-1"]
    report = rolled(planned, "A.1")
    assert (report.done, report.reason) == (True, "rolled_back")
    (one,) = report.tasks
    assert (one.commit, len(one.commits), len(one.files)) == (before.commit_sha, 2, 2)
    names = {path.name for path in planned.root.glob("*.txt")}
    assert names == {"base.txt", "D-1-0.txt"}
    now = planned.state
    assert now.completed_tasks == ("D-1",)
    assert "A-1" in now.available_tasks
    assert set(now.task_commits) == {"D-1"}
    assert now.rollback_in_progress is None
    assert planned.events()[-2:] == ["rollback_started", "task_rolled_back"]


def test_completed_dependents_forbid_it(planned: Planned) -> None:
    for task in ("A-1", "B-1", "C-1"):
        planned.complete(task)
    before = state(planned.root)
    report = rolled(planned, "A-1")
    assert (report.done, report.reason) == (False, "dependent_tasks_completed")
    assert report.dependents == ("C-1", "B-1")
    assert state(planned.root) == before
    assert planned.events()[-1] == "rollback_blocked"


def test_cascade_takes_the_latest_first(planned: Planned) -> None:
    for task in ("A-1", "B-1", "C-1", "D-1"):
        planned.complete(task)
    report = rolled(planned, "A-1", cascade=True)
    assert [one.task_id for one in report.tasks] == ["C-1", "B-1", "A-1"]
    assert planned.state.completed_tasks == ("D-1",)
    assert planned.state.available_tasks == ("A-1",)
    subjects = git(planned.root, "log", "-3", "--format=%s").splitlines()
    assert subjects == ["Revert task A.1: Do A", "Revert task B.1: Do B", "Revert task C.1: Do C"]


def test_a_cascade_of_which_one_conflicts_changes_nothing(planned: Planned) -> None:
    planned.complete("A-1")
    planned.complete("B-1")
    commit(planned.root, "A-1-0.txt", "somebody built on it\n")
    before = state(planned.root)
    report = rolled(planned, "A-1", cascade=True)
    assert (report.reason, report.paths, report.tasks) == ("conflict", ("A-1-0.txt",), ())
    assert state(planned.root) == before
    assert planned.state.completed_tasks == ("A-1", "B-1")
    assert planned.events()[-1] == "rollback_failed"


def test_dependents_in_progress_are_aborted(planned: Planned) -> None:
    planned.complete("A-1")
    planned.dispatch("B-1")
    planned.dispatch("D-1")
    report = rolled(planned, "A-1")
    assert report.aborted == ("B-1",)
    now = planned.state
    assert [one.task_id for one in now.in_progress_tasks] == ["D-1"]
    assert now.blocked_tasks["B-1"] == ("A-1",)


@pytest.mark.parametrize(
    ("task", "reason"), [("nowhere", "unknown_task"), ("D-1", "not_completed")]
)
def test_what_is_not_completed_cannot_be_rolled_back(
    task: str, reason: str, planned: Planned
) -> None:
    report = rolled(planned, task)
    assert (report.done, report.reason) == (False, reason)


def test_without_a_plan(repository: Path, workspace: Path) -> None:
    planned = Planned.__new__(Planned)
    planned.root, planned.workspace = repository, workspace
    with pytest.raises(Refused, match="no plan"):
        rolled(planned, "A-1")


def test_a_dry_run_writes_nothing(planned: Planned) -> None:
    planned.complete("A-1")
    before, events = state(planned.root), planned.events()
    objects = sorted((planned.root / ".git/objects").rglob("*"))
    report = rolled(planned, "A-1", dry=True)
    assert (report.done, report.reason, report.paths) == (False, "planned", ("A-1-0.txt",))
    assert state(planned.root) == before
    assert planned.events() == events
    assert sorted((planned.root / ".git/objects").rglob("*")) == objects


@pytest.mark.parametrize("moved", [True, False], ids=["finished", "undone"])
def test_a_rollback_of_which_only_the_beginning_is_recorded(moved: bool, planned: Planned) -> None:
    """Killed when the repository was settled already: the branch tells what to record."""
    planned.complete("A-1")
    head = git(planned.root, "rev-parse", "HEAD").strip()
    git(planned.root, "revert", "--no-edit", "HEAD")
    to_sha = git(planned.root, "rev-parse", "HEAD").strip()
    if not moved:
        git(planned.root, "reset", "-q", "--hard", head)
    guard = planned.guard
    begun = RollbackStarted(
        at=guard.clock.now(),
        id=new_id(),
        task_id="A-1",
        commits=(head,),
        head=head,
        to_sha=to_sha,
        branch="main",
        reason="it broke",
    )
    with guard.writable_store.change() as change:
        change.append(begun)
    assert planned.state.rollback_in_progress is not None
    settle_unrecorded(planned.guard)
    assert planned.state.rollback_in_progress is None
    assert planned.events()[-1] == ("task_rolled_back" if moved else "rollback_failed")
    assert ("A-1" in planned.state.completed_tasks) is not moved


def test_with_nothing_under_way_nothing_is_done(planned: Planned) -> None:
    events = planned.events()
    settle_unrecorded(planned.guard)
    assert planned.events() == events


def test_what_a_person_reads(planned: Planned) -> None:
    planned.complete("A-1")
    oid = planned.state.task_commits["A-1"].commit_sha
    words = ("--workspace", planned.workspace, "rollback", "A-1", "--reason", "it \x1b[31mbroke")
    write(planned.root / "A-1-0.txt", "edited\n")
    refused = run(*words, cwd=planned.root)
    assert refused.code == 1
    assert "A-1-0.txt (changed)" in refused.out
    git(planned.root, "checkout", "-q", "A-1-0.txt")
    done = run(*words, cwd=planned.root)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "ROLLBACK REQUIRED: A.1"
    assert "Reason: it \\x1b[31mbroke" in lines
    assert f"Commit: {oid}" in lines
    assert "Files Affected: A-1-0.txt" in lines
    assert "Rollback complete." in lines
    assert any(line.startswith("A.1 returned to available queue") for line in lines)
    again = run(*words, cwd=planned.root)
    assert again.out.startswith("Cannot roll back A.1: A.1 is not completed")


def test_dependents_are_called_as_the_plan_spells_them(planned: Planned) -> None:
    planned.complete("A-1")
    planned.complete("B-1")
    planned.dispatch("C-1")
    words = ("--workspace", planned.workspace, "rollback", "A-1")
    refused = run(*words, cwd=planned.root)
    assert "completed tasks depend on A.1: B.1; --cascade" in refused.out
    done = run(*words, "--cascade", cwd=planned.root)
    assert "C.1 was aborted: it depends on what is gone" in done.out.splitlines()
    assert "-1" not in "".join(line for line in done.out.splitlines() if "queue" in line)


def test_what_a_script_reads(planned: Planned) -> None:
    planned.complete("A-1")
    words = ("--workspace", planned.workspace, "rollback", "A-1", "--format", "json")
    done = run(*words, cwd=planned.root)
    report = json.loads(done.out)
    assert (done.code, report["schema"], report["done"]) == (0, "guard/rollback/1", True)
    assert report["tasks"][0]["to_sha"] == git(planned.root, "rev-parse", "HEAD").strip()
    again = run(*words, cwd=planned.root)
    assert (again.code, again.json["reason"]) == (1, "not_completed")


@pytest.mark.parametrize("task", ["no such task", "A 1", "", "x" * 1000, "no \udcff UTF-8"])
def test_what_can_be_no_task_is_refused(task: str, planned: Planned) -> None:
    planned.complete("A-1")
    with pytest.raises(Refused, match="the plan has no task"):
        rolled(planned, task)
    assert planned.state.completed_tasks == ("A-1",)


def test_a_reason_that_is_no_text_is_recorded_as_it_can_be(planned: Planned) -> None:
    planned.complete("A-1")
    assert rolled(planned, "A-1", reason="no \udcff UTF-8").done
