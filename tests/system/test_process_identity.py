"""Which process is which: start times that tell a reused pid, zombies, and machines that tell less."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

import pytest

from guard.system import process_identity as alive

PAUSE = [sys.executable, "-c", "import time; time.sleep(60)"]


@contextmanager
def child(argv: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(argv)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_process_is_known_by_its_start_until_it_ends() -> None:
    with child(PAUSE) as process:
        start = alive.start_time(process.pid)
        assert start == alive.start_time(process.pid)
        assert alive.is_alive(process.pid, start)
        assert not alive.is_alive(process.pid, "12345@another-boot")
    assert alive.start_time(process.pid) is None
    assert not alive.is_alive(process.pid, start)


def test_two_processes_started_apart_differ() -> None:
    with child(PAUSE) as first:
        sleep(0.05)
        with child(PAUSE) as second:
            assert alive.start_time(first.pid) != alive.start_time(second.pid)


def test_a_process_that_nobody_waited_for_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert alive.start_time(process.pid) is None
    finally:
        process.wait()


def test_a_name_with_brackets_and_spaces_does_not_shift_the_fields(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 2 (b"
    program.symlink_to("/bin/sleep")
    with child([str(program), "60"]) as odd, child(["/bin/sleep", "60"]) as plain:
        found = [re.fullmatch(r"(\d+)@\S+", alive.start_time(p.pid) or "") for p in (odd, plain)]
        assert found[0]
        assert found[1]
        assert abs(int(found[0][1]) - int(found[1][1])) < 1000


def test_without_a_known_start_the_number_alone_decides() -> None:
    with child(PAUSE) as process:
        assert alive.is_alive(process.pid, None)
    assert not alive.is_alive(process.pid, None)
    assert alive.is_alive(1, None)


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**31, 2**70], ids=str)
def test_a_number_that_no_process_has(pid: int) -> None:
    assert alive.start_time(pid) is None
    assert not alive.is_alive(pid, None)
    assert not alive.is_alive(pid, "x")


def test_ps_tells_the_same_where_there_is_no_proc() -> None:
    with child(PAUSE) as process:
        start = alive._start_from_ps(process.pid)
        assert start
        assert start == alive._start_from_ps(process.pid)
        assert start.endswith(f"@{alive.boot_id() or '?'}")
    assert alive._start_from_ps(process.pid) is None


def test_where_nothing_tells_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/proc/nowhere")
    assert alive._start_from_ps(os.getpid()) is None


def test_the_boot_has_one_name_in_all_processes() -> None:
    code = "from guard.system.process_identity import boot_id; print(boot_id())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(alive.boot_id())
