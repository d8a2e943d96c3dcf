"""The agent as a child: its output, its input, its signals, its terminal."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support import commit, run
from tests.support.sessions import ending, until

GUARD = (sys.executable, "-m", "guard", "-q", "run", "--no-probe", "--")
TIME_LIMIT = 120


@pytest.fixture(autouse=True)
def begun(repository: Path) -> Path:
    commit(repository, "first.txt")
    return repository


def test_much_output_is_passed_on_whole(begun: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40000)"
    words = [*GUARD, sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, check=False, timeout=TIME_LIMIT)
    assert done.stdout[: 256 * 40000] == bytes(range(256)) * 40000


def test_a_reader_that_goes_away_does_not_end_the_agent(begun: Path) -> None:
    code = "import sys\nfor _ in range(2000): print('x' * 500, flush=True)\nopen('ended', 'w')"
    command = " ".join([*GUARD, sys.executable, "-c", f'"{code}"'])
    line = f"{command} | head -n 1"
    subprocess.run(["bash", "-c", line], capture_output=True, check=False, timeout=TIME_LIMIT)
    until((begun / "ended").exists, 90)


def test_a_leftover_process_that_holds_the_output_open_is_not_waited_for(begun: Path) -> None:
    done = run(
        "-q",
        "run",
        "--no-probe",
        "--no-wait",
        "--",
        "sh",
        "-c",
        "sleep 300 & echo $! > left; echo done",
    )
    assert done.out.startswith("done\n")
    with suppress(ProcessLookupError):
        os.kill(int((begun / "left").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_reach_the_whole_group(number: int, begun: Path) -> None:
    name = signal.Signals(number).name.removeprefix("SIG")
    agent = f"trap 'echo got > got; exit 0' {name}; (sleep 300) & echo up > up; wait; wait"
    started = subprocess.Popen([*GUARD, "sh", "-c", agent], stdout=subprocess.PIPE)
    with ending(started) as guard:
        until((begun / "up").exists, 90)
        guard.send_signal(number)
        guard.communicate(timeout=TIME_LIMIT)
    assert guard.returncode == 130
    assert (begun / "got").exists()


def test_the_exit_code_of_the_agent_is_in_the_evidence(begun: Path) -> None:
    result = run("run", "--no-probe", "--format", "json", "--", "sh", "-c", "exit 7")
    assert result.json["exit_code"] == 7
    result = run("run", "--no-probe", "--format", "json", "--", "sh", "-c", "kill -9 $$")
    assert result.json["exit_code"] == -9


# In a session of its own, with the terminal that is its stdin as the one that Ctrl-C is pressed on.
ON_IT = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, sys.argv[1:])
"""


@contextmanager
def on_a_terminal(agent: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-c", ON_IT, *GUARD, "sh", "-c", agent]
    started = subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    with ending(started) as guard:
        yield guard, ours
    os.close(ours)


def test_on_a_terminal_ctrl_c_stops_the_agent_and_is_known_to_guard() -> None:
    agent = "trap 'echo stopped; exit 0' INT; echo up; while :; do sleep 0.1; done"
    with on_a_terminal(agent) as (guard, terminal):
        _read_until(terminal, b"up")
        os.write(terminal, b"\x03")
        assert b"stopped" in _read_until(terminal, b"interrupted: stopped")
        assert guard.wait(TIME_LIMIT) == 130


def test_on_a_terminal_the_agent_may_read_keys() -> None:
    agent = "echo up; read line; echo got $line; read line"
    with on_a_terminal(agent) as (guard, terminal):
        _read_until(terminal, b"up")
        os.write(terminal, b"hello\n")
        _read_until(terminal, b"got hello")
        os.write(terminal, b"\x03")
        _read_until(terminal, b"interrupted: stopped")
        assert guard.wait(TIME_LIMIT) == 130


def test_on_a_terminal_an_agent_may_wait_for_keys_as_long_as_it_likes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GUARD_RUN__MAX_IDLE_SECONDS", "1")
    with on_a_terminal("echo up; read line; echo got $line") as (guard, terminal):
        _read_until(terminal, b"up")
        time.sleep(5)
        os.write(terminal, b"hello\n")
        assert b"got hello" in _read_until(terminal, b"timeout: ")
        guard.wait(TIME_LIMIT)


def _read_until(terminal: int, words: bytes) -> bytes:
    seen, deadline = b"", time.monotonic() + 90
    while words not in seen:
        ready = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]
        assert ready, seen
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            break
    return seen
