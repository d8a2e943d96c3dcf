"""An agent of a run finds its registry from wherever it goes, and what stands in guard's way is said once."""

import json
import sys
from pathlib import Path

import pytest

from tests.support import commit, run, write

GUARD = f"{sys.executable} -m guard"
ONCE = ("--no-probe", "--no-wait")


@pytest.fixture
def project(repository: Path) -> Path:
    commit(repository)
    return repository


@pytest.mark.parametrize("given", [(), ("--workspace", "chosen")], ids=["default", "chosen"])
def test_an_agent_reports_from_outside_of_the_repository(
    project: Path, tmp_path: Path, given: tuple[str, ...]
) -> None:
    where = tuple(str(tmp_path / word) if word == "chosen" else word for word in given)
    other = tmp_path / "other"
    script = (
        f"cd /tmp && {GUARD} agent update --status working --message one; echo code=$?;"
        f" git init -q {other} && cd {other} && {GUARD} agent update --status blocked; echo code=$?;"
        f" cd / && {GUARD} agent finding 'a fact' && {GUARD} status"
    )
    words = ("run", "--task", "T1", "--type", "fixer", *ONCE, "--", "sh", "-c", script)
    result = run(*where, *words)
    assert result.out.count("code=0") == 2, result
    assert ["T1", "agent", "blocked"] in [line.split()[:3] for line in result.out.splitlines()]
    listed = run(*where, "agent", "list", "--format", "json").json["agents"]
    assert [(one["agent_id"], one["agent_type"]) for one in listed] == [("agent", "fixer")]


def test_a_type_needs_a_task(project: Path) -> None:
    result = run("run", "--type", "fixer", *ONCE, "--", "true")
    assert (result.code, "--task" in result.err) == (2, True)


@pytest.mark.parametrize("kind", ["folder", "link", "hard link"])
def test_a_global_registry_that_was_replaced_stops_no_update(
    project: Path, tmp_path: Path, kind: str
) -> None:
    ids = ("--task", "T1", "--agent", "a1")
    assert run("agent", "spawn", *ids).code == 0
    workspace = Path(run("where").out.splitlines()[0])
    overall = workspace / "registry" / "GLOBAL_REGISTRY.json"
    victim = write(tmp_path / "victim", "not guard's\n")
    overall.unlink()
    if kind == "folder":
        write(overall / "inside", "x\n")
    elif kind == "link":
        overall.symlink_to(victim)
    else:
        overall.hardlink_to(victim)
    result = run("agent", "update", *ids, "--status", "working")
    assert (result.code, result.err.count("GLOBAL_REGISTRY.json")) == (0, 1), result
    task = json.loads((workspace / "T1" / "AGENT_REGISTRY.json").read_text())
    assert [one["status"] for one in task["agents"]] == ["working"]
    assert json.loads(overall.read_text())["active_agents"] == 1
    assert victim.read_text() == "not guard's\n"
    assert run("verify").code == 0


def test_an_imported_agent_whose_session_vanished_has_ended(project: Path, tmp_path: Path) -> None:
    agents = [{"agent_id": "a1", "status": "running", "tmux_session": "guard-test-never-there"}]
    file = write(tmp_path / "old.json", json.dumps({"task_id": "T1", "agents": agents}))
    assert run("agent", "import", file).code == 0
    (listed,) = run("agent", "list", "--format", "json", env={"TMUX_TMPDIR": str(tmp_path)}).json[
        "agents"
    ]
    assert (listed["status"], listed["detected_by"]) == ("completed", "session_gone")


def test_what_a_rescue_command_prints_on_stderr_is_shown(project: Path, tmp_path: Path) -> None:
    program = write(tmp_path / "rescue", "#!/bin/sh\necho 'no credentials here' >&2\nexit 3\n")
    program.chmod(0o755)
    assert run("baseline").code == 0
    write(project / "made.txt", "by the agent\n")
    result = run("rescue", env={"GUARD_RESCUE__COMMAND": str(program)})
    assert "no credentials here" in result.err
