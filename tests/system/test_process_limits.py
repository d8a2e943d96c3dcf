"""How a program is run to its end: its input, the limits on its output and its time, and who may hold its pipes."""

import gc
import os
import signal
import sys
import threading
from pathlib import Path
from time import monotonic, sleep

import pytest

from guard.system.processes import Finished, run
from tests.support.sessions import until


def python(code: str, *, time_limit: float = 120, **limits: int | bytes) -> Finished:
    argv = [sys.executable, "-S", "-c", f"import os, subprocess, sys, time\n{code}"]
    return run(argv, environ=os.environ, time_limit=time_limit, **limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 1, 65536, 3_000_000])
def test_input_comes_out_as_it_went_in(size: int) -> None:
    data = os.urandom(size)
    done = run(["cat"], environ=os.environ, time_limit=120, stdin=data)
    assert (done.code, done.stdout == data, done.overflowed) == (0, True, False)


def test_without_input_there_is_none() -> None:
    assert python("print(len(sys.stdin.read()))").stdout == b"0\n"


@pytest.mark.parametrize("code", ["", "os.close(0); time.sleep(0.3)", "sys.stdin.read(10)"])
def test_input_that_nobody_wants_is_no_error(code: str) -> None:
    assert python(code, stdin=b"x" * 3_000_000).code == 0


def test_output_up_to_the_limit_is_whole() -> None:
    done = python("sys.stdout.write('x' * 100000)", most_stdout=100_000)
    assert (done.code, len(done.stdout), done.overflowed) == (0, 100_000, False)


def test_output_beyond_the_limit_ends_the_program() -> None:
    begun = monotonic()
    done = python("while True: sys.stdout.write('x' * 100000)", most_stdout=100_000)
    assert (done.code, len(done.stdout), done.overflowed) == (None, 100_000, True)
    assert monotonic() - begun < 180


def test_of_errors_the_end_is_kept() -> None:
    done = python("sys.stderr.write('x' * 3000000 + 'end'); sys.exit(3)", most_stderr=1000)
    assert (done.code, done.stderr) == (3, b"x" * 997 + b"end")


def test_what_was_said_before_the_time_limit_is_kept() -> None:
    for limit in (
        1,
        5,
        30,
        120,
    ):  # On a busy machine Python may not have started by the first of these.
        done = python("print('said', flush=True); time.sleep(300)", time_limit=limit)
        assert done.code is None
        if done.stdout:
            break
    assert (done.code, done.stdout, done.overflowed) == (None, b"said\n", False)


def test_a_program_that_closed_its_output_still_has_a_time_limit() -> None:
    begun = monotonic()
    assert python("os.close(1); os.close(2); time.sleep(300)", time_limit=1).code is None
    assert monotonic() - begun < 180


LEFT_BEHIND = {
    "in its group": "subprocess.Popen(['sleep', '300'])",
    "in a session of its own": "subprocess.Popen(['sleep', '300'], start_new_session=True)",
    "and talkative": "subprocess.Popen(['sh', '-c', 'while echo x; do sleep 0.01; done'])",
}


@pytest.mark.parametrize("code", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
def test_a_child_that_is_left_behind_does_not_hold_us(code: str) -> None:
    begun = monotonic()
    done = python(f"print('said', flush=True); {code}; sys.exit(3)")
    assert (done.code, done.stdout[:5]) == (3, b"said\n")
    assert monotonic() - begun < 180


def test_a_child_that_is_left_behind_in_the_group_and_holds_the_output_is_ended() -> None:
    done = python("print(subprocess.Popen(['sleep', '300']).pid, flush=True)")
    pid = int(done.stdout)
    until(lambda: _state(pid) in ("Z", ""))


def test_a_child_that_is_left_behind_without_holding_anything_lives() -> None:
    """What a git hook starts in the background is the user's."""
    code = "child = subprocess.Popen(['sleep', '300'], stdout=-3, stderr=-3); print(child.pid)"
    pid = int(python(code).stdout)
    try:
        assert _state(pid) not in ("Z", "")
    finally:
        os.kill(pid, signal.SIGKILL)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def test_an_interruption_ends_the_program(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def interrupt() -> None:
        while not pid_file.exists() or not pid_file.read_text():
            sleep(0.05)
        sleep(1)  # On a busy machine the program may be up before whoever started it waits for it.
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        python(f"open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    assert _state(int(pid_file.read_text())) == ""


def test_nothing_is_left_open() -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for limit in (0.1, 120):
        python("time.sleep(1)", time_limit=limit, stdin=b"x")
        python("print('x' * 100)", most_stdout=10)
    assert len(os.listdir("/proc/self/fd")) <= before
