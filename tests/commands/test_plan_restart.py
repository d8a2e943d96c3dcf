"""`guard plan adopt`, `reset`, `retry`, and a repository that was made anew at the same path."""

import os
import shutil
from pathlib import Path

import pytest

import guard
from guard.context.invocation import Invocation
from tests.commands.test_plan import call, events, state, told, types
from tests.support import commit, git, write

PLAN = """# Plan

- [x] 1.1: Set up
- [ ] 1.2: Add the schema (depends: 1.1)
- [x] 2: Write it down
"""


@pytest.fixture
def project(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(repository)
    write(repository / "PLAN.md", PLAN)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Plan")
    call("plan", "load")
    return repository


def done_before(project: Path, task: str) -> str:
    write(project / "done.txt", "done\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", f"Do it\n\nGuard-Task: {task}")
    return git(project, "rev-parse", "HEAD").strip()


def test_ticked_boxes_are_adopted_and_not_called_audited(project: Path) -> None:
    assert events("plan", "adopt") == ["tasks_adopted"]
    assert state()["completed_tasks"] == ["1-1", "2"]
    assert state()["adopted_tasks"] == ["1-1", "2"]
    assert state()["available_tasks"] == ["1-2"]
    assert "task_complete" not in types(Invocation().store)
    assert told("plan-change", "plan", "adopt")["recorded_as"] == "nothing"


def test_a_commit_that_names_its_task_is_adopted_and_can_be_rolled_back(project: Path) -> None:
    oid = done_before(project, "1.2")
    call("plan", "adopt")
    assert state()["completed_tasks"] == ["1-1", "1-2", "2"]
    assert state()["task_commits"]["1-2"]["commit_sha"] == oid
    assert state()["plan_complete"]
    assert told("rollback", "rollback", "1.2")["reason"] == "rolled_back"
    assert not (project / "done.txt").exists()
    assert state()["adopted_tasks"] == ["1-1", "2"]
    assert told("rollback", "rollback", "2")["reason"] == "no_commit_recorded"


def test_a_named_task_is_adopted_by_the_plans_spelling(project: Path) -> None:
    assert call("plan", "adopt", "1.2")[0] == 0
    assert state()["completed_tasks"] == ["1-2"]
    assert call("plan", "adopt", "1.2")[0] == 1
    call("plan", "dispatch", "2", "--agent", "dev")
    assert call("plan", "adopt", "2")[0] == 1
    assert call("plan", "adopt", "nowhere")[0] == 1


def test_an_adoption_under_the_same_id_is_one(project: Path) -> None:
    first = told("plan-change", "plan", "adopt", "--event-id", "once")
    again = told("plan-change", "plan", "adopt", "--event-id", "once")
    assert (first["recorded_as"], again["recorded_as"]) == ("recorded", "repeated")


def test_after_a_reset_nothing_is_done(project: Path) -> None:
    call("plan", "adopt")
    call("plan", "ask", "Which?")
    assert events("plan", "reset", "--event-id", "r") == ["plan_reset"]
    assert state()["completed_tasks"] == []
    assert state()["adopted_tasks"] == []
    assert state()["pending_divine_questions"] == []
    assert state()["available_tasks"] == ["1-1", "2"]
    assert told("plan-change", "plan", "reset", "--event-id", "r")["recorded_as"] == "repeated"
    assert events("plan", "dispatch", "1.1", "--agent", "dev") == ["developer_dispatched"]


def test_a_plan_with_agents_at_work_is_not_reset(project: Path) -> None:
    call("plan", "dispatch", "1.1", "--agent", "dev")
    code, why = call("plan", "reset")
    assert (code, "agents are at work: dev" in why) == (1, True)
    assert state()["active_developers"] == {"dev": "1-1"}


def test_retry_closes_the_question_about_its_task_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_COORDINATOR__REDISPATCH_LIMIT", "0")
    call("plan", "dispatch", "1.1", "--agent", "dev")
    call("plan", "lost", "--agent", "dev")
    call("plan", "ask", "Which colour?")
    (about_task, other) = state()["pending_divine_questions"]
    assert about_task["task_id"] == "1-1"
    assert call("plan", "dispatch", "1.1", "--agent", "dev2")[0] == 1
    assert events("plan", "retry", "1.1", "--event-id", "t") == ["task_retried"]
    assert state()["pending_divine_questions"] == [other]
    assert state()["setbacks"] == {}
    assert (
        told("plan-change", "plan", "retry", "1.1", "--event-id", "t")["recorded_as"] == "repeated"
    )
    call("plan", "answer", other["question_id"], "blue")
    assert call("plan", "dispatch", "1.1", "--agent", "dev2")[0] == 0
    code, why = call("plan", "retry", "1.1")
    assert (code, "dev2 is at work on task 1.1" in why) == (1, True)


def test_a_completed_task_is_not_tried_again(project: Path) -> None:
    call("plan", "adopt")
    code, why = call("plan", "retry", "1.1")
    assert (code, "task 1.1 is complete" in why) == (1, True)


def test_a_repository_made_anew_at_the_same_path_has_no_plan_of_the_old_one(project: Path) -> None:
    call("plan", "adopt")
    shutil.rmtree(project / ".git")
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "user.name", "Another")
    git(project, "config", "user.email", "another@example.com")
    commit(project, "fresh.txt")
    for words in (("plan", "show"), ("plan", "next"), ("plan", "dispatch", "1.2", "--agent", "d")):
        code, why = call(*words)
        assert (code, "belongs to a repository that was here before" in why) == (1, True)
    assert call("plan", "load")[0] == 0
    assert state()["completed_tasks"] == []
    assert state()["available_tasks"] == ["1-1", "2"]


def test_the_same_repository_with_a_rewritten_history_keeps_its_plan(project: Path) -> None:
    call("plan", "adopt")
    git(project, "commit", "-q", "--amend", "-m", "Another message")
    assert call("plan", "show")[0] == 0


def test_the_same_from_python(project: Path) -> None:
    assert guard.plan_adopt(repo=project).completed == 2
    assert guard.plan_retry("1.2", event_id="again", repo=project).recorded_as == "recorded"
    assert guard.plan_retry("1.2", event_id="again", repo=project).recorded_as == "repeated"
    assert guard.plan_land(dry_run=True, repo=os.fspath(project)).landed == 0
    assert guard.plan_conflicts(repo=project) == ()
    assert guard.plan_reset(repo=project).completed == 0


def test_after_damage_in_the_middle_of_the_log_nothing_is_recorded(project: Path) -> None:
    call("plan", "adopt")
    call("plan", "dispatch", "1.2", "--agent", "dev")
    log = Invocation().workspace.path / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if b'"tasks_adopted"' in line)
    lines[at] = lines[at].replace(b'"1-1"', b'"9-9"')
    log.write_bytes(b"".join(lines))
    damaged = log.read_bytes()
    code, why = call("plan", "checkpoint", "--agent", "dev", "half")
    assert (code, "its hash does not match" in why) == (5, True)
    assert log.read_bytes() == damaged
    assert call("rebuild")[0] == 5
    said = told("rebuild", "rebuild", "--salvage")
    assert said["dropped_records"] == len(lines) - at
    assert "records from the damage on" not in call("rebuild")[1]
    assert events("plan", "adopt") == ["tasks_adopted"]


def test_failures_name_tasks_as_the_plan_does(project: Path) -> None:
    call("plan", "dispatch", "1.1", "--agent", "dev")
    call("plan", "ready", "1.1")
    call("plan", "audit", "1.1", "--agent", "aud", "--verdict", "fail", "--message", "no tests")
    assert "in 1.1\n" in call("failures")[1]
