"""The registries from Python: what the functions answer, on real processes and a real repository, and what the docs show."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import guard
from guard import (
    agents_of,
    api,
    completion,
    get_real_task_status,
    kill_real_agent,
    record_finding,
    spawn_agent,
    update_agent_progress,
)
from guard.errors import Refused, WrongUsage
from guard.store.file_store import FileStore
from tests.support import ROOT, TIME_LIMIT, commit, git, run, write
from tests.support.tmux_server import TmuxServer, needs_tmux

FALSE = "Created src/login.py with the form and committed it."


@pytest.fixture(autouse=True)
def chosen(repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository with a history, in which the test stands, and a workspace beside it."""
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    commit(repository, "src/app.py")


def counts(report: Any) -> tuple[int, ...]:
    """Active, completed and spawned: of the task, then of all tasks."""
    task = (report.active_count, report.completed_count, report.total_spawned)
    return (*task, report.active_agents, report.completed_agents, report.total_agents_spawned)


def registry(workspace: Path, task: str = "T1") -> Any:
    return json.loads((workspace / task / "AGENT_REGISTRY.json").read_bytes())


def test_every_function_of_the_api_is_a_name_of_the_package() -> None:
    own = {
        name
        for module in (api, completion)
        for name, one in inspect.getmembers(module, inspect.isfunction)
        if one.__module__ == module.__name__ and not name.startswith("_")
    }
    assert own - {"invocation"} == set(guard.__all__) - {"__version__"}
    assert {"get_real_task_status", "kill_real_agent", "record_finding"} <= own


@pytest.mark.parametrize("name", [name for name in guard.__all__ if name != "__version__"])
def test_a_name_can_be_imported_from_the_package(name: str) -> None:
    script = f"from guard import {name}; from guard import api, completion as steps; "
    script += f"print({name} is getattr(steps, '{name}', None) or {name} is api.{name})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=TIME_LIMIT
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_an_update_returns_both_counts() -> None:
    assert counts(spawn_agent("T1", "a1")) == (1, 0, 1, 1, 0, 1)
    assert counts(spawn_agent("T2", "b1")) == (1, 0, 1, 2, 0, 2)
    assert counts(spawn_agent("T1", "a2")) == (2, 0, 2, 3, 0, 3)
    assert counts(update_agent_progress("T1", "a1", "working", "half way", 50)) == (
        *(2, 0, 2),
        *(3, 0, 3),
    )
    assert counts(update_agent_progress("T1", "a1", "failed")) == (1, 1, 2, 2, 1, 3)
    assert counts(update_agent_progress("T2", "b1", "completed", "done")) == (0, 1, 1, 1, 2, 3)
    late = update_agent_progress("T2", "b1", "failed")
    assert (late.recorded_as, counts(late)) == ("late", (0, 1, 1, 1, 2, 3))


def test_an_update_returns_the_validation_of_a_completion(
    repository: Path, workspace: Path
) -> None:
    spawn_agent("T1", "a1", "builder")
    working = update_agent_progress("T1", "a1", "working", "writing src/login.py", 40)
    assert working.completion_validation is None
    commit(repository, "src/login.py")
    ended = update_agent_progress("T1", "a1", "completed", FALSE, 100)
    found = ended.completion_validation
    assert found is not None
    assert found.blocking_issues == ()
    assert 0 < found.confidence < 1
    assert found.evidence_summary.workspace_evidence.modified_files == ("src/login.py",)
    assert found.evidence_summary.workspace_evidence.commits_count == 1
    assert ended.agent.completion_validation == found
    (listed,) = agents_of("T1").agents
    assert listed.completion_validation == found
    stored = registry(workspace)["agents"][0]["completion_validation"]
    assert stored == json.loads(found.model_dump_json())


def test_a_strict_completion_is_refused_by_the_answer(repository: Path) -> None:
    spawn_agent("T1", "a1", "builder")
    refused = update_agent_progress("T1", "a1", "completed", FALSE, strict=True)
    assert (refused.recorded_as, refused.agent.status) == ("refused", "deployed")
    assert refused.agent.refused_claims == 1
    assert refused.completion_validation is not None
    assert refused.completion_validation.blocking_issues
    assert counts(refused) == (1, 0, 1, 1, 0, 1)
    commit(repository, "src/login.py")
    ended = update_agent_progress("T1", "a1", "completed", FALSE, strict=True)
    assert (ended.recorded_as, ended.agent.status) == ("updated", "completed")
    assert counts(ended) == (0, 1, 1, 0, 1, 1)


def test_a_completion_that_is_not_strict_is_taken_with_its_blocking_issues() -> None:
    spawn_agent("T1", "a1", "builder")
    ended = update_agent_progress("T1", "a1", "completed", FALSE)
    assert (ended.recorded_as, ended.agent.status) == ("updated", "completed")
    assert ended.completion_validation is not None
    assert ended.completion_validation.blocking_issues


def test_the_users_setting_makes_it_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_CLAIMS__STRICT", "true")
    spawn_agent("T1", "a1", "builder")
    assert update_agent_progress("T1", "a1", "completed", FALSE).recorded_as == "refused"


def test_an_old_incarnation_cannot_end_a_new_one() -> None:
    assert spawn_agent("T1", "a1").agent.incarnation == 1
    update_agent_progress("T1", "a1", "failed")
    assert spawn_agent("T1", "a1").agent.incarnation == 2
    old = update_agent_progress("T1", "a1", "completed", "I am done", incarnation=1)
    assert (old.recorded_as, old.agent.status, old.agent.incarnation) == ("late", "deployed", 2)
    assert old.completion_validation is None
    new = update_agent_progress("T1", "a1", "completed", "I am done", incarnation=2)
    assert (new.recorded_as, new.agent.status, new.active_count) == ("updated", "completed", 0)


def test_the_status_of_a_task_is_plain_values(workspace: Path) -> None:
    spawn_agent("T1", "a1", "builder")
    spawn_agent("T1", "a2")
    spawn_agent("T2", "b1")
    update_agent_progress("T1", "a1", "blocked", "waiting for a key", 30)
    update_agent_progress("T1", "a2", "completed", "done")
    status = get_real_task_status("T1")
    assert status["task_id"] == "T1"
    agents = status["agents"]
    assert (agents["active"], agents["completed"], agents["spawned"]) == (1, 1, 2)
    assert {name: n for name, n in agents["by_status"].items() if n} == {
        "blocked": 1,
        "completed": 1,
    }
    assert [(one["agent_id"], one["status"], one["progress"]) for one in agents["list"]] == [
        ("a1", "blocked", 30),
        ("a2", "completed", None),
    ]
    assert json.loads(json.dumps(status)) == status
    stored = registry(workspace)
    assert (agents["active"], agents["completed"]) == (
        stored["active_count"],
        stored["completed_count"],
    )


def test_the_status_of_a_task_that_never_was_is_empty(workspace: Path) -> None:
    agents = get_real_task_status("T9")["agents"]
    assert agents == {"active": 0, "completed": 0, "spawned": 0, "by_status": {}, "list": []}
    assert not workspace.exists()
    with pytest.raises(WrongUsage, match="cannot be a task id"):
        get_real_task_status("../T1")


def test_the_status_marks_those_whose_process_is_gone(
    sleeper: "subprocess.Popen[bytes]", workspace: Path
) -> None:
    spawn_agent("T1", "a1", pid=sleeper.pid)
    assert get_real_task_status("T1")["agents"]["active"] == 1
    sleeper.kill()
    sleeper.wait()
    agents = get_real_task_status("T1")["agents"]
    assert (agents["active"], agents["completed"]) == (0, 1)
    assert agents["list"][0]["detected_by"] == "session_gone"
    assert registry(workspace)["active_count"] == 0


def test_the_status_sees_what_others_have_done() -> None:
    spawn_agent("T1", "a1")
    assert get_real_task_status("T1")["agents"]["active"] == 1
    assert run("agent", "spawn", "--task", "T1", "--agent", "a2").code == 0
    assert get_real_task_status("T1")["agents"]["active"] == 2
    assert run("agent", "update", "--task", "T1", "--agent", "a1", "--status", "error").code == 0
    assert get_real_task_status("T1")["agents"]["active"] == 1


def test_agents_are_listed_with_their_liveness(sleeper: "subprocess.Popen[bytes]") -> None:
    spawn_agent("T1", "a1", pid=sleeper.pid)
    spawn_agent("T1", "a2")
    spawn_agent("T2", "b1")
    update_agent_progress("T2", "b1", "failed")
    found = {agent.agent_id: agent for agent in agents_of().agents}
    assert {name: agent.liveness for name, agent in found.items()} == {
        "a1": "alive",
        "a2": "unknown",
        "b1": "ended",
    }
    assert found["b1"].seen == "reported as failed"
    sleeper.kill()
    sleeper.wait()
    (gone,) = [agent for agent in agents_of("T1").agents if agent.agent_id == "a1"]
    assert (gone.liveness, gone.status, gone.detected_by) == ("ended", "completed", "session_gone")
    assert gone.seen == f"process {sleeper.pid} has ended"


@needs_tmux
def test_a_session_is_seen_and_killed(server: TmuxServer) -> None:
    server.new("agent-1")
    server.new("agent-1-long")
    spawn_agent("T1", "a1", tmux_session="agent-1", tmux_socket=server.socket)
    (agent,) = agents_of("T1").agents
    assert (agent.liveness, agent.tmux_session) == ("alive", "agent-1")
    killed = kill_real_agent("T1", "a1", "stuck")
    assert (killed.agent.status, killed.agent.reason) == ("terminated", "stuck")
    assert server.find("agent-1") is None
    assert server.find("agent-1-long") is not None


def test_a_kill_ends_a_process_and_says_why(
    sleeper: "subprocess.Popen[bytes]", workspace: Path
) -> None:
    spawn_agent("T1", "a1", pid=sleeper.pid)
    spawn_agent("T1", "a2")
    killed = kill_real_agent("T1", "a1", "exceeded its time")
    assert sleeper.wait(TIME_LIMIT) == -15
    assert (killed.recorded_as, killed.previous_status) == ("killed", "deployed")
    assert (killed.agent.status, killed.agent.reason) == ("terminated", "exceeded its time")
    assert killed.agent.terminated_at is not None
    assert killed.agent.detected_by == "kill"
    assert counts(killed) == (1, 0, 2, 1, 0, 2)
    assert registry(workspace)["agents"][0]["reason"] == "exceeded its time"
    log = (workspace / "events.jsonl").read_bytes()
    with pytest.raises(Refused, match="has ended already"):
        kill_real_agent("T1", "a1", "again")
    assert (workspace / "events.jsonl").read_bytes() == log


def test_a_kill_forces_what_does_not_end_by_itself(
    stubborn: "subprocess.Popen[bytes]",
) -> None:
    spawn_agent("T1", "a1", pid=stubborn.pid)
    killed = kill_real_agent("T1", "a1", "stuck", grace=0.2)
    assert stubborn.wait(TIME_LIMIT) == -9
    assert (killed.agent.status, killed.agent.detail) == (
        "terminated",
        f"process {stubborn.pid} did not end within 0.2 s and was killed",
    )


def test_a_kill_refuses_what_is_not_the_agents(workspace: Path) -> None:
    spawn_agent("T1", "a1", pid=os.getpid())
    log = (workspace / "events.jsonl").read_bytes()
    with pytest.raises(Refused):
        kill_real_agent("T1", "a1", "stuck")
    with pytest.raises(Refused, match="task T1 has no agent a9"):
        kill_real_agent("T1", "a9", "stuck")
    assert (workspace / "events.jsonl").read_bytes() == log


def test_a_kill_of_an_agent_without_a_process_says_what_it_did(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spawn_agent("T1", "a1")
    assert kill_real_agent("T1", "a1", "stuck").agent.status == "terminated"
    assert "nothing was ended, only the registries changed" in caplog.text


def test_a_finding_is_recorded_and_counts_as_evidence(workspace: Path) -> None:
    spawn_agent("T1", "a1", "investigator")
    report = record_finding("T1", "a1", "the token expires", severity="high", file="auth.py")
    assert (report.recorded_as, report.agent.findings, report.agent.status) == (
        "finding",
        1,
        "deployed",
    )
    assert record_finding("T1", "a1", "and nobody looks").agent.findings == 2
    stored = json.loads((workspace / "T1" / "FINDINGS.json").read_bytes())["findings"]
    assert [(one["text"], one["severity"], one["file"]) for one in stored] == [
        ("the token expires", "high", "auth.py"),
        ("and nobody looks", "info", None),
    ]
    ended = update_agent_progress("T1", "a1", "completed", "Analyzed it all, and documented it.")
    assert ended.completion_validation is not None
    assert ended.completion_validation.evidence_summary.type_specific.findings_ok is True


def test_a_finding_that_cannot_be_is_an_error_with_a_name(workspace: Path) -> None:
    spawn_agent("T1", "a1")
    log = (workspace / "events.jsonl").read_bytes()
    awful: Any = "awful"
    with pytest.raises(WrongUsage):
        record_finding("T1", "a1", "it is", severity=awful)
    with pytest.raises(Refused, match="task T1 has no agent a9"):
        record_finding("T1", "a9", "it is")
    assert (workspace / "events.jsonl").read_bytes() == log


def test_a_repository_and_a_workspace_can_be_named(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    where: dict[str, Any] = {"workspace": tmp_path / "named", "repo": repository}
    spawn_agent("T1", "a1", "builder", **where)
    spawn_agent("T1", "a2", **where)
    record_finding("T1", "a1", "something", **where)
    kill_real_agent("T1", "a2", "stuck", **where)
    write(repository / "src" / "login.py", "LOGIN = 1\n")
    ended = update_agent_progress("T1", "a1", "completed", "Created src/login.py", **where)
    assert ended.completion_validation is not None
    assert ended.completion_validation.blocking_issues == ()
    assert get_real_task_status("T1", **where)["agents"]["spawned"] == 2
    assert len(agents_of(**where).agents) == 2
    assert (tmp_path / "named" / "T1" / "FINDINGS.json").exists()
    assert agents_of().spawned == 0


def example() -> str:
    """The example for the registries, as docs/reference/python.md has it."""
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    (found,) = [
        text for text in re.findall(r"```python\n(.*?)```", page, re.S) if "spawn_agent" in text
    ]
    return str(found)


def test_the_example_of_the_docs_works_as_written(repository: Path, workspace: Path) -> None:
    """The user's own tmux server is left out of it."""
    folder = tempfile.mkdtemp(prefix="gt", dir="/tmp")
    try:
        done = subprocess.run(
            [sys.executable, "-c", example()],
            env={**os.environ, "TMUX_TMPDIR": folder},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
        )
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 0, done.stderr
    counted, believed, active, liveness = done.stdout.splitlines()
    assert counted == "completed 1 1"
    assert re.fullmatch(r"0\.\d+ \('.*Only 0 modified files.*',?.*\)", believed)
    assert active == "1"
    assert liveness == "[('builder-1', 'ended'), ('builder-2', 'unknown')]"
    ended = {one["agent_id"]: one["status"] for one in registry(workspace, "login-page")["agents"]}
    assert ended == {"builder-1": "completed", "builder-2": "terminated"}
    assert git(repository, "status", "--porcelain") == ""
    assert FileStore(workspace).verify().ok
