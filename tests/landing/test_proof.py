"""The merged tree is proven by the project's own checks before the target moves."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from guard.plan.prompt import task_prompt
from guard.prove.prove import accept
from tests.support import git, run, write
from tests.support.landings import PLAN, LandingPlan


@pytest.fixture
def planned(repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> LandingPlan:
    names = [f"T{number}" for number in range(4)]
    planned = LandingPlan(repository, workspace, *names)
    monkeypatch.setenv("GUARD_PROVE__COMMAND", "test ! -e broken.txt")
    monkeypatch.setenv("GUARD_PROVE__RERUNS", "1")
    return planned


def test_a_refuted_batch_is_halved_until_it_is_known_whose_work_it_is(planned: LandingPlan) -> None:
    for name in ("T0", "T1", "T3"):
        planned.passes(name)
    planned.passes("T2", {"broken.txt": "broken\n"})
    report = planned.lands()
    outcomes = {task.task_id: task.outcome for task in report.tasks}
    assert outcomes == {"T0": "landed", "T1": "landed", "T2": "refuted", "T3": "landed"}
    assert report.exit_code == 17
    names = git(planned.root, "ls-tree", "--name-only", "guard/plan/plan").split()
    assert "broken.txt" not in names
    assert "T2" in planned.state.available_tasks
    assert "it fails the project's own checks" in task_prompt(planned.guard, "T2")


def test_two_tasks_that_are_right_alone_and_wrong_together(
    planned: LandingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_PROVE__COMMAND", "test ! -e T0.txt -o ! -e T1.txt")
    planned.passes("T0")
    planned.passes("T1")
    assert planned.outcomes() == {"T0": "landed", "T1": "refuted"}


def test_a_proof_that_breaks_the_state_lands_nothing_and_the_work_tree_is_saved(
    planned: LandingPlan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GUARD_PROVE__COMMAND", f"rm {planned.workspace}/events.jsonl")
    planned.passes("T0")
    write(planned.root / "left.txt", "precious\n")
    before = planned.tip("refs/heads/main")
    done = run("--workspace", planned.workspace, "plan", "land", cwd=planned.root)
    assert done.code in (5, 6), done
    assert "landed" not in done.out
    assert "T0.txt" not in git(planned.root, "ls-tree", "--name-only", PLAN)
    assert planned.tip("refs/heads/main") == before
    told = re.search(r"saved: guard (.*) DIR", done.err)
    assert told, done
    assert run(*shlex.split(told[1]), tmp_path / "back", cwd=planned.root).code == 0
    assert (tmp_path / "back/left.txt").read_text() == "precious\n"


REVIEWED = "def test_sum():\n    assert 1 + 1 == {}\n"


@pytest.fixture
def rewritten(planned: LandingPlan, monkeypatch: pytest.MonkeyPatch) -> LandingPlan:
    write(planned.root / "calc.py", "def add(a, b):\n    return a + b\n")
    write(
        planned.root / "tests/test_calc.py",
        "from calc import add\n\n\ndef test_sum():\n    assert add(1, 1) == 2\n",
    )
    git(planned.root, "add", "-A")
    git(planned.root, "commit", "-q", "-m", "Calc")
    monkeypatch.setenv("GUARD_PROVE__COMMAND", f"{sys.executable} -m pytest -q")
    planned.passes(
        "T0",
        {
            "calc.py": "def add(a, b):\n    return a + b + 1\n",
            "tests/test_calc.py": "from calc import add\n\n\ndef test_sum():\n    assert add(1, 1) == 3\n",
        },
    )
    return planned


def test_rewritten_tests_wait_for_a_person(rewritten: LandingPlan) -> None:
    tip = rewritten.tip("guard/task/T0")
    report = rewritten.lands()
    assert (report.tasks[0].outcome, report.exit_code) == ("review", 14)
    assert f"guard prove --accept {tip[:12]}" in report.tasks[0].detail
    assert rewritten.state.completed_tasks == ("T0",)
    accept(rewritten.guard, tip)
    assert rewritten.outcomes() == {"T0": "landed"}


def test_rewritten_tests_that_the_settings_allow_land(
    rewritten: LandingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_PROVE__ALLOW_TEST_CHANGES", "true")
    assert rewritten.outcomes() == {"T0": "landed"}


def test_rewritten_tests_that_the_plan_allows_land(rewritten: LandingPlan) -> None:
    rewritten.reloads({"T0": {"may_change_tests": True}})
    assert rewritten.outcomes() == {"T0": "landed"}
