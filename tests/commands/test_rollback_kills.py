"""A rollback killed with SIGKILL: whichever command comes next finishes or undoes it before it looks at anything."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from guard.cli import COMMANDS
from tests.support import commit, git, run
from tests.support.plan_repository import Planned
from tests.support.reverts import state

VICTIM = """
import os, signal, sys
from guard.errors import RepositoryProblem
from guard.rollback import carry_out as moving, stage as staging
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
def fail(*_, **__): raise RepositoryProblem("git took too long", "try again")
def forget(staged, real=staging.StagedRollback.forget): real(staged); die()
match sys.argv.pop(1):
    case "files_half_swapped": moving.move_branch.move_under_lock = die
    case "branch_moved": moving.settle = die
    case "git_fails_at_the_end": moving.settle = fail
    case "end_not_recorded": staging.StagedRollback.forget = forget
from guard.cli import main
main()
"""
OF_THE_WORK_TREE = {
    "baseline": ("baseline",),
    "check": ("check", "--baseline", "HEAD~1", "--no-probe", "--no-wait"),
    "rescue": ("rescue", "--baseline", "HEAD~1"),
    "run": ("run", "--no-probe", "--no-wait", "--", "true"),
    "loop": ("loop", "--max-iterations", "1", "--no-probe", "--no-wait", "--", "true"),
}
OF_THE_PLAN = {
    "plan show": ("plan", "show"),
    "plan next": ("plan", "next"),
    "plan tick": ("plan", "tick"),
    "plan dispatch": ("plan", "dispatch", "D.1", "--agent", "dev-D-1"),
    "event": ("event", "session_resumed"),
}
ALL = OF_THE_WORK_TREE | OF_THE_PLAN


def verbs(command: click.Command) -> Iterator[click.Command]:
    if isinstance(command, click.Group):
        for verb in command.commands.values():
            yield from verbs(verb)
    else:
        yield command


def settles(callback: Callable[..., Any] | None) -> bool:
    while callback is not None:
        if callback.__code__.co_name == "settle_first":
            return True
        callback = getattr(callback, "__wrapped__", None)
    return False


def test_a_command_settles_rollbacks_with_all_of_its_verbs_or_with_none() -> None:
    names = {words[0] for words in ALL.values()}
    for name in COMMANDS:
        found = {
            settles(verb.callback)
            for verb in verbs(import_module(f"guard.commands.{name}").command)
        }
        assert found == {name in names}, name


@pytest.fixture
def planned(repository: Path, workspace: Path) -> Planned:
    planned = Planned(repository, workspace)
    planned.complete("A-1", "one\n", "two\n")
    return planned


def killed(planned: Planned, when: str, *more: str) -> None:
    words = ["--workspace", str(planned.workspace), "rollback", "A.1", *more]
    done = run(when, *words, cwd=planned.root, script=VICTIM)
    assert done.code == -9, done.err
    assert planned.state.rollback_in_progress is not None
    assert "A-1" in planned.state.completed_tasks


def next_command(planned: Planned, name: str) -> str:
    done = run("--workspace", planned.workspace, *ALL[name], cwd=planned.root)
    assert done.code in (0, 10), done.err
    return done.err


@pytest.mark.parametrize("name", ALL)
def test_a_rollback_whose_branch_has_not_moved_is_undone(name: str, planned: Planned) -> None:
    before = state(planned.root)
    killed(planned, "files_half_swapped")
    assert not (planned.root / "A-1-0.txt").exists()
    assert "guard has undone a killed rollback of A.1" in next_command(planned, name)
    assert state(planned.root) == before
    assert planned.state.rollback_in_progress is None
    assert "A-1" in planned.state.completed_tasks
    assert "rollback_failed" in planned.events()


@pytest.mark.parametrize("name", ALL)
def test_a_rollback_whose_branch_has_moved_is_finished(name: str, planned: Planned) -> None:
    killed(planned, "branch_moved")
    reverted = git(planned.root, "rev-parse", "HEAD").strip()
    assert "guard has finished a killed rollback of A.1" in next_command(planned, name)
    assert git(planned.root, "rev-parse", "HEAD").strip() == reverted
    assert git(planned.root, "status", "--porcelain") == ""
    assert not (planned.root / "A-1-0.txt").exists()
    assert planned.state.rollback_in_progress is None
    assert "A-1" not in planned.state.completed_tasks
    assert list((planned.workspace / "rollbacks.d").iterdir()) == []


@pytest.mark.parametrize("name", OF_THE_PLAN)
def test_a_rollback_of_which_only_the_end_is_not_recorded(name: str, planned: Planned) -> None:
    killed(planned, "end_not_recorded")
    assert "guard has finished a killed rollback of A.1" in next_command(planned, name)
    assert planned.state.rollback_in_progress is None
    assert "A-1" not in planned.state.completed_tasks
    assert planned.events().count("task_rolled_back") == 1


def test_the_help_of_a_verb_sees_to_nothing(planned: Planned) -> None:
    killed(planned, "files_half_swapped")
    assert (
        run("--workspace", planned.workspace, "plan", "show", "--help", cwd=planned.root).code == 0
    )
    assert planned.state.rollback_in_progress is not None


def test_an_error_once_the_branch_has_moved_leaves_the_end_to_the_next_command(
    planned: Planned,
) -> None:
    words = ["--workspace", str(planned.workspace), "rollback", "A.1"]
    done = run("git_fails_at_the_end", *words, cwd=planned.root, script=VICTIM)
    assert done.code == 4, done.err
    assert "guard has finished a killed rollback of " in next_command(planned, "plan show")
    assert planned.state.rollback_in_progress is None
    assert "A-1" not in planned.state.completed_tasks
    assert "rollback_failed" not in planned.events()


@pytest.mark.parametrize(
    ("when", "ends"),
    [
        ("files_half_swapped", "rollback_failed"),
        ("branch_moved", "task_rolled_back"),
        ("end_not_recorded", "task_rolled_back"),
    ],
)
def test_a_detached_head_is_judged_where_it_is(
    when: str, ends: str, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    """Whichever work tree the next command runs in: its own HEAD has nothing to do with it."""
    commit(repository, "first.txt")
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "-q", "--detach", str(linked))
    planned = Planned(linked, workspace)
    planned.complete("A-1", "one\n", "two\n")
    killed(planned, when)
    done = run("--workspace", workspace, "plan", "show", cwd=repository)
    assert done.code == 0, done.err
    assert planned.state.rollback_in_progress is None
    assert planned.events()[-1] == ends
    moved = ends == "task_rolled_back"
    assert ("A-1" in planned.state.completed_tasks) is not moved
    assert (linked / "A-1-0.txt").exists() is not moved
    assert git(linked, "status", "--porcelain") == ""


@pytest.mark.parametrize("when", ["branch_moved", "end_not_recorded"])
def test_the_same_rollback_again_finishes_it_and_that_is_enough(
    when: str, planned: Planned
) -> None:
    planned.dispatch("B-1")
    begun = planned.state.task_commits["A-1"]
    killed(planned, when)
    reverted = git(planned.root, "rev-parse", "HEAD").strip()
    words = ("--workspace", planned.workspace, "rollback", "A.1", "--format", "json")
    done = run(*words, cwd=planned.root)
    assert done.code == 0, done.err
    report = done.json
    assert (report["done"], report["reason"], report["aborted"]) == (True, "finished", ["B-1"])
    (one,) = report["tasks"]
    assert (one["commit"], one["to_sha"]) == (begun.commit_sha, reverted)
    assert git(planned.root, "rev-parse", "HEAD").strip() == reverted
    assert "rollback_failed" not in planned.events()
    again = run(*words, cwd=planned.root)
    assert (again.code, again.json["reason"]) == (1, "not_completed"), "it is done already"


def test_a_person_who_repeats_a_killed_rollback_is_told(planned: Planned) -> None:
    killed(planned, "branch_moved")
    done = run("--workspace", planned.workspace, "rollback", "A.1", cwd=planned.root)
    assert done.code == 0, done.err
    assert "that was killed is finished now." in done.out.splitlines()[0]
    assert "guard restore" in done.out, "the snapshot from before is still known"


def test_a_rollback_that_was_undone_is_done_again(planned: Planned) -> None:
    killed(planned, "files_half_swapped")
    done = run("--workspace", planned.workspace, "rollback", "A.1", cwd=planned.root)
    assert done.code == 0, done.err
    assert "Rollback complete." in done.out
    assert planned.events()[-3:] == ["rollback_failed", "rollback_started", "task_rolled_back"]
