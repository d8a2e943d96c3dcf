"""Conflicts are foreseen while agents still work, and nothing is written."""

from pathlib import Path

import pytest

from guard.coordinator.record import record
from guard.core.coordinator.decide_tasks import dispatch_developer
from guard.landing.foresee import foresee
from tests.support import git, run, write
from tests.support.landings import LandingPlan
from tests.support.reverts import state


@pytest.fixture
def planned(repository: Path, workspace: Path) -> LandingPlan:
    planned = LandingPlan(repository, workspace, "A", "B", "C", "D")
    for name, text in {"same.txt": "1\n2\n3\n4\n5\n6\n7\n", "CHANGELOG.md": "- begin\n"}.items():
        write(repository / name, text)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "More")
    return planned


def begins(planned: LandingPlan, name: str, files: dict[str, str]) -> None:
    record(planned.guard, dispatch_developer(task_id=name, agent_id=f"dev-{name}"))
    planned.work(name, files)


def test_a_pair_that_will_conflict_is_named_while_agents_work(planned: LandingPlan) -> None:
    planned.passes("A", {"same.txt": "one\n2\n3\n4\n5\n6\n7\n", "CHANGELOG.md": "- A\n- begin\n"})
    begins(planned, "B", {"same.txt": "eins\n2\n3\n4\n5\n6\n7\n"})
    begins(
        planned, "C", {"same.txt": "1\n2\n3\n4\n5\n6\nseven\n", "CHANGELOG.md": "- C\n- begin\n"}
    )
    before, objects = state(planned.root), sorted((planned.root / ".git/objects").rglob("*"))
    refs, known = git(planned.root, "for-each-ref"), planned.state
    found = foresee(planned.guard)
    assert [(conflict.tasks, conflict.paths) for conflict in found] == [(("A", "B"), ("same.txt",))]
    assert (state(planned.root), planned.state) == (before, known)
    assert git(planned.root, "for-each-ref") == refs
    assert sorted((planned.root / ".git/objects").rglob("*")) == objects
    shown = run("--workspace", planned.workspace, "plan", "show", cwd=planned.root).out
    assert "A and B will conflict in same.txt" in shown
    dry = run("--workspace", planned.workspace, "plan", "land", "--dry-run", cwd=planned.root).out
    assert "A and B will conflict in same.txt" in dry


def test_one_that_conflicts_with_the_target_is_named_alone(planned: LandingPlan) -> None:
    begins(planned, "A", {"same.txt": "one\n2\n3\n4\n5\n6\n7\n"})
    planned.passes("B", {"same.txt": "eins\n2\n3\n4\n5\n6\n7\n"})
    planned.lands()
    assert [conflict.tasks for conflict in foresee(planned.guard)] == [("A",)]


def test_a_file_where_another_task_has_a_folder_is_a_conflict(planned: LandingPlan) -> None:
    begins(planned, "A", {"thing": "a file\n"})
    begins(planned, "B", {"thing/inside.txt": "a folder\n"})
    assert [conflict.tasks for conflict in foresee(planned.guard)] == [("A", "B")]


def test_what_will_be_kept_by_lines_or_made_anew_is_no_conflict(
    planned: LandingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = '[{"file": "same.txt", "command": "touch ran; false"}]'
    monkeypatch.setenv("GUARD_LANDING__REGENERATE", lock)
    for name in "AB":
        begins(planned, name, {"same.txt": f"{name}\n", "CHANGELOG.md": f"- {name}\n- begin\n"})
    assert foresee(planned.guard) == ()


def test_without_a_plan_or_branches_there_is_nothing_to_foresee(planned: LandingPlan) -> None:
    assert foresee(planned.guard) == ()
