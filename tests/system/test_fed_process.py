"""A program that is fed: its end, its limits, and that it does not outlive the block."""

import os
import sys
import time

import pytest

from guard.system.processes import FedProcess, feed, run

PYTHON = sys.executable


def feed_for_ever(program: FedProcess) -> None:
    while True:
        program.write(bytes(100_000))


def test_it_reads_what_is_written_and_ends() -> None:
    count = "import sys; sys.exit(len(sys.stdin.buffer.read()) // 100000)"
    with feed([PYTHON, "-c", count], environ=os.environ, time_limit=120) as program:
        for _ in range(7):
            program.write(bytes(100_000))
        assert program.finish().code == 7


def test_a_program_that_ends_early_breaks_the_pipe_and_says_why() -> None:
    words = "import sys; sys.exit('no more')"
    with feed([PYTHON, "-c", words], environ=os.environ, time_limit=120) as program:
        with pytest.raises(BrokenPipeError):
            feed_for_ever(program)
        finished = program.finish()
    assert (finished.code, finished.stderr) == (1, b"no more\n")


def test_a_program_that_does_not_read_is_killed_at_its_limit() -> None:
    began = time.monotonic()
    with feed(["sleep", "300"], environ=os.environ, time_limit=0.3) as program:
        with pytest.raises(BrokenPipeError):
            feed_for_ever(program)
        assert program.finish().code is None
    assert time.monotonic() - began < 180


def test_it_does_not_outlive_the_block() -> None:
    with feed(["sleep", "600"], environ=os.environ, time_limit=120) as program:
        os.kill(program.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(program.pid, 0)


def test_what_was_said_before_the_time_limit_is_heard_whole() -> None:
    for _ in range(200):
        done = run(["echo", "whole"], environ=os.environ, time_limit=0.002)
        assert done.code is None or done.stdout == b"whole\n"
