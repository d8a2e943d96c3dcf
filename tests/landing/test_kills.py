"""A landing killed anywhere, or raced: every task lands once, and nothing is lost."""

import random
from pathlib import Path
from typing import Any

import pytest

from guard.landing import settle_landing
from guard.landing.proof import prove_chain
from guard.rollback.rollback import rollback
from tests.support import git, write
from tests.support.landings import PLAN, LandingPlan
from tests.support.victims import Victims

KILLS, STEP = 2, 23


class LandingScene:
    """Three tasks that passed; each trial begins with a copy of the same repository and workspace."""

    def __init__(self, victims: Victims, planned: LandingPlan, target: str | None) -> None:
        self.victims, self.planned, self.target = victims, planned, target
        self.outcomes: list[str] = []
        self.begin = git(planned.root, "rev-parse", "HEAD").strip()

    def trial(self, number: int, **how: object) -> bool:
        """One landing that is killed; whether it was killed at all."""
        root, workspace = self.planned.copied(f"trial-{number}")
        answer = self.victims.serve("land", root, workspace, target=self.target, env={}, **how)
        copy = LandingPlan.of(root, workspace)
        settle_landing(copy.guard)
        assert copy.state.landing_in_progress is None
        landed = len(copy.state.landed_tasks)
        self.outcomes.append("after" if landed == 3 else "before")
        assert landed in (0, 3)
        copy.lands(target=self.target)
        self.assert_landed_once(copy)
        return answer["said"] is None

    def assert_landed_once(self, copy: LandingPlan) -> None:
        ref = f"refs/heads/{self.target}" if self.target else PLAN
        assert sorted(copy.subjects(ref)[:-1]) == ["docs: Add A", "docs: Add B", "docs: Add C"]
        assert set(copy.state.landed_tasks) == set("ABC")
        names = git(copy.root, "ls-tree", "--name-only", ref).split()
        assert names == ["A.txt", "B.txt", "C.txt", "base.txt", "plan.md"]
        assert git(copy.root, "branch", "--list", "guard/task/*") == ""
        assert len(git(copy.root, "for-each-ref", "refs/guard/landed").splitlines()) == 3
        status = git(copy.root, "status", "--porcelain").splitlines()
        assert status == [" M base.txt", "?? mine.txt"]
        assert (copy.root / "base.txt").read_text() == "a person's\n"
        assert not list((copy.root / ".git").rglob("*.lock"))
        assert git(copy.root, "for-each-ref", "refs/guard/rollback") == ""


@pytest.fixture
def planned(repository: Path, workspace: Path) -> LandingPlan:
    planned = LandingPlan(repository, workspace, "A", "B", "C")
    for name in "ABC":
        planned.passes(name)
    write(repository / "base.txt", "a person's\n")
    write(repository / "mine.txt", "mine\n")
    return planned


@pytest.mark.long
@pytest.mark.parametrize("target", [None, "main"], ids=["own branch", "checked out"])
def test_killed_before_one_call_or_another(
    target: str | None, victims: Victims, planned: LandingPlan
) -> None:
    scene = LandingScene(victims, planned, target)
    calls = 0 if target is None else STEP // 2
    while scene.trial(calls, calls=calls):
        calls += STEP
        assert calls < 600
    assert {"before", "after"} == set(scene.outcomes)


@pytest.mark.long
@pytest.mark.parametrize("everything", [False, True], ids=["alone", "with all it started"])
def test_killed_at_random(everything: bool, victims: Victims, planned: LandingPlan) -> None:
    scene = LandingScene(victims, planned, "main")
    chance = random.Random(int(everything))
    root, workspace = planned.copied("measured")
    lasted = victims.serve("land", root, workspace, target="main", env={})["lasted"]
    for number in range(KILLS):
        scene.trial(number, after=lasted * chance.uniform(0.2, 1.05), everything=everything)


def test_a_target_that_moves_meanwhile_is_merged_anew(
    planned: LandingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, moves = prove_chain, list[str]()

    def moved(*words: Any) -> object:
        if len(moves) < 3:
            tree = git(planned.root, "rev-parse", f"{PLAN}^{{tree}}").strip()
            words_of_git = ("commit-tree", tree, "-p", PLAN, "-m", f"Meanwhile {len(moves)}")
            moves.append(git(planned.root, *words_of_git).strip())
            git(planned.root, "update-ref", PLAN, moves[-1])
        return real(*words)

    monkeypatch.setattr("guard.landing.land.prove_chain", moved)
    report = planned.lands()
    assert (report.landed, len(moves)) == (3, 3)
    kept = ["Meanwhile 2", "Meanwhile 1", "Meanwhile 0", "Begin"]
    assert planned.subjects() == ["docs: Add C", "docs: Add B", "docs: Add A", *kept]


def test_two_landings_at_once_land_each_task_once(victims: Victims, planned: LandingPlan) -> None:
    said = victims.serve(
        "land together", planned.root, planned.workspace, target=None, env={}, times=3
    )["said"]
    # One that waits for the others too long gives up, and says that.
    assert sum(one["landed"] for one in said if one is not None) == 3
    assert sorted(planned.subjects()[:-1]) == ["docs: Add A", "docs: Add B", "docs: Add C"]


def test_a_task_that_is_rolled_back_meanwhile_does_not_land(
    planned: LandingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, undone = prove_chain, list[str]()

    def rolled_back(*words: Any) -> object:
        if not undone:
            options: dict[str, Any] = {"cascade": False, "dry": False, "tell": lambda _task: None}
            undone.append(rollback(planned.guard, "B", "no", **options).reason)
        return real(*words)

    monkeypatch.setattr("guard.landing.land.prove_chain", rolled_back)
    assert planned.outcomes() == {"A": "landed", "B": "not_audited", "C": "landed"}
    assert undone == ["rolled_back"]
    names = git(planned.root, "ls-tree", "--name-only", PLAN).split()
    assert names == ["A.txt", "C.txt", "base.txt", "plan.md"]


def test_commits_made_meanwhile_on_a_tasks_branch_are_kept_and_named(
    planned: LandingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, later = prove_chain, list[str]()

    def committed(*words: Any) -> object:
        if not later:
            later.append(planned.work("A", {"later.txt": "later\n"}))
            planned.leave("A")
        return real(*words)

    monkeypatch.setattr("guard.landing.land.prove_chain", committed)
    landed = {task.task_id: task for task in planned.lands().tasks}
    assert landed["A"].kept_branch == "refs/heads/guard/task/A"
    assert planned.tip("guard/task/A") == later[0]
    assert "later.txt" not in git(planned.root, "ls-tree", "--name-only", PLAN)
