"""Every knob of the check and the rescue changes something that can be seen."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support import commit, git, run, write
from tests.support.sessions import QUICK, answering, asked, script

SESSION = "0b66888f-6ea6-497a-bbf7-1148f76ef540"


@pytest.fixture
def begun(repository: Path) -> Path:
    """A repository with one commit and a baseline."""
    commit(repository, "first.txt")
    assert run("baseline").code == 0
    return repository


def user_config(home: Path, text: str) -> None:
    write(home / "config" / "guard" / "config.toml", text)


def test_agent_and_probe_command_say_whom_to_ask(begun: Path, home: Path, tmp_path: Path) -> None:
    command = answering(tmp_path, "complete")
    user_config(home, f'[completion_check]\nagent = "command"\nprobe_command = "{command}"\n')
    result = run("check", "--format", "json")
    assert (result.code, result.json["reason"], asked(tmp_path)) == (0, "nothing_to_do", 1)


def test_a_probe_command_in_the_projects_file_is_passed_over_with_a_warning(
    repository: Path, tmp_path: Path
) -> None:
    command = answering(tmp_path, "complete")
    text = f'[completion_check]\nagent = "command"\nprobe_command = "{command}"\n'
    commit(repository, "guard.toml", text)
    result = run("baseline")
    assert "probe_command is ignored" in result.err
    assert run("check", *QUICK).code == 15
    assert asked(tmp_path) == 0


@pytest.mark.parametrize(("knob", "said"), [("", "sonnet"), ("haiku", "haiku")])
def test_probe_model_is_the_model_that_answers(
    knob: str, said: str, begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "bin" / "claude", f'echo "$@" > {tmp_path}/argv; exit 1')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GUARD_COMPLETION_CHECK__PROBE_MODEL", knob)
    run("check", *QUICK, "--agent", "claude", "--session", SESSION)
    assert f"--model {said}" in (tmp_path / "argv").read_text()


def test_task_file_is_where_the_open_boxes_are(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, "todo/login.md", "- [ ] open\n")
    assert run("baseline").code == 0
    words = ("check", *QUICK, "--spec", "login", "--probe-command", answering(tmp_path, "complete"))
    assert run(*words).code == 0
    monkeypatch.setenv("GUARD_COMPLETION_CHECK__TASK_FILE", "todo/{spec}.md")
    assert run(*words).code == 10


def test_git_timeout_is_how_long_a_call_of_git_may_take(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("git")
    script(tmp_path / "bin" / "git", f'sleep 1; exec {real} "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GUARD_COMPLETION_CHECK__GIT_TIMEOUT_SECONDS", "0.3")
    result = run("check", "--no-probe", "--no-wait")
    assert (result.code, result.out) == (4, "")
    assert "took longer than 0.3 s" in result.err


def test_the_time_limit_of_a_rescue_ends_its_command(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_RESCUE__COMMAND", script(tmp_path / "rescue", "sleep 300"))
    write(begun / "new.py", "print(1)\n")
    words = ("check", "--max-probes", "1", "--probe-command", answering(tmp_path, "complete"))
    # On a busy machine the snapshot before it may not fit into three seconds: exit code 6.
    for limit in ("3", "20", "90"):
        monkeypatch.setenv("GUARD_RESCUE__TIME_LIMIT_SECONDS", limit)
        result = run(*words)
        if result.code != 6:
            break
    assert result.code == 10
    assert "did not end in time" in result.out
    assert git(begun, "status", "--porcelain") == "?? new.py\n"


@pytest.mark.parametrize(("seconds", "least"), [("0.1", 0.0), ("2", 2.0)])
def test_probe_interval_is_the_time_between_two_rounds(
    seconds: str, least: float, begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_COMPLETION_CHECK__PROBE_INTERVAL_SECONDS", seconds)
    command = script(tmp_path / "probe", "echo no answer")
    result = run("check", "--max-probes", "2", "--probe-command", command, "--format", "json")
    assert result.code == 10
    assert result.json["elapsed_seconds"] >= least
