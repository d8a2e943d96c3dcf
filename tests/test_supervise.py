"""The agent as a child: its output, its input, its signals, its terminal."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support import commit, run

GUARD = (sys.executable, "-m", "guard", "-q", "run", "--no-probe", "--")


@pytest.fixture(autouse=True)
def begun(repository: Path) -> Path:
    commit(repository, "first.txt")
    return repository


def test_much_output_is_passed_on_whole(begun: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40000)"
    done = subprocess.run([*GUARD, sys.executable, "-c", code], capture_output=True, check=False)
    assert done.stdout[: 256 * 40000] == bytes(range(256)) * 40000


def test_a_reader_that_goes_away_does_not_end_the_agent(begun: Path) -> None:
    code = "import sys\nfor _ in range(2000): print('x' * 500, flush=True)\nopen('ended', 'w')"
    command = " ".join([*GUARD, sys.executable, "-c", f'"{code}"'])
    subprocess.run(["bash", "-c", f"{command} | head -n 1"], capture_output=True, check=False)
    deadline = time.monotonic() + 90
    while not (begun / "ended").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_leftover_process_that_holds_the_output_open_is_not_waited_for(begun: Path) -> None:
    begun_at = time.monotonic()
    done = run(
        "-q",
        "run",
        "--no-probe",
        "--no-wait",
        "--",
        "sh",
        "-c",
        "sleep 30 & echo $! > left; echo done",
    )
    assert done.out.startswith("done\n")
    assert time.monotonic() - begun_at < 15
    with suppress(ProcessLookupError):
        os.kill(int((begun / "left").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_reach_the_whole_group(number: int, begun: Path) -> None:
    name = signal.Signals(number).name.removeprefix("SIG")
    agent = f"trap 'echo got > got; exit 0' {name}; (sleep 50) & echo up > up; wait; wait"
    with subprocess.Popen([*GUARD, "sh", "-c", agent], stdout=subprocess.PIPE) as guard:
        deadline = time.monotonic() + 90
        while not (begun / "up").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        guard.send_signal(number)
        guard.communicate(timeout=120)
    assert guard.returncode == 130
    assert (begun / "got").exists()


def test_the_exit_code_of_the_agent_is_in_the_evidence(begun: Path) -> None:
    result = run("run", "--no-probe", "--format", "json", "--", "sh", "-c", "exit 7")
    assert result.json["exit_code"] == 7
    result = run("run", "--no-probe", "--format", "json", "--", "sh", "-c", "kill -9 $$")
    assert result.json["exit_code"] == -9


def on_a_terminal(agent: str) -> tuple[int, int]:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [*GUARD, "sh", "-c", agent])
    return pid, terminal


def test_on_a_terminal_ctrl_c_stops_the_agent_and_is_known_to_guard() -> None:
    pid, terminal = on_a_terminal(
        "trap 'echo stopped; exit 0' INT; echo up; while :; do sleep 0.1; done"
    )
    _read_until(terminal, b"up")
    os.write(terminal, b"\x03")
    assert b"stopped" in _read_until(terminal, b"interrupted: stopped")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    os.close(terminal)


def test_on_a_terminal_the_agent_may_read_keys() -> None:
    pid, terminal = on_a_terminal("echo up; read line; echo got $line; read line")
    _read_until(terminal, b"up")
    os.write(terminal, b"hello\n")
    _read_until(terminal, b"got hello")
    os.write(terminal, b"\x03")
    _read_until(terminal, b"interrupted: stopped")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    os.close(terminal)


def test_on_a_terminal_an_agent_may_wait_for_keys_as_long_as_it_likes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GUARD_RUN__MAX_IDLE_SECONDS", "1")
    pid, terminal = on_a_terminal("echo up; read line; echo got $line")
    _read_until(terminal, b"up")
    time.sleep(5)
    os.write(terminal, b"hello\n")
    assert b"got hello" in _read_until(terminal, b"timeout: ")
    os.waitpid(pid, 0)
    os.close(terminal)


def _read_until(terminal: int, words: bytes) -> bytes:
    seen, deadline = b"", time.monotonic() + 90
    while words not in seen:
        ready = select.select([terminal], [], [], deadline - time.monotonic())[0]
        assert ready, seen
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            break
    return seen
