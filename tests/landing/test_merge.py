"""What becomes of a task on the target: merged, in conflict, kept by lines or made anew, by no program of the repository's."""

import os
from pathlib import Path

import pytest

from guard.coordinator.record import record
from guard.core.coordinator.decide_agents import answer_question
from guard.errors import RepositoryProblem
from guard.plan.prompt import task_prompt
from tests.support import git, new_repository, write
from tests.support.landings import LandingPlan
from tests.support.reverts import state

LOCK = '[{"file": "lock.txt", "command": "cat parts/*.txt > lock.txt"}]'


@pytest.fixture
def planned(repository: Path, workspace: Path) -> LandingPlan:
    return LandingPlan(repository, workspace, "A", "B", "C", "D")


def put(planned: LandingPlan, files: dict[str, str], message: str = "Begin with more") -> None:
    for name, text in files.items():
        write(planned.root / name, text)
    git(planned.root, "add", "-A")
    git(planned.root, "commit", "-q", "-m", message)


def test_as_a_merge_it_keeps_its_commits(
    planned: LandingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_LANDING__MODE", "merge")
    planned.work("A", {"one.txt": "1\n"}, "feat: add one")
    planned.passes("A", {"two.txt": "2\n"})
    tip = planned.tip("guard/task/A")
    report = planned.lands()
    assert planned.tip(f"{report.target}^2") == tip
    assert planned.subjects() == ["feat: Add A", "Begin"]
    assert planned.shown("plan.md").splitlines()[2] == "- [x] A: Add A"


def test_a_conflict_is_rework_with_the_files_in_the_next_prompt(planned: LandingPlan) -> None:
    put(planned, {"same.txt": "begin\n"})
    planned.passes("A", {"same.txt": "A\n"})
    planned.passes("B", {"same.txt": "B\n"})
    report = planned.lands()
    outcomes = {task.task_id: task.outcome for task in report.tasks}
    assert (outcomes, report.exit_code) == ({"A": "landed", "B": "conflict"}, 1)
    assert planned.shown("same.txt") == "A\n"
    assert planned.state.available_tasks[0] == "B"
    assert "cannot be merged into guard/plan/plan: conflicts in same.txt" in task_prompt(
        planned.guard, "B"
    )
    assert planned.outcomes() == {}


def test_what_is_worked_on_again_lands_with_all_of_its_commits(planned: LandingPlan) -> None:
    put(planned, {"same.txt": "begin\n"})
    planned.passes("A", {"same.txt": "A\n"})
    planned.passes("B", {"same.txt": "B\n", "B.txt": "B\n"})
    planned.lands()
    tree = planned.tree("B")
    git(tree, "merge", "-q", "--no-edit", "-X", "ours", "guard/plan/plan")
    planned.passes("B", {"more.txt": "more\n"})
    assert planned.outcomes() == {"B": "landed"}
    texts = [planned.shown(name) for name in ("same.txt", "B.txt", "more.txt", "plan.md")]
    assert texts[:3] == ["B\n", "B\n", "more\n"]
    assert texts[3].splitlines()[2:4] == ["- [x] A: Add A", "- [x] B: Add B"]


def test_after_several_conflicts_a_person_is_asked(
    planned: LandingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_LANDING__ATTEMPTS", "1")
    put(planned, {"same.txt": "begin\n"})
    planned.passes("A", {"same.txt": "A\n"})
    planned.lands()
    asked = []
    for number in range(2):
        git(planned.root, "branch", "-f", "guard/task/B", "main")
        planned.passes("B", {"same.txt": f"B{number}\n"})
        report = planned.lands()
        asked.append((report.tasks[0].asks_person, report.exit_code))
    assert asked == [(False, 1), (True, 14)]
    (question,) = planned.state.pending_divine_questions
    assert (question.about, question.task_id) == ("landing", "B")
    record(planned.guard, answer_question(question_id=question.question_id, response="keep both"))
    assert planned.state.landing_setbacks == {}


def test_ten_tasks_that_touch_the_changelog_and_a_lock_file_land(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_LANDING__REGENERATE", LOCK)
    names = [f"T{number}" for number in range(10)]
    planned = LandingPlan(repository, workspace, *names)
    put(planned, {"CHANGELOG.md": "# Changes\n\n- begin\n", "lock.txt": "", "parts/0.txt": "0\n"})
    for name in names:
        planned.passes(
            name,
            {
                "CHANGELOG.md": f"# Changes\n\n- {name}\n- begin\n",
                f"parts/{name}.txt": f"{name}\n",
                "lock.txt": f"0\n{name}\n",
            },
        )
    report = planned.lands()
    assert (report.landed, report.exit_code) == (10, 0)
    lines = planned.shown("CHANGELOG.md").splitlines()
    assert sorted(lines[2:]) == sorted([*(f"- {name}" for name in names), "- begin"])
    assert sorted(planned.shown("lock.txt").split()) == ["0", *names]
    assert planned.state.landed_tasks.keys() == set(names)
    assert "- [ ]" not in planned.shown("plan.md")


def test_a_command_that_cannot_make_its_file_is_a_conflict(
    planned: LandingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = LOCK.replace("cat parts/*.txt > lock.txt", "echo no network; exit 3")
    monkeypatch.setenv("GUARD_LANDING__REGENERATE", failing)
    put(planned, {"lock.txt": "0\n"})
    for name in "AB":
        planned.passes(name, {"lock.txt": f"{name}\n"})
    report = planned.lands()
    assert [task.outcome for task in report.tasks] == ["landed", "conflict"]
    assert "exit code 3" in report.tasks[1].detail
    assert "no network" in report.tasks[1].detail


def test_edits_to_the_plan_on_a_tasks_branch_are_dropped(planned: LandingPlan) -> None:
    edited = (planned.root / "plan.md").read_text().replace("[ ]", "[x]") + "- [ ] E: Mine\n"
    planned.passes("A", {"A.txt": "A\n", "plan.md": edited})
    assert planned.outcomes() == {"A": "landed"}
    lines = planned.shown("plan.md").splitlines()[2:]
    assert lines == ["- [x] A: Add A", *(f"- [ ] {name}: Add {name}" for name in "BCD")]


def test_a_plan_that_a_branch_deleted_stays(planned: LandingPlan) -> None:
    tree = planned.tree("A")
    git(tree, "rm", "-q", "plan.md")
    planned.passes("A")
    assert planned.outcomes() == {"A": "landed"}
    assert planned.shown("plan.md").splitlines()[2] == "- [x] A: Add A"


def test_a_task_of_which_only_the_plan_changed_has_nothing_new(planned: LandingPlan) -> None:
    planned.passes("A", {"plan.md": "- [x] A: Add A\n"})
    assert planned.outcomes() == {"A": "already_landed"}
    assert planned.subjects() == ["Begin"]


def change(tree: Path, what: str) -> None:
    match what:
        case "mode":
            (tree / "file.txt").chmod(0o755)
        case "link":
            (tree / "file.txt").unlink()
            (tree / "file.txt").symlink_to("base.txt")
        case "rename":
            git(tree, "mv", "file.txt", "moved.txt")
        case "delete":
            git(tree, "rm", "-q", "file.txt")
        case "case":
            git(tree, "mv", "file.txt", "FILE.txt")
        case "folder":
            (tree / "file.txt").unlink()
            write(tree / "file.txt/inside", "x\n")
        case "edit":
            write(tree / "file.txt", "1\n2\n3\nfour\n")
        case _:
            write(tree / "file.txt", "one\n2\n3\n4\n")


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome", "names"),
    [
        ("first", "edit", "landed", ["file.txt"]),
        ("mode", "edit", "landed", ["file.txt"]),
        ("edit", "rename", "landed", ["moved.txt"]),
        ("rename", "edit", "landed", ["moved.txt"]),
        ("edit", "case", "landed", ["FILE.txt"]),
        ("edit", "delete", "conflict", ["file.txt"]),
        ("delete", "edit", "conflict", []),
        ("link", "edit", "conflict", ["file.txt"]),
        ("folder", "edit", "conflict", ["file.txt"]),
        ("rename", "case", "conflict", ["moved.txt"]),
    ],
)
def test_modes_links_renames_and_deletions(
    ours: str, theirs: str, outcome: str, names: list[str], planned: LandingPlan
) -> None:
    put(planned, {"file.txt": "1\n2\n3\n4\n"})
    for name, what in (("A", ours), ("B", theirs)):
        change(planned.tree(name), what)
        planned.passes(name, {})
    outcomes = planned.outcomes()
    assert outcomes == {"A": "landed", "B": outcome}
    listed = git(planned.root, "ls-tree", "--name-only", "guard/plan/plan").split()
    assert sorted(set(listed) - {"base.txt", "plan.md"}) == names
    git(planned.root, "fsck", "--strict")


def test_a_submodule_lands_as_its_commit(planned: LandingPlan, tmp_path: Path) -> None:
    inner = new_repository(tmp_path / "inner", "inner.txt")
    oid = git(inner, "rev-parse", "HEAD").strip()
    tree = planned.tree("A")
    (tree / "sub").mkdir()
    git(tree, "update-index", "--add", "--cacheinfo", f"160000,{oid},sub")
    git(tree, "commit", "-q", "-m", "Add a submodule")
    planned.passes("A")
    assert planned.outcomes() == {"A": "landed"}
    assert git(planned.root, "ls-tree", "guard/plan/plan", "sub").split()[:3:2] == ["160000", oid]


def test_two_tasks_on_one_branch_land_each_with_its_own_commits(planned: LandingPlan) -> None:
    tree = planned.root.parent / "feature"
    git(planned.root, "worktree", "add", "-q", "-b", "feature", os.fspath(tree))
    planned.works_on(tree, "A", "B")
    assert planned.outcomes("B") == {"B": "landed"}
    listed = git(planned.root, "ls-tree", "--name-only", "guard/plan/plan").split()
    assert listed == ["B.txt", "base.txt", "plan.md"]
    assert planned.outcomes() == {"A": "landed"}
    assert planned.subjects() == ["docs: Add A", "docs: Add B", "Begin"]


VECTORS = ("driver", "default", "filter", "hook", "textconv", "fsmonitor")


@pytest.mark.parametrize("vector", VECTORS)
def test_no_program_of_the_repositorys_runs(
    vector: str, planned: LandingPlan, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    runs = f"touch {mark}"
    put(planned, {"same.txt": "1\n2\n3\n4\n5\n6\n7\n"})
    planned.passes("A", {"same.txt": "one\n2\n3\n4\n5\n6\n7\n"})
    planned.passes("B", {"same.txt": "1\n2\n3\n4\n5\n6\nseven\n"})
    git(planned.root, "checkout", "-q", "--detach")
    ours, theirs = (planned.tip(f"guard/task/{name}") for name in "AB")
    plant(planned.root, vector, runs)
    planned.lands()
    assert not mark.exists()
    # The control: git itself, asked for the same merge, does run it.
    git(planned.root, "checkout", "-q", "-b", "control", ours)
    git(planned.root, "merge", "-q", "--no-edit", theirs)
    if vector == "textconv":
        git(planned.root, "show", "HEAD^")
    assert mark.exists()


def plant(root: Path, vector: str, runs: str) -> None:
    if vector == "hook":
        for name in ("post-checkout", "post-merge", "reference-transaction", "prepare-commit-msg"):
            write(root / ".git/hooks" / name, f"#!/bin/sh\n{runs}\n").chmod(0o755)
        return
    attributes = {"driver": "merge=evil", "filter": "filter=evil", "textconv": "diff=evil"}
    if vector in attributes:
        write(root / ".git/info/attributes", f"*.txt {attributes[vector]}\n")
    settings = {
        "driver": {"merge.evil.driver": f"{runs}; cp %A /dev/null"},
        "default": {"merge.evil.driver": runs, "merge.default": "evil"},
        "filter": {"filter.evil.smudge": f"{runs}; cat", "filter.evil.clean": f"{runs}; cat"},
        "textconv": {"diff.evil.textconv": f"{runs}; cat"},
        "fsmonitor": {"core.fsmonitor": f"{runs}; false #"},
    }
    for name, value in settings[vector].items():
        git(root, "config", name, value)


def test_a_git_that_cannot_merge_without_a_work_tree(
    planned: LandingPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned.passes("A")
    put(planned, {"other.txt": "other\n"})
    planned.lands("B")
    git(planned.root, "update-ref", "refs/heads/guard/plan/plan", "main")
    before = state(planned.root)
    real = git(planned.root, "--exec-path").strip() + "/git"
    old = f'#!/bin/sh\ncase " $* " in *" merge-tree --write-tree "*) echo usage >&2; exit 129;; esac\nexec {real} "$@"\n'
    write(tmp_path / "bin/git", old).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(RepositoryProblem, match="without a work tree") as caught:
        planned.lands()
    assert caught.value.exit_code == 4
    monkeypatch.undo()
    assert state(planned.root) == before
    assert planned.state.completed_tasks == ("A",)
