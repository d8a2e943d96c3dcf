"""`guard rollback --event-id`, run again under the same id by a script that was interrupted."""

from pathlib import Path

import pytest

from tests.commands.test_rollback_kills import killed
from tests.support import Result, git, run
from tests.support.plan_repository import Planned


@pytest.fixture
def planned(repository: Path, workspace: Path) -> Planned:
    planned = Planned(repository, workspace)
    planned.complete("A-1")
    return planned


def rolled(planned: Planned, task: str, *more: str, id_: str = "r1") -> Result:
    words = ("rollback", task, "--event-id", id_, "--format", "json", *more)
    return run("--workspace", planned.workspace, *words, cwd=planned.root)


def outcome(done: Result) -> tuple[int, bool, str]:
    return done.code, done.json["done"], done.json["reason"]


def test_a_task_that_was_completed_anew_is_not_rolled_back_again(planned: Planned) -> None:
    assert outcome(rolled(planned, "A.1")) == (0, True, "rolled_back")
    planned.complete("A-1", "better\n")
    head, before = git(planned.root, "rev-parse", "HEAD"), planned.events()
    assert outcome(rolled(planned, "A.1")) == (0, True, "repeated")
    assert (git(planned.root, "rev-parse", "HEAD"), planned.events()) == (head, before)
    assert planned.state.completed_tasks == ("A-1",)
    assert outcome(rolled(planned, "A.1", id_="r2")) == (0, True, "rolled_back")


def test_one_that_another_command_has_finished_is_known(planned: Planned) -> None:
    killed(planned, "branch_moved", "--event-id", "r1")
    assert run("--workspace", planned.workspace, "plan", "show", cwd=planned.root).code == 0
    assert outcome(rolled(planned, "A.1")) == (0, True, "repeated")
    assert planned.events().count("task_rolled_back") == 1


def test_one_that_was_killed_is_finished_under_its_id(planned: Planned) -> None:
    killed(planned, "end_not_recorded", "--event-id", "r1")
    assert outcome(rolled(planned, "A.1")) == (0, True, "finished")
    assert outcome(rolled(planned, "A.1")) == (0, True, "repeated")


def test_one_that_was_undone_is_tried_again(planned: Planned) -> None:
    for _ in range(2):
        killed(planned, "files_half_swapped", "--event-id", "r1")
        assert run("--workspace", planned.workspace, "plan", "show", cwd=planned.root).code == 0
    assert outcome(rolled(planned, "A.1")) == (0, True, "rolled_back")
    assert outcome(rolled(planned, "A.1")) == (0, True, "repeated")
    ends = [one for one in planned.events() if one in ("rollback_failed", "task_rolled_back")]
    assert ends == ["rollback_failed", "rollback_failed", "task_rolled_back"]


def test_one_that_was_refused_leaves_the_id_free(planned: Planned) -> None:
    planned.complete("B-1")
    assert outcome(rolled(planned, "A.1"))[2] == "dependent_tasks_completed"
    assert outcome(rolled(planned, "A.1", "--cascade")) == (0, True, "rolled_back")
    assert outcome(rolled(planned, "A.1", "--cascade")) == (0, True, "repeated")


def test_the_id_of_something_else_is_refused(planned: Planned) -> None:
    planned.complete("D-1")
    note = ("event", "session_resumed", "--event-id", "note")
    assert run("--workspace", planned.workspace, *note, cwd=planned.root).code == 0
    assert outcome(rolled(planned, "A.1")) == (0, True, "rolled_back")
    before = planned.events()
    for task, id_ in (("D.1", "r1"), ("D.1", "note")):
        done = rolled(planned, task, id_=id_)
        assert (done.code, f"the id {id_} was used for another" in done.err) == (1, True)
    assert planned.events() == before
