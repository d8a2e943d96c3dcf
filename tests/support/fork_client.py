"""Guard in a process of its own, forked from one that has imported it: a start without the imports, which are most of it.

A test process has one such server, `tests.support.fork_server`. A call gives it the streams, the folder, the words and the
environment; the child that it forks takes them on and runs guard as `python -m guard` does.
"""

import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from coverage import Coverage

_ROOT = Path(__file__).resolve().parents[2]
_READ_AT_START = ("PYTHON", "LC_", "LANG", "COVERAGE_", "COV_")
"""How the variables begin that Python, or what measures its coverage, reads when it starts."""
NUMBER = struct.Struct("!i")
_LONGEST_WORD = 100_000


class Prepared:
    """The server, as a test process sees it."""

    def __init__(self) -> None:
        # As the tests have it, not as the test that comes first may have changed it.
        kept = {name: value for name, value in os.environ.items() if _is_kept(name)}
        environ = {**kept, "LC_ALL": "C.UTF-8"}
        self._environ = _read_at_start(environ)
        measured = ["--measured"] if Coverage.current() else []
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.support.fork_server",
                    str(theirs.fileno()),
                    *measured,
                ],
                cwd=_ROOT,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def fits(self, words: Sequence[str], environ: Mapping[str, str]) -> bool:
        """Whether a process of this environment would have started as the server did, and could be given the words."""
        read = _read_at_start(environ)
        measured = any(name.startswith("COV") for name in read)
        sendable = not any("\0" in word or len(word) > _LONGEST_WORD for word in words)
        return read == self._environ and not measured and sendable

    def call(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        *,
        cwd: Path | None,
        stdin: bytes | None,
        timeout: float,
        script: str | None = None,
    ) -> tuple[int, bytes, bytes]:
        """Run guard, or a script, to its end: its exit code, as `subprocess` gives it, and what it printed."""
        folder = os.open(cwd or ".", os.O_RDONLY)
        out, printed = os.pipe()
        err, complained = os.pipe()
        told, answers = os.pipe()
        channel, theirs = socket.socketpair()
        given = [theirs.detach(), told, printed, complained, folder]
        asked = {"words": list(words), "environ": dict(environ), "script": script}
        request = json.dumps(asked).encode()
        with channel, closing(_Dialogue(answers, stdin or b"", [out, err])) as dialogue:
            try:
                socket.send_fds(self._control, [b"c"], given)
            finally:
                for one in given:
                    os.close(one)
            channel.sendall(NUMBER.pack(len(request)) + request)
            pid = number(channel)
            try:
                dialogue.follow(channel, time.monotonic() + timeout)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(["guard", *words], timeout) from None
            code = os.waitstatus_to_exitcode(number(channel))
            return code, bytes(dialogue.heard[out]), bytes(dialogue.heard[err])

    def end(self) -> None:
        """Let the server end; its children go on."""
        self._control.close()
        self._process.wait()


class _Dialogue:
    """What a process is told, and what it prints until it has ended and nobody holds its streams any more."""

    def __init__(self, answers: int, text: bytes, sources: list[int]) -> None:
        self.heard = {source: bytearray() for source in sources}
        self._answers, self._text = answers, memoryview(text)
        self._open = {answers, *sources}
        self._selector = selectors.DefaultSelector()
        os.set_blocking(answers, False)
        self._selector.register(answers, selectors.EVENT_WRITE)
        for source in sources:
            self._selector.register(source, selectors.EVENT_READ)
        self._tell()

    def follow(self, channel: socket.socket, deadline: float) -> None:
        self._selector.register(channel, selectors.EVENT_READ)
        while self._selector.get_map():
            ready = self._selector.select(deadline - time.monotonic())
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                if key.fileobj is channel:
                    self._selector.unregister(channel)
                elif key.fd == self._answers:
                    self._tell()
                elif piece := os.read(key.fd, 65536):
                    self.heard[key.fd] += piece
                else:
                    self._close(key.fd)

    def close(self) -> None:
        for one in list(self._open):
            self._close(one)
        self._selector.close()

    def _tell(self) -> None:
        try:
            if self._text:
                self._text = self._text[os.write(self._answers, self._text) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._text = memoryview(b"")
        if not self._text:
            self._close(self._answers)

    def _close(self, end: int) -> None:
        self._selector.unregister(end)
        self._open.remove(end)
        os.close(end)


def _is_kept(name: str) -> bool:
    return name in ("PYTHONPATH", "LANG") or not name.startswith(_READ_AT_START)


def _read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(_READ_AT_START)}


def number(channel: socket.socket) -> int:
    """The next number that comes over a socket."""
    found: int = NUMBER.unpack(received(channel, NUMBER.size))[0]
    return found


def received(channel: socket.socket, size: int) -> bytes:
    """So many bytes that come over a socket."""
    whole = b""
    while len(whole) < size:
        piece = channel.recv(size - len(whole))
        if not piece:
            raise EOFError
        whole += piece
    return whole
