"""`guard doctor`: each check, on a machine that really is so."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from guard.agents import registry
from guard.schemas.validate import validator
from guard.store.file_store import FileStore
from tests.support import ROOT, TIME_LIMIT, Result, git, run, tool_folder, write


def program(folder: Path, name: str, text: str) -> Path:
    """An executable script."""
    path = write(folder / name, text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH: git, and what a test puts there."""
    folder = tool_folder(tmp_path / "tools", "sleep", "setsid")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def examined(result: Result) -> dict[str, Any]:
    assert list(validator("doctor").iter_errors(result.json)) == []
    checks = result.json["checks"]
    assert result.json["ok"] == all(check["state"] != "problem" for check in checks)
    assert result.code == (0 if result.json["ok"] else 1)
    unexplained = [c["name"] for c in checks if c["state"] == "problem" and not c["hint"]]
    assert unexplained == []
    return {check["name"]: check for check in checks}


def doctor(*words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> Any:
    return examined(run(*words, "doctor", "--format", "json", cwd=cwd, env=env))


def problems(checks: dict[str, Any]) -> set[str]:
    return {name for name, check in checks.items() if check["state"] == "problem"}


def test_a_sound_machine(repository: Path, tools: Path) -> None:
    program(tools, "claude", "#!/bin/sh\necho '2.1.37 (Claude Code)'\n")
    program(tools, "tmux", "#!/bin/sh\n")
    checks = doctor()
    assert {check["state"] for check in checks.values()} == {"ok"}
    assert checks["identity"]["found"] == "Test Author <author@example.com>"
    assert checks["agent CLIs"]["found"] == "claude 2.1.37"
    assert "will be made when it is needed" in checks["workspace"]["found"]
    assert run("agent", "spawn", "--task", "T1", "--agent", "a1").code == 0
    checks = doctor()
    assert "(writable, lockable)" in checks["workspace"]["found"]
    assert checks["state"]["found"] == "readable; active agents: 1"


def test_the_text_has_a_mark_a_name_and_hints(repository: Path) -> None:
    lines = run("doctor").out.splitlines()
    assert lines[0].split()[:2] == ["ok", "python"]
    assert any(line.startswith("note  agent CLIs   none found on PATH") for line in lines)
    assert any(line.strip().startswith("hint: install one of claude, ") for line in lines)


def test_what_is_not_installed_is_said_once(repository: Path, tools: Path) -> None:
    assert doctor()["not installed"]["found"].startswith("tmux (to watch agents' sessions)")
    program(tools, "claude", "#!/bin/sh\necho '2.1.37 (Claude Code)'\n")
    text = run("doctor").out
    (line,) = [line for line in text.splitlines() if "copilot" in line]
    assert line.startswith("ok    not installed codex, gemini, qwen, opencode, copilot, tmux (")
    assert text.count("tmux") == 1
    program(tools, "tmux", "#!/bin/sh\n")
    assert "tmux" not in doctor().get("not installed", {"found": ""})["found"]


def test_looking_leaves_nothing_behind(repository: Path, workspace: Path, home: Path) -> None:
    doctor()
    assert not (home / "state").exists()
    registry.spawn(FileStore(workspace), datetime.now(UTC), task_id="T1", agent_id="a1")
    before = sorted(path.name for path in workspace.iterdir())
    doctor("--workspace", workspace)
    assert sorted(path.name for path in workspace.iterdir()) == before


def test_no_git(repository: Path, tools: Path) -> None:
    (tools / "git").unlink()
    checks = doctor()
    assert (checks["git"]["state"], checks["git"]["found"]) == ("problem", "git is not installed")
    assert checks["git"]["hint"] == "install git 2.31 or newer"


def test_a_git_that_is_too_old(repository: Path, tools: Path) -> None:
    (tools / "git").unlink()
    program(tools, "git", "#!/bin/sh\necho git version 2.30.9\n")
    checks = doctor()
    assert (checks["git"]["state"], checks["git"]["found"]) == ("problem", "git version 2.30.9")


def test_no_identity_is_a_warning(repository: Path) -> None:
    git(repository, "config", "--unset", "user.email")
    checks = doctor()
    assert checks["identity"]["state"] == "warning"
    assert "git config --global user.email" in checks["identity"]["hint"]
    assert problems(checks) == set()


def test_no_repository(tmp_path: Path) -> None:
    checks = doctor(cwd=tmp_path)
    assert {"repository", "workspace"} <= problems(checks)
    assert "is not in a git repository" in checks["repository"]["found"]


@pytest.mark.parametrize("place", ["info/exclude", "logs/HEAD"])
def test_a_pipe_below_the_git_directory(place: str, repository: Path) -> None:
    (repository / ".git" / place).unlink(missing_ok=True)
    (repository / ".git" / place).parent.mkdir(exist_ok=True)
    os.mkfifo(repository / ".git" / place)
    found = examined(run("doctor", "--format", "json"))["repository"]
    assert found["state"] == "problem"
    assert f"{place} is a named pipe" in found["found"]


def test_a_vanished_git_directory(repository: Path) -> None:
    assert run("agent", "spawn", "--task", "T1", "--agent", "a1").code == 0
    shutil.rmtree(repository / ".git")
    checks = doctor()
    assert problems(checks) == {"repository"}
    assert checks["repository"]["found"].endswith(".git is gone")


@pytest.mark.parametrize(
    ("text", "state"),
    [("[registry]\nkeep = 1\n", "warning"), ('workspace = "/x"\n', "warning"), ("", "ok")],
    ids=["an unknown key", "a key that is the user's alone", "nothing"],
)
def test_the_configuration(text: str, state: str, repository: Path) -> None:
    write(repository / "guard.toml", text)
    assert doctor()["config"]["state"] == state


def test_a_folder_that_cannot_be_written(repository: Path, home: Path) -> None:
    home.chmod(0o555)
    command = [sys.executable, "-m", "guard", "doctor", "--format", "json"]
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv", path="/usr/bin:/bin")
        if setpriv is None:
            pytest.skip("root writes everywhere, and there is no setpriv")
        command = [setpriv, "--bounding-set", "-dac_override,-dac_read_search", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    home.chmod(0o755)
    checks = examined(Result(done.returncode, done.stdout, done.stderr))
    assert problems(checks) == {"workspace"}
    assert checks["workspace"]["found"].endswith(f"cannot be made: {home} is not writable")


def test_a_workspace_that_another_holds(repository: Path, workspace: Path) -> None:
    registry.spawn(FileStore(workspace), datetime.now(UTC), task_id="T1", agent_id="a1")
    with open(workspace / "workspace.lock", "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        checks = doctor("--workspace", workspace)
    assert "workspace" in problems(checks)
    assert f"held by pid {os.getpid()}" in checks["workspace"]["found"]


def test_a_damaged_log(repository: Path, workspace: Path) -> None:
    registry.spawn(FileStore(workspace), datetime.now(UTC), task_id="T1", agent_id="a1")
    log = workspace / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"agent_id":"a1"', b'"agent_id":"a2"'))
    (workspace / "registry" / "GLOBAL_REGISTRY.json").unlink()
    checks = doctor("--workspace", workspace)
    assert len(problems(checks)) == 1
    (name,) = problems(checks)
    assert "events.jsonl: record 2" in checks[name]["found"]


def test_a_stopped_clock(repository: Path) -> None:
    checks = doctor(env={"GUARD_NOW": "2026-01-31T12:00:00Z"})
    assert checks["clock"]["state"] == "warning"
    assert checks["clock"]["hint"] == "unset GUARD_NOW"


def test_a_clock_behind_the_state(repository: Path, workspace: Path) -> None:
    later = datetime(2199, 1, 1, tzinfo=UTC)
    registry.spawn(FileStore(workspace), later, task_id="T1", agent_id="a1")
    checks = doctor("--workspace", workspace)
    assert checks["clock"]["state"] == "warning"
    assert "2199-01-01" in checks["clock"]["found"]


def hooks_at(folder: Path) -> Iterator[Path]:
    yield program(folder, "pre-commit", (ROOT / "hooks" / "pre-commit").read_text())
    yield program(folder, "post-commit", "#!/bin/sh\n")


@pytest.mark.parametrize("told", [None, ".githooks"], ids=["default", "core.hooksPath"])
def test_hooks_are_told_apart_where_git_looks_for_them(told: str | None, repository: Path) -> None:
    folder = repository / (told or ".git/hooks")
    assert len(list(hooks_at(folder))) == 2
    if told:
        git(repository, "config", "core.hooksPath", told)
    found = doctor()["git hooks"]["found"]
    assert found.startswith(f"guard's: pre-commit; others: post-commit ({folder})")


def test_agents_that_hang_or_do_not_start_hold_nothing_up(repository: Path, tools: Path) -> None:
    program(tools, "claude", "#!/bin/sh\nsleep 300\n")
    program(tools, "codex", "#!/bin/sh\necho codex-cli 0.46.0\n")
    program(tools, "gemini", "#!/nowhere/python\n")
    program(tools, "qwen", "#!/bin/sh\nexit 1\n")
    program(tools, "opencode", "#!/bin/sh\nsetsid sleep 300 &\necho 1.0.5\n")
    begun = time.monotonic()
    found = doctor()["agent CLIs"]["found"]
    assert time.monotonic() - begun < 120
    versions = dict(part.split(" ", 1) for part in found.split(", "))
    assert set(versions) == {"claude", "codex", "gemini", "qwen", "opencode"}
    assert versions["codex"] == "0.46.0"
    assert versions["gemini"].startswith("(does not start")
    assert versions["claude"].startswith("(")
    assert versions["qwen"] == "(version unknown)"


def test_an_agent_cannot_write_to_the_terminal(repository: Path, tools: Path) -> None:
    program(tools, "claude", "#!/bin/sh\nprintf '1.2\\033[2J3\\n'\n")
    assert "\x1b" not in run("doctor").out
