"""What goes wrong while a plan is worked off: crashes, forgotten commits, conflicts, failed audits, questions, limits."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import guard
from guard.context.invocation import Invocation
from tests.support import git, run, write
from tests.support.plan_runs import WORK, PlanRunStory

LINE = "sed -i 's/^base$/base {}/' base.txt; git add -A; git commit -q -m 'feat: change the base'\n"
LIMIT = {
    "type": "result",
    "subtype": "success",
    "is_error": True,
    "api_error": "usage_limit_reached",
    "result": "You've hit your 5-hour limit · resets 5am (UTC)",
    "session_id": "s-1",
}


def test_a_task_whose_agent_crashed_is_given_to_another(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    story.does("A.work.1", "exit 3\n")
    story.does("A.work.2", "kill -9 $$\n")
    report = story.report()
    assert (report["ended"], story.sessions("A")) == ("complete", 3)
    assert story.landed() == ["A"]
    assert "2 agents on this task did not come to an end" in story.prompt("A", 3)


def test_work_that_an_agent_forgot_to_commit_is_rescued_and_lands(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    story.does("A.work.1", "echo forgotten > a.txt; echo done\n")
    assert story.report()["ended"] == "complete"
    assert story.shown("a.txt") == "forgotten\n"


def test_a_failed_audit_is_worked_on_again_with_its_reason(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    story.does("A.work.2", "echo fixed > fixed.txt; git add -A; git commit -q -m 'fix: it'\n")
    audit = 'test -f fixed.txt || { echo "no fix in $GUARD_TASK"; exit 1; }'
    report = story.report(audit=audit)
    assert (report["ended"], story.sessions("A")) == ("complete", 2)
    assert "> no fix in A" in story.prompt("A", 2)
    assert story.shown("fixed.txt") == "fixed\n"


def test_audits_that_fail_again_and_again_ask_a_person(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first", "B: second (depends: A)")
    story.does("work", 'echo x >> "$GUARD_TASK.txt"; git add -A; git commit -q -m "feat: more"\n')
    report = story.report(audit="echo it stays red; false", code=14)
    assert (report["ended"], story.sessions("A")) == ("person_needed", 3)
    (need,) = report["needs_you"]
    assert (need["kind"], need["task_id"]) == ("question", "A")
    assert "it stays red" in need["text"]
    answered = run("plan", "answer", need["command"].split()[3], "take the red out")
    assert answered.code == 0, answered.err
    assert story.report()["ended"] == "complete"
    assert "> take the red out" in story.prompt("A", 4)


def test_an_audit_that_is_killed_each_time_asks_a_person_in_the_end(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    audit = f"echo killed >> {story.scripts}/audits; kill -9 $PPID"
    report = story.report(audit=audit, code=14)
    (need,) = report["needs_you"]
    assert (report["ended"], need["kind"], need["task_id"]) == ("person_needed", "question", "A")
    assert len((story.scripts / "audits").read_text().splitlines()) < 10


def test_a_set_up_that_is_killed_each_time_asks_a_person_in_the_end(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_PLAN__SETUP", "kill -9 $PPID")
    story = PlanRunStory(repository, "A: first")
    report = story.report(code=14)
    assert (report["ended"], story.sessions("A")) == ("person_needed", 0)


BROKEN_STATES = {
    "log deleted": "rm {0}/events.jsonl",
    "log a pipe": "rm {0}/events.jsonl; mkfifo {0}/events.jsonl",
    "log cut": "echo garbage > {0}/events.jsonl",
    "workspace moved": "mv {0} {0}.moved",
    "workspace a link": "mv {0} {0}.moved; ln -s {0}.moved {0}",
    "lock a pipe": "rm {0}/workspace.lock; mkfifo {0}/workspace.lock",
}


@pytest.mark.parametrize("words", BROKEN_STATES.values(), ids=BROKEN_STATES)
def test_an_agent_that_breaks_the_state_ends_the_run_and_its_work_is_saved(
    words: str, repository: Path, tmp_path: Path
) -> None:
    story = PlanRunStory(repository, "A: first", "B: second")
    workspace = Invocation(repo=repository, environ=os.environ).workspace.path
    story.does("A.work.1", f"echo precious > left.txt; {words.format(workspace)}\n")
    story.does("B.work.1", "exit 3\n")
    done = story.run("--agents", "1")
    assert done.code in (5, 6), done
    assert "landed" not in done.out
    told = re.search(r"saved: (guard .*|git .*) DIR", done.err)
    assert told, done
    back = tmp_path / "back"
    if told[1].startswith("git"):
        back.mkdir()
        subprocess.run(["sh", "-c", f"{told[1]} {back}"], check=True)
    else:
        assert run(*shlex.split(told[1])[1:], back).code == 0
    assert (back / "left.txt").read_text() == "precious\n"


def test_a_task_without_commits_does_not_pass(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    story.does("A.work.1", 'echo "READY FOR AUDIT: A"\n')
    report = story.report()
    assert (report["ended"], story.sessions("A")) == ("complete", 2)
    assert "has no commits that the target lacks" in story.prompt("A", 2)


def test_a_conflict_is_worked_on_again_and_lands(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first", "B: second")
    merge = "git merge -q guard/plan/PLAN; echo 'base A B' > base.txt; git add -A; git commit -q -m 'merge'\n"
    for name in "AB":
        story.does(f"{name}.work.1", f"{LINE.format(name)}{_wait_for_both(story, name)}")
        story.does(f"{name}.work.2", merge)
    report = story.report("--agents", "2")
    assert report["ended"] == "complete"
    assert sorted(story.landed()) == ["A", "B"]
    assert story.shown("base.txt") == "base A B\n"
    assert sorted([story.sessions("A"), story.sessions("B")]) == [1, 2]
    last = story.landed()[1]
    prompt = story.prompt(last, 2)
    assert "base.txt" in prompt.partition("## Why the task came back")[2]
    assert "First run `git merge guard/plan/PLAN`" in prompt


def _wait_for_both(story: PlanRunStory, name: str) -> str:
    here = story.scripts
    other = "B" if name == "A" else "A"
    return f"touch {here}/at.{name}; while [ ! -e {here}/at.{other} ]; do sleep 0.05; done\n"


@pytest.mark.parametrize(
    "ask",
    [
        "printf 'SEEKING DIVINE CLARIFICATION\\n\\nTask: A\\nQuestion: Which node?\\n'\n",
        "echo 'I have looked at everything. Which node?'\n",
    ],
    ids=["by its signal", "in plain words"],
)
def test_a_question_ends_the_run_and_its_answer_goes_on_with_the_agent(
    ask: str, repository: Path
) -> None:
    story = PlanRunStory(repository, "A: first", "B: second (depends: A)")
    story.does("A.work.1", ask)
    report = story.report(code=14)
    (need,) = report["needs_you"]
    assert "Which node?" in need["text"]
    assert (story.sessions("A"), story.sessions("B")) == (1, 0)
    assert story.report(code=14)["sessions"] == 0
    assert run("plan", "answer", need["command"].split()[3], "use node 20").code == 0
    assert story.report()["ended"] == "complete"
    assert "> use node 20" in story.prompt("A", 2)
    assert story.sessions("A") == 2


def test_what_is_ready_is_audited_by_a_command_and_lands_while_a_person_is_asked(
    repository: Path,
) -> None:
    story = PlanRunStory(repository, "A: first", "B: second", "C: third")
    story.does("A.work.1", "echo 'I have looked at everything. Which node?'\n")
    wait = f"while ! {sys.executable} -m guard plan show | grep -q 'asks:'; do sleep 0.1; done\n"
    story.does("B.work.1", f"{wait}{WORK}")
    report = story.report("--agents", "2", code=14)
    assert (report["ended"], story.landed()) == ("person_needed", ["B"])
    assert story.sessions("C") == 0, "no agent is sent"


def test_on_a_full_disk_no_agent_is_started_and_those_at_work_are_waited_for(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = PlanRunStory(repository, "A: first", "B: second")
    real, full = os.statvfs, story.scripts / "A.work.count"

    def statvfs(path: str) -> Any:
        return SimpleNamespace(f_bavail=0, f_frsize=1) if full.exists() else real(path)

    command = [str(story.agent), str(story.scripts)]
    with monkeypatch.context() as fault:
        fault.setattr("guard.plan.slots.os.statvfs", statvfs)
        report = guard.plan_run(command, agents=1, audit="true")
    assert (report.ended, report.exit_code, report.still_working) == ("fault", 6, ())
    assert "plan.min_free_bytes" in report.detail
    assert guard.plan_run(command, agents=1, audit="true").ended == "complete"


def test_an_agent_of_the_users_command_audits_where_there_is_no_other_way(
    repository: Path,
) -> None:
    story = PlanRunStory(repository, "A: first")
    story.does("A.audit.1", 'echo "AUDIT FAIL: A - the name is wrong"\n')
    story.does("A.work.2", 'git mv A.txt B.txt; git commit -q -m "fix: name"\n')
    report = story.report(audit=None)
    assert report["ended"] == "complete"
    assert (story.sessions("A"), story.sessions("A", "audit")) == (2, 2)
    assert "> the name is wrong" in story.prompt("A", 2)
    assert "## What there is to audit" in story.prompt("A", 1, "audit")


def test_a_usage_limit_pauses_the_plan_and_counts_nothing(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first", "B: second")
    limit = write(story.scripts / "limit.json", json.dumps(LIMIT))
    story.does("A.work.1", f"cat {limit}; exit 1\n")
    begun = time.monotonic()
    report = story.report("--agents", "1", "--max-time", "6", code=12)
    assert time.monotonic() - begun >= 6
    assert (report["ended"], story.sessions("A"), story.sessions("B")) == ("max_time", 1, 0)
    assert story.state.setbacks == {}
    assert list(story.state.active_agents) == ["developer-1"]


def test_agents_that_do_nothing_open_the_breaker_of_the_plan(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first", "B: second", "C: third")
    story.does("work", "echo nothing\n")
    report = story.report("--agents", "1", code=20)
    assert report["ended"] == "breaker_open"
    sessions = sum(story.sessions(name) for name in "ABC")
    assert sessions == 3
    assert story.run().code == 20
    assert sum(story.sessions(name) for name in "ABC") == sessions
    assert run("breaker", "reset", "--plan", "--reason", "repaired").code == 0
    story.does("work", "echo x > $GUARD_TASK.txt; git add -A; git commit -q -m 'feat: it'\n")
    assert story.report()["ended"] == "complete"


def test_files_of_a_person_in_the_target_that_is_checked_out_stay_as_they_are(
    repository: Path,
) -> None:
    story = PlanRunStory(repository, "A: first")
    write(repository / "A.txt", "mine\n")
    report = story.report("--target", "main", code=14)
    (need,) = report["needs_you"]
    assert (need["kind"], need["task_id"]) == ("landing", "A")
    assert (repository / "A.txt").read_text() == "mine\n"
    assert git(repository, "log", "--format=%s").split("\n")[0] == "Begin"
    (repository / "A.txt").unlink()
    assert story.report("--target", "main")["ended"] == "complete"
    assert (repository / "A.txt").read_text() == "A\n"
    assert git(repository, "status", "--porcelain") == ""
    assert story.sessions("A") == 1


def test_a_file_of_a_person_holds_back_only_the_task_that_changes_it(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first", "B: second", "C: third (depends: A)", "D: fourth")
    write(repository / "A.txt", "mine\n")
    report = story.report("--target", "main", "--agents", "3", code=14)
    assert sorted(story.landed("main")) == ["B", "D"]
    assert [need["task_id"] for need in report["needs_you"]] == ["A"]
    assert (repository / "A.txt").read_text() == "mine\n"
    (repository / "A.txt").unlink()
    assert story.report("--target", "main")["ended"] == "complete"
    assert sorted(story.landed("main")) == ["A", "B", "C", "D"]


def test_a_work_tree_is_set_up_and_numbered(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first", "B: second")
    write(repository / ".env", "SECRET=1\n")
    setup = 'echo "$GUARD_SLOT" >> ../setups; mkdir -p node_modules'
    env = {"GUARD_PLAN__SETUP": setup, "GUARD_PLAN__COPY": ".env"}
    seen = 'cat .env > seen.txt; echo "$GUARD_SLOT" >> seen.txt; git add seen.txt'
    story.does("A.work.1", f"{seen}; git commit -q -m 'feat: seen'\n")
    done = story.run("--agents", "1", env=env)
    assert done.code == 0, done.err
    assert story.shown("seen.txt") == "SECRET=1\n1\n"
    assert ".env" not in git(repository, "ls-tree", "--name-only", "guard/plan/PLAN").split()


def test_a_set_up_that_fails_asks_a_person_in_the_end(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first")
    env = {"GUARD_PLAN__SETUP": "echo no network; false"}
    done = story.run("--format", "json", env=env)
    assert done.code == 14, done.err
    (need,) = done.json["needs_you"]
    assert "lost 4 times" in need["text"]
    assert "no network" in story.state.setbacks["A"].reason
    assert story.sessions("A") == 0


def test_the_projects_own_checks_audit_where_there_are_any(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first", "B: second (depends: A)")
    story.does("A.work.1", "echo x > bad.txt; git add -A; git commit -q -m 'feat: bad'\n")
    story.does("A.work.2", "git rm -q bad.txt; echo x > good.txt; git add -A; git commit -q -m f\n")
    env = {"GUARD_PROVE__COMMAND": "test ! -e bad.txt || { echo bad is there; exit 1; }"}
    done = story.run("--format", "json", audit=None, env=env)
    assert done.code == 0, done.err
    assert (story.sessions("A"), story.sessions("A", "audit")) == (2, 0)
    assert "does not pass the project's own checks" in story.prompt("A", 2)
    assert story.state.setbacks == {}, "refuted work goes on, and counts as nothing"
    assert story.landed() == ["A", "B"]
    assert "bad.txt" not in git(repository, "ls-tree", "--name-only", "guard/plan/PLAN").split()


def test_a_question_can_hold_back_only_its_own_task(repository: Path) -> None:
    story = PlanRunStory(repository, "A: first", "B: second", "C: third (depends: A)")
    ask = "printf 'SEEKING DIVINE CLARIFICATION\\n\\nTask: A\\nQuestion: Which node?\\n'\n"
    story.does("A.work.1", ask)
    env = {"GUARD_COORDINATOR__HOLD_ON_QUESTION": "task"}
    done = story.run("--agents", "2", "--format", "json", env=env)
    assert done.code == 14, done.err
    assert story.landed() == ["B"]
    assert [need["task_id"] for need in done.json["needs_you"]] == ["A"]
