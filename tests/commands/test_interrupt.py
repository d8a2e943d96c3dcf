"""Ctrl-C in a wait: guard says what is safe, and what it says is so."""

import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import commit, run, write
from tests.support.sessions import ending, script, started, until

LIMITED = "Claude AI usage limit reached|4102444800"


@pytest.fixture
def project(repository: Path) -> Path:
    commit(repository, "first.txt")
    return repository


def waits(folder: Path) -> str:
    """A program that says that it is there, and then never ends."""
    return script(folder / "waits", f"echo up > {shlex.quote(str(folder))}/up; exec sleep 600")


def interrupt(is_waiting: Callable[[], bool], *words: str | Path) -> str:
    """Start guard, press Ctrl-C once it waits, and return its stderr."""
    with ending(started(*words, listen=True)) as guard:
        until(is_waiting)
        guard.send_signal(signal.SIGINT)
        _, err = guard.communicate(timeout=120)
        assert guard.returncode == 130, err
    said: str = err
    assert "guard: interrupted\nhint: " in said
    return said


def is_open() -> bool:
    return not run("log", "--type", "iteration_ended", "--format", "json").json["events"]


COMMANDS = {
    "check": ("check",),
    "run": ("run", "--task", "T1"),
    "loop": ("loop", "--max-iterations", "3"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_iteration_whose_session_is_asked_stays_open_and_can_be_judged(
    command: tuple[str, ...], project: Path, tmp_path: Path
) -> None:
    agent: tuple[str, ...] = ("--", "sh", "-c", "echo work > new.txt")
    if command == ("check",):
        assert run("baseline").code == 0
        write(project / "new.txt", "work\n")
        agent = ()
    words = (*command, "--probe-command", waits(tmp_path), "--probe-timeout", "600", *agent)
    said = interrupt((tmp_path / "up").exists, *words)
    assert "iteration 1 stays open, with its baseline, and `guard check` judges it" in said
    assert is_open()
    assert (project / "new.txt").read_text() == "work\n"
    judged = run("check", "--no-probe", "--no-wait", "--no-rescue", "--format", "json").json
    assert (judged["iteration"], judged["uncommitted"]["untracked"]) == (1, ["new.txt"])


def test_no_iteration_is_open_while_a_loop_waits_for_a_limit(project: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"

    def has_ended() -> bool:
        return "limited" in run("metrics").out

    words = ("loop", "--report", report, "--", "sh", "-c", f"echo '{LIMITED}'; exit 1")
    said = interrupt(has_ended, *words)
    assert "no iteration is open" in said
    assert "stays open" not in said
    assert not is_open()
    assert report.exists()


def test_nothing_is_open_where_no_iteration_was_begun(project: Path, tmp_path: Path) -> None:
    probe = ("--probe-command", waits(tmp_path), "--probe-timeout", "600")
    said = interrupt((tmp_path / "up").exists, "check", "--baseline", "HEAD", *probe)
    assert "no iteration is open" in said


def test_the_wait_for_agents_stops_none(project: Path) -> None:
    assert run("agent", "spawn", "--task", "T1", "--agent", "a1").code == 0
    with ending(started("agent", "wait", "T1", listen=True)) as guard:
        assert guard.stderr is not None
        assert "a1" in next(guard.stderr)
        guard.send_signal(signal.SIGINT)
        _, err = guard.communicate(timeout=120)
    assert (guard.returncode, "no agent was stopped" in err) == (130, True), err
    assert run("agent", "list").out.startswith("1 active")


def test_a_probe_and_a_rescue_can_be_asked_for_again(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up, program = tmp_path / "up", waits(tmp_path)
    said = interrupt(up.exists, "probe", "--probe-command", program, "--probe-timeout", "600")
    assert "the session can be asked again" in said
    up.unlink()
    assert run("baseline").code == 0
    write(project / "new.txt", "work\n")
    monkeypatch.setenv("GUARD_RESCUE__COMMAND", program)
    said = interrupt(up.exists, "rescue")
    assert "`guard rescue` goes on" in said
    monkeypatch.delenv("GUARD_RESCUE__COMMAND")
    assert run("rescue").code == 0
    assert (project / "new.txt").read_text() == "work\n"
