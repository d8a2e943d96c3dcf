"""The plan and the registries meet: what becomes of an agent anywhere is what the plan knows of it."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guard.context.invocation import Invocation
from guard.coordinator.record import find_state
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.coordinator.state import Coordinator
from tests.support import TIME_LIMIT, commit, run, write
from tests.support.sessions import QUICK, answering, started, until

PLAN = "- [ ] A: first\n- [ ] B: second\n- [ ] C: third (depends: A)\n"
COMMIT = "echo done > done.txt && git add done.txt && git commit -q -m 'feat: done'"
ASKS = "SEEKING DIVINE CLARIFICATION\nQuestion: Which database?"


@pytest.fixture
def project(repository: Path) -> Path:
    commit(repository, "first.txt")
    commit(repository, "PLAN.md", PLAN)
    plan("load")
    return repository


def plan(*words: str, code: int = 0) -> Any:
    done = run("plan", *words, "--format", "json")
    assert done.code == code, (done.code, done.out, done.err)
    return done.json if code == 0 else done.err


def tick(*words: str) -> list[str]:
    return [event["type"] for event in plan("tick", *words)["events"]]


def guard_run(script: str, *words: str, agent: str = "dev", task: str = "B") -> int:
    named = ("--task", task, "--agent-id", agent)
    return run("run", *QUICK, *named, *words, "--", "sh", "-c", script).code


def update(agent: str, status: str, message: str = "", task: str = "B") -> None:
    words = ("--task", task, "--agent", agent, "--status", status, "--message", message)
    assert run("agent", "update", *words).code == 0


def state() -> Coordinator:
    found = find_state(Invocation())
    assert found is not None
    return found


def logged(*kinds: str) -> list[str]:
    entries = Invocation().store.entries()
    return [entry.event.type for entry in entries if entry.event.type in kinds]


def registered(agent: str, task: str = "B") -> tuple[str, int]:
    registry = Invocation().store.view(AGENT_REGISTRY, task)
    assert registry is not None
    found = registry.agent(agent)
    assert found is not None
    return found.status, found.incarnation


def test_a_run_that_commits_makes_its_task_ready(project: Path) -> None:
    plan("dispatch", "B", "--agent", "dev")
    assert guard_run(COMMIT) == 0
    assert (state().pending_audit, registered("dev")) == (("B",), ("completed", 1))
    assert tick("--no-fill") == []
    (entry,) = [
        entry
        for entry in Invocation().store.entries()
        if entry.event.type == "developer_ready_for_audit"
    ]
    before = [e for e in Invocation().store.entries() if e.position.seq == entry.position.seq - 1]
    assert before[0].more > 0, "recorded in one append with the registry's update"


def test_an_agent_that_took_a_free_task_by_itself_is_its_developer(project: Path) -> None:
    assert guard_run(COMMIT, agent="by-hand") == 0
    found = state()
    assert (found.pending_audit, found.in_progress_tasks[0].developer_id) == (("B",), "by-hand")
    first = found.in_progress_tasks[0].base_sha
    assert first is not None
    assert logged("developer_dispatched", "agent_started") == [
        "developer_dispatched",
        "agent_started",
    ]


def test_an_agent_on_a_task_that_waits_is_not_taken_in(project: Path) -> None:
    done = run("run", *QUICK, "--task", "C", "--agent-id", "eager", "--", "sh", "-c", COMMIT)
    assert "task C waits for A" in done.err
    assert state().in_progress_tasks == ()


def test_signals_in_the_last_message_come_before_the_verdict(project: Path) -> None:
    plan("dispatch", "B", "--agent", "dev")
    assert guard_run(f"{COMMIT}; printf %s {shlex.quote(ASKS)}") == 0
    question = state().pending_divine_questions[0]
    assert (question.agent_id, question.question) == ("dev", "Which database?")
    assert (state().pending_audit, state().active_developers) == ((), {"dev": "B"})
    plan("answer", question.question_id, "the one of last year")
    assert tick("--no-fill") == [], "the end of the life that asked is not the end of the work"
    assert guard_run(COMMIT.replace("done", "more")) == 0
    assert (state().pending_audit, registered("dev")) == (("B",), ("completed", 2))


def test_an_auditor_gives_its_verdict_in_its_last_message(project: Path) -> None:
    plan("dispatch", "B", "--agent", "dev")
    guard_run(COMMIT)
    plan("dispatch", "B", "--auditor", "--agent", "aud")
    guard_run("echo 'AUDIT FAIL: B'; echo 'Reason: no tests'", agent="aud")
    assert (state().failed_audits, state().active_agents["dev"].incarnation) == ({"B": 1}, 2)


def test_a_run_that_stalls_is_lost_and_counted_once(project: Path) -> None:
    plan("dispatch", "B", "--agent", "dev")
    assert guard_run("exit 1") == 10
    assert (state().setbacks["B"].attempts, state().available_tasks) == (1, ("A", "B"))
    assert registered("dev") == ("failed", 1)
    assert [parcel.kind for parcel in state().outbox] == [], "it has ended: no abort"
    assert tick("--no-fill") == []
    assert logged("agent_timeout", "agent_crashed") == ["agent_timeout"]


def test_a_run_that_asks_in_the_words_of_its_agent(project: Path, tmp_path: Path) -> None:
    plan("dispatch", "B", "--agent", "dev")
    probe = answering(tmp_path, "working", needs_person=True, question="May I drop the table?")
    assert guard_run("true", "--probe-command", probe) == 14
    assert [q.question for q in state().pending_divine_questions] == ["May I drop the table?"]
    assert tick("--no-fill") == []
    plan("answer", state().pending_divine_questions[0].question_id, "no")
    assert registered("dev")[0] == "working"
    assert tick("--no-fill") == [], "an answered question is not asked again"


def test_a_refuted_run_leaves_the_task_with_its_developer(project: Path) -> None:
    plan("dispatch", "B", "--agent", "dev")
    assert guard_run(COMMIT, "--prove", "test ! -e done.txt") == 17
    assert (registered("dev")[0], state().active_developers) == ("failed", {"dev": "B"})
    assert (tick("--no-fill"), state().setbacks) == ([], {})
    assert logged("agent_paused") == ["agent_paused"]
    assert guard_run(COMMIT.replace("done", "more")) == 0
    assert (state().pending_audit, registered("dev")) == (("B",), ("completed", 2))


@pytest.mark.parametrize(
    ("status", "kind", "place"),
    [
        ("completed", "developer_ready_for_audit", "pending_audit"),
        ("failed", "agent_crashed", "available"),
        ("error", "agent_crashed", "available"),
        ("blocked", "agent_seeks_guidance", "asked"),
    ],
)
def test_a_report_is_what_the_plan_knows_at_the_next_tick(
    project: Path, status: str, kind: str, place: str
) -> None:
    plan("dispatch", "B", "--agent", "dev")
    update("dev", status, "the schema has no owner")
    assert tick("--no-fill") == [kind]
    assert tick("--no-fill") == []
    found = state()
    assert ("B" in found.pending_audit) == (place == "pending_audit")
    assert ("B" in found.available_tasks) == (place == "available")
    questions = [question.question for question in found.pending_divine_questions]
    assert questions == (["the schema has no owner"] if place == "asked" else [])


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    yield child
    child.kill()
    child.wait(TIME_LIMIT)


def spawn(agent: str, pid: int, task: str = "B") -> None:
    words = ("--task", task, "--agent", agent, "--pid", str(pid))
    assert run("agent", "spawn", *words).code == 0


@pytest.mark.parametrize("how", ["killed", "vanished"])
def test_an_end_by_force_is_known_at_the_next_tick(
    project: Path, sleeper: subprocess.Popen[bytes], how: str
) -> None:
    spawn("dev", sleeper.pid)
    plan("dispatch", "B", "--agent", "dev")
    assert tick("--no-fill") == ["agent_started"] or state().active_agents["dev"].started_at
    if how == "killed":
        subprocess.Popen([sys.executable, "-c", "pass"]).wait(TIME_LIMIT)
        words = ("--task", "B", "--agent", "dev", "--reason", "it went in circles")
        ended = subprocess.Popen(
            [sys.executable, "-m", "guard", "agent", "kill", *words], stderr=subprocess.DEVNULL
        )
        sleeper.wait(TIME_LIMIT)
        assert ended.wait(TIME_LIMIT) == 0
    else:
        sleeper.kill()
        sleeper.wait(TIME_LIMIT)
    assert tick("--no-fill") == ["agent_crashed"]
    assert (tick("--no-fill"), state().setbacks["B"].attempts) == ([], 1)
    (crash,) = [e.event for e in Invocation().store.entries() if e.event.type == "agent_crashed"]
    why = crash.model_dump()["reason"]
    assert ("it went in circles" in why) == (how == "killed")
    assert "B" in state().available_tasks


def test_a_command_that_needs_the_place_of_a_lost_agent_gets_it(
    project: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    spawn("dev", sleeper.pid)
    plan("dispatch", "B", "--agent", "dev")
    sleeper.kill()
    sleeper.wait(TIME_LIMIT)
    plan("dispatch", "B", "--agent", "next")
    assert state().active_developers == {"next": "B"}
    assert logged("agent_crashed", "developer_dispatched") == [
        "developer_dispatched",
        "agent_crashed",
        "developer_dispatched",
    ]


def test_a_refused_command_records_what_the_registries_tell(project: Path) -> None:
    plan("dispatch", "B", "--agent", "dev")
    update("dev", "completed")
    assert "awaiting-audit" in plan("dispatch", "B", "--agent", "next", code=1)
    assert state().pending_audit == ("B",)


def test_a_report_and_a_command_that_say_the_same_count_once(project: Path) -> None:
    plan("dispatch", "B", "--agent", "dev")
    update("dev", "completed")
    assert [e["type"] for e in plan("ready", "B")["events"]] == ["developer_ready_for_audit"]
    assert tick("--no-fill") == []


def test_an_earlier_life_of_an_agent_is_not_told_of_the_next(project: Path) -> None:
    assert run("agent", "spawn", "--task", "B", "--agent", "dev").code == 0
    update("dev", "failed")
    plan("dispatch", "B", "--agent", "dev")
    assert (registered("dev"), tick("--no-fill")) == (("deployed", 2), [])
    late = ("--task", "B", "--agent", "dev", "--status", "failed", "--incarnation", "1")
    assert run("agent", "update", *late).code == 0
    assert (tick("--no-fill"), state().active_developers) == ([], {"dev": "B"})


def test_commands_at_the_same_time_record_an_end_once(
    project: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    spawn("dev", sleeper.pid)
    plan("dispatch", "B", "--agent", "dev")
    sleeper.kill()
    sleeper.wait(TIME_LIMIT)
    command = [sys.executable, "-m", "guard", "plan", "tick", "--no-fill"]
    children = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [child.wait(TIME_LIMIT) for child in children] == [0] * 4
    assert logged("agent_crashed", "agent_end_detected") == ["agent_end_detected", "agent_crashed"]


def test_a_guard_that_is_killed_with_its_agent_is_lost(project: Path, tmp_path: Path) -> None:
    plan("dispatch", "B", "--agent", "dev")
    words = ("run", *QUICK, "--task", "B", "--agent-id", "dev")
    script = f"echo $$ > {tmp_path}/pid; exec sleep 300"
    child = started(*words, "--", "sh", "-c", script)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    assert tick("--no-fill") == []
    assert state().active_agents["dev"].started_at is not None
    child.kill()
    child.wait(TIME_LIMIT)
    assert tick("--no-fill") == [], "the agent itself is alive"
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    until(lambda: tick("--no-fill") == ["agent_crashed"])
    assert logged("agent_crashed") == ["agent_crashed"]


def test_a_person_who_stops_a_run_keeps_the_task_with_its_developer(
    project: Path, tmp_path: Path
) -> None:
    plan("dispatch", "B", "--agent", "dev")
    words = ("run", *QUICK, "--task", "B", "--agent-id", "dev")
    child = started(*words, "--", "sh", "-c", f"touch {tmp_path}/begun; exec sleep 300")
    until(lambda: (tmp_path / "begun").exists())
    child.send_signal(signal.SIGINT)
    child.wait(TIME_LIMIT)
    assert (tick("--no-fill"), state().active_developers) == (["agent_paused"], {"dev": "B"})
    assert (tick("--no-fill"), state().setbacks) == ([], {})


def test_a_supporting_agent_that_vanishes_has_failed(
    repository: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    commit(repository, "first.txt")
    expert = {
        "agent_id": "db",
        "agent_type": "domain_expert",
        "name": "DB",
        "request_types": ["task"],
    }
    tasks = [{"id": "B", "title": "second"}]
    write(repository / "plan.json", json.dumps({"tasks": tasks, "supporting_agents": [expert]}))
    plan("load", "plan.json")
    plan("dispatch", "B", "--agent", "dev")
    plan("delegate", "db", "--from", "dev", "--task", "B", "which index?")
    (run_id,) = state().active_supporting_agents
    words = ("--task", "B", "--agent", run_id, "--status", "working", "--pid", str(sleeper.pid))
    assert run("agent", "update", *words).code == 0
    assert tick("--no-fill") == ["agent_started"]
    sleeper.kill()
    sleeper.wait(TIME_LIMIT)
    assert tick("--no-fill") == ["supporting_agent_failed"]
    assert state().active_supporting_agents == {}
