"""A program that is asked: answers of any length, and an end to every wait."""

import os
import sys
import time

import pytest

from guard.system.dialogue import Dialogue, DialogueEnded, open_dialogue

ECHO = """
import sys
for line in sys.stdin.buffer:
    size = int(line)
    sys.stdout.buffer.write(b"%d bytes\\n" % size + b"x" * size + b"\\n")
    sys.stdout.buffer.flush()
"""


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def test_answers_of_any_length_come_piece_by_piece() -> None:
    with open_dialogue(python(ECHO), environ=os.environ, time_limit=120) as program:
        for size in (0, 1, 65536, 3_000_000, 5):
            program.ask(b"%d\n" % size)
            assert program.line() == b"%d bytes" % size
            pieces = list(program.pieces(size))
            assert sum(map(len, pieces)) == size
            assert max(map(len, pieces), default=0) <= 1024**2
            assert program.line() == b""


@pytest.mark.parametrize(
    "script",
    ["", "import time; time.sleep(300)", "print('x' * 10**6, end='', flush=True); input()"],
    ids=["ends", "says nothing", "says a line without end"],
)
def test_a_program_that_does_not_answer_is_not_waited_for(script: str) -> None:
    begun = time.monotonic()
    with (
        pytest.raises(DialogueEnded),
        open_dialogue(python(script), environ=os.environ, time_limit=2) as program,
    ):
        program.line()
    assert time.monotonic() - begun < 180


def test_asking_a_program_that_has_ended_is_no_crash() -> None:
    with open_dialogue(python(""), environ=os.environ, time_limit=120) as program:
        with pytest.raises(DialogueEnded):
            program.line()
        with pytest.raises(DialogueEnded):
            _ask_on_and_on(program)


def _ask_on_and_on(program: Dialogue) -> None:
    """The output of a program that ends is closed a little before its input is."""
    while True:
        program.ask(b"x\n")


def test_it_does_not_outlive_the_block() -> None:
    script = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with open_dialogue(python(script), environ=os.environ, time_limit=120) as program:
        pid = int(program.line())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
