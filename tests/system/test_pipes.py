"""Bytes on their way to a reader that is slow, pauses, goes away, or never comes."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from guard.system.pipes import Outlet
from tests.support.sessions import until

CHUNK = b"x" * 65536


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The end to write to stays open: a thread may still be at it, and its number must not become another file's."""
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


def test_what_is_handed_over_comes_out_in_its_order(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    pieces = [f"{number}\n".encode() for number in range(1000)]
    for piece in pieces:
        outlet.put(piece)
    outlet.flush()
    assert os.read(pipe[0], 65536) == b"".join(pieces)


def test_handing_over_waits_only_when_much_is_waiting(pipe: tuple[int, int]) -> None:
    outlet, handed = Outlet(pipe[1]), 0

    def hand_over() -> None:
        nonlocal handed
        for _ in range(64):
            outlet.put(CHUNK)
            handed += 1

    threading.Thread(target=hand_over, daemon=True).start()
    until(lambda: outlet.is_held_up)
    assert 16 <= handed < 24
    outlet.take_the_rest()
    until(lambda: handed == 64)
    assert not outlet.is_held_up
    read = 0
    while read < 64 * len(CHUNK):
        read += len(os.read(pipe[0], 1 << 20))
    outlet.flush()


def test_a_reader_that_has_gone_holds_nobody_up() -> None:
    reader, writer = os.pipe()
    outlet = Outlet(writer)
    os.close(reader)
    for _ in range(100):
        outlet.put(CHUNK)
    outlet.flush()


def test_a_reader_that_pauses_loses_nothing(pipe: tuple[int, int]) -> None:
    outlet, flushed = Outlet(pipe[1]), threading.Event()
    for _ in range(8):
        outlet.put(CHUNK)

    def flush() -> None:
        outlet.flush()
        flushed.set()

    threading.Thread(target=flush, daemon=True).start()
    assert not flushed.wait(1)
    read = 0
    while read < 8 * len(CHUNK):
        read += len(os.read(pipe[0], 1 << 20))
    assert flushed.wait(120)


def test_a_flush_ends_when_the_reader_goes() -> None:
    reader, writer = os.pipe()
    outlet = Outlet(writer)
    for _ in range(8):
        outlet.put(CHUNK)
    threading.Timer(0.5, os.close, [reader]).start()
    outlet.flush()
    assert not outlet.is_held_up


def test_a_flush_ends_at_ctrl_c(pipe: tuple[int, int]) -> None:
    outlet = Outlet(pipe[1])
    for _ in range(8):
        outlet.put(CHUNK)

    def flush() -> None:
        words = (threading.get_ident(), signal.SIGINT)
        threading.Timer(0.5, signal.pthread_kill, words).start()
        outlet.flush()

    with pytest.raises(KeyboardInterrupt):
        flush()


def test_a_writer_that_never_stops_holds_no_flush(pipe: tuple[int, int]) -> None:
    outlet, stopped, seen = Outlet(pipe[1]), threading.Event(), bytearray()

    def chatter() -> None:
        while not stopped.is_set():
            outlet.put(b"y" * 1000)
        outlet.put(b"end")

    def read() -> None:
        """To the very end: with nobody to read it, what the writer still hands over would wait for ever."""
        while not seen.endswith(b"end"):
            seen.extend(os.read(pipe[0], 65536))

    threads = [threading.Thread(target=one, daemon=True) for one in (chatter, read)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        outlet.flush()
    stopped.set()
    for thread in threads:
        thread.join(90)
    assert seen == b"y" * (len(seen) - 3) + b"end"
