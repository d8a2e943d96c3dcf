"""Ask a running program one question after another, and read its answers from its stdout."""

import os
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import monotonic

from guard.system.processes import end_group, start
from guard.system.signals import defer_signals

_PIECE = 1024**2
_LONGEST_LINE = 65536


class DialogueEnded(Exception):
    """The program has ended, or was silent for as long as it may."""


class Dialogue:
    """One question is answered to its end before the next one is asked: so neither side waits for the other."""

    def __init__(self, process: subprocess.Popen[bytes], time_limit: float) -> None:
        self._process = process
        self._time_limit = time_limit
        self._unread = bytearray()

    def ask(self, question: bytes) -> None:
        """Send a short question, with its terminator."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(question)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise DialogueEnded from None

    def line(self) -> bytes:
        while b"\n" not in self._unread:
            if len(self._unread) > _LONGEST_LINE:
                raise DialogueEnded
            self._unread += self._more(_LONGEST_LINE)
        line, _, rest = self._unread.partition(b"\n")
        self._unread = bytearray(rest)
        return bytes(line)

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the next `size` bytes, piece by piece."""
        while size:
            piece = bytes(self._unread[:size]) or self._more(min(_PIECE, size))
            del self._unread[: len(piece)]
            size -= len(piece)
            yield piece

    def _more(self, most: int) -> bytes:
        assert self._process.stdout is not None
        descriptor, end = self._process.stdout.fileno(), monotonic() + self._time_limit
        ready = select.poll()
        ready.register(descriptor, select.POLLIN)
        while not ready.poll(max(0, (end - monotonic()) * 1000)):
            if monotonic() >= end:
                raise DialogueEnded
        piece = os.read(descriptor, most)
        if not piece:
            raise DialogueEnded
        return piece


@contextmanager
def open_dialogue(
    argv: Sequence[str], environ: Mapping[str, str], time_limit: float
) -> Iterator[Dialogue]:
    """Run a program that answers, in the root folder; it does not outlive the block, nor a silence of `time_limit` seconds."""
    process: subprocess.Popen[bytes] | None = None
    try:
        with defer_signals():
            process = start(argv, environ, os.sep, stderr=subprocess.DEVNULL)
        yield Dialogue(process, time_limit)
    finally:
        if process is not None:
            with suppress(OSError):
                if process.stdin is not None:
                    process.stdin.close()
            end_group(process)
