"""Guard from Python: the same as the commands, in one process, in its forks, and without loading what is not used."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import guard
from guard import agents_of, spawn_agent, update_agent_progress
from guard.errors import BreakerOpen, Refused, RepositoryProblem, WrongUsage
from guard.store.file_store import FileStore
from tests.support import ROOT, TIME_LIMIT, commit, run, write


def python(script: str, *words: str | Path) -> str:
    """Run a script of Python; what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script, *(os.fspath(word) for word in words)],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=True,
    )
    return done.stdout


def test_importing_the_package_loads_nothing_of_it() -> None:
    script = "import sys, guard; print([m for m in sys.modules if m.startswith(('guard', 'pyd', 'cli'))])"
    assert python(script) == "['guard']\n"


def test_the_names_are_there_and_no_others() -> None:
    assert {"agents_of", "spawn_agent", "update_agent_progress"} <= set(guard.__all__)
    assert [name for name in guard.__all__ if not hasattr(guard, name)] == []
    missing: Any = "kill_everything"
    with pytest.raises(AttributeError, match="kill_everything"):
        getattr(guard, missing)


def test_the_functions_and_the_commands_see_the_same_state(repository: Path) -> None:
    spawned = spawn_agent("T1", "a1", "builder", "go")
    assert (spawned.recorded_as, spawned.active_count, spawned.agent.agent_type) == (
        "spawned",
        1,
        "builder",
    )
    updated = update_agent_progress("T1", "a1", "working", "half way", 50)
    assert (updated.previous_status, updated.agent.progress) == ("deployed", 50)
    assert run("agent", "update", "--task", "T1", "--agent", "a1", "--status", "failed").code == 0
    report = agents_of("T1")
    assert (
        json.loads(report.model_dump_json())["agents"]
        == (run("agent", "list", "--format", "json").json["agents"])
    )
    assert (report.active, report.completed, agents_of().spawned) == (0, 1, 1)
    late = update_agent_progress("T1", "a1", "working")
    assert (late.recorded_as, late.active_agents) == ("late", 0)


def test_a_workspace_can_be_named_as_text_path_or_variable(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn_agent("T1", "a1", workspace=str(workspace))
    assert agents_of(workspace=workspace).active == 1
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    assert agents_of().active == 1


def test_a_repository_can_be_named(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RepositoryProblem):
        agents_of()
    spawn_agent("T1", "a1", repo=repository)
    assert agents_of(repo=str(repository)).active == 1


def test_a_repository_beside_a_workspace_gives_the_configuration(
    repository: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repository / "guard.toml", "[registry]\nkeep_finished = 0\n")
    monkeypatch.chdir(tmp_path)
    spawn_agent("T1", "a1", workspace=workspace, repo=repository)
    update_agent_progress("T1", "a1", "completed", workspace=workspace, repo=repository)
    assert agents_of(workspace=workspace, repo=repository).agents == ()


@pytest.mark.parametrize(
    ("status", "message", "progress"),
    [
        ("asleep", "", None),
        ("working", "", 101),
        ("working", "", -1),
    ],
    ids=["no status", "too far", "before the start"],
)
def test_what_cannot_be_recorded_is_an_error_with_a_name(
    status: Any, message: str, progress: int | None, workspace: Path
) -> None:
    spawn_agent("T1", "a1", workspace=workspace)
    before = (workspace / "events.jsonl").read_bytes()
    with pytest.raises(WrongUsage):
        update_agent_progress("T1", "a1", status, message, progress, workspace=workspace)
    assert (workspace / "events.jsonl").read_bytes() == before


def test_refusals_are_errors_with_a_name(workspace: Path) -> None:
    with pytest.raises(Refused, match="has no agent"):
        update_agent_progress("T1", "a1", "working", workspace=workspace)
    spawn_agent("T1", "a1", workspace=workspace)
    with pytest.raises(Refused, match="is active already"):
        spawn_agent("T1", "a1", workspace=workspace)
    with pytest.raises(WrongUsage, match="cannot be a task id"):
        spawn_agent("../T1", "a1", workspace=workspace)
    with pytest.raises(WrongUsage, match="cannot be an agent id"):
        update_agent_progress("T1", "a/1", "working", workspace=workspace)


FORKING = """if True:
    import os, sys
    from guard import spawn_agent, update_agent_progress
    place = sys.argv[1]
    spawn_agent("T1", "before", workspace=place)
    children = []
    for child in range(3):
        pid = os.fork()
        if pid == 0:
            for number in range(10):
                spawn_agent("T1", f"child{child}-{number}", workspace=place)
                update_agent_progress("T1", f"child{child}-{number}", "completed", workspace=place)
            os._exit(0)
        children.append(pid)
    for number in range(10):
        spawn_agent("T1", f"parent-{number}", workspace=place)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    last = update_agent_progress("T1", "before", "working", workspace=place)
    print(codes, last.active_count, last.completed_count, last.total_spawned)
"""


def test_after_a_fork_parent_and_children_can_all_write(workspace: Path) -> None:
    assert python(FORKING, workspace) == "[0, 0, 0] 11 30 41\n"
    store = FileStore(workspace)
    assert store.verify().ok
    kinds = Counter(entry.event.type for entry in store.entries())
    assert (kinds["agent_spawned"], kinds["agent_updated"]) == (41, 31)


def test_threads_lose_nothing(workspace: Path) -> None:
    def work(name: str) -> None:
        for number in range(10):
            spawn_agent("T1", f"{name}-{number}", workspace=workspace)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert agents_of("T1", workspace=workspace).spawned == 40
    assert FileStore(workspace).verify().ok


def test_many_processes_may_be_the_first_at_once(repository: Path) -> None:
    code = "import sys; from guard import spawn_agent; spawn_agent('T1', sys.argv[1])"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code, f"a{number}"], env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        for number in range(8)
    ]
    assert [worker.wait(120) for worker in workers] == [0] * 8
    assert agents_of("T1").active == 8


def test_threads_share_a_store(repository: Path) -> None:
    spawn_agent("T1", "a1")

    def report(number: int) -> None:
        for step in range(10):
            update_agent_progress("T1", "a1", "working", f"{number}-{step}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(report, range(8)))
    (agent,) = agents_of("T1").agents
    assert agent.updates == 80


def test_an_iteration_from_python(repository: Path) -> None:
    first = commit(repository, "first.txt")
    begun = guard.baseline()
    assert begun.head == first
    assert guard.check(probe=False, wait=False).status == "timeout"
    commit(repository, "second.txt")
    report = guard.check(settings={"completion_check.max_probes": 1})
    assert (report.status, report.reason, report.new_commits) == ("complete", "commits", 1)
    assert run("log", "--type", "check_made", "--format", "json").json["events"][-1]["complete"]


def test_an_agent_run_from_python(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    commit(repository, "first.txt")
    report = guard.run(["sh", "-c", "echo hi; echo x > x; git add x; git commit -q -m x"])
    assert (report.status, report.new_commits, report.exit_code) == ("complete", 1, 0)
    assert capfd.readouterr().out == "hi\n"
    run("breaker", "trip")
    with pytest.raises(BreakerOpen):
        guard.run(["true"])


def test_an_agent_run_from_python_has_an_end(repository: Path) -> None:
    commit(repository)
    report = guard.run(["sleep", "300"], probe=False, max_time=1)
    assert (report.status, report.reason) == ("working", "max_time")


def test_an_output_classified_from_python() -> None:
    found = guard.classify(b"", b"bash: claude: command not found", exit_code=127)
    assert found.outcome == "crash"


def test_the_names_of_functions_survive_the_modules_they_use(repository: Path) -> None:
    commit(repository, "first.txt")
    guard.baseline()
    assert callable(guard.baseline)
    assert callable(guard.check)
    assert callable(guard.run)
    assert callable(guard.classify)
