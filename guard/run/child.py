"""Run the agent as a child in a process group of its own, and pass its output on unchanged while reading it.

What it prints is also kept, up to a cap, so that a guard that dies leaves enough for the next one to judge by. Signals that
guard gets go to the agent's whole group. On a terminal guard stays in the foreground, so that it sees Ctrl-C; an agent that
wants to read keys is lent the terminal when it asks.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import BinaryIO, TypeVar

from guard.core.classify import Classification
from guard.core.classify.stream_reader import OutputReader
from guard.core.iteration.facts import Process
from guard.core.run.settings import ShowMode
from guard.core.show.transcript import LiveTranscript
from guard.errors import WrongUsage
from guard.system.host import read_host
from guard.system.pipes import Outlet, widen
from guard.system.process_identity import start_time
from guard.system.signals import handle_signals

T = TypeVar("T")
_CHUNK = 256 * 1024
"""So much is read at once, and the pipe holds as much where the system lets it: an agent that prints a lot waits less often."""
_MOST_KEPT_BYTES = 64 * 1024 * 1024
_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 10.0
_DRAIN_SECONDS = 1.0
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Terminal:
    """The terminal that guard was started on: its own, and lent to an agent that wants to read keys."""

    def __init__(self) -> None:
        self.lent = False

    @property
    def is_there(self) -> bool:
        return os.isatty(0)

    def lend_to_reader(self, pid: int) -> bool:
        """Lend it to a child that read from the background and was stopped for it; return whether it was lent just now."""
        if not self.is_there or not hasattr(os, "waitid"):
            return False
        with suppress(ChildProcessError):
            news = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
            if news is not None and news.si_status in (signal.SIGTTIN, signal.SIGTTOU):
                _give_terminal(pid)
                self.lent = True
                return True
        return False

    def take_back(self) -> None:
        if self.lent:
            _give_terminal(os.getpgrp())


def _give_terminal(group: int) -> None:
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with suppress(OSError):
        os.tcsetpgrp(0, group)
    signal.signal(signal.SIGTTOU, before)


@dataclass(frozen=True)
class ChildExit:
    """How the agent's process ended."""

    code: int
    """Its exit code, negative for a signal."""
    stopped_by: int | None
    """The signal by which a person stopped it."""


@dataclass
class _Stopping:
    """Which signal came first, how often one came, and when the agent is ended by force."""

    first: int | None = None
    count: int = 0
    deadline: float | None = None


class AgentProcess:
    """One agent process, from its start to its end: `with AgentProcess(...) as child: child.wait(...)`.

    From before the start until the end of the block no signal ends guard alone, and an error ends the agent too.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str],
        cwd: Path,
        reader: OutputReader,
        kept: tuple[BinaryIO, BinaryIO],
        to_stderr: bool,
        show: ShowMode | None = None,
        stdin: bytes | None = None,
    ) -> None:
        self._start = partial(_start_process, argv, environ, cwd, stdin is not None)
        self._reader = reader
        self._kept = kept
        self._to_stderr = to_stderr
        self._show: ShowMode = show or ("text" if os.isatty(2 if to_stderr else 1) else "raw")
        self._transcript = LiveTranscript()
        self._stdin = stdin
        self._lock = threading.Lock()
        self._printed = time.monotonic()
        self._stopping = _Stopping()
        self._terminal = Terminal()
        self._held = ExitStack()
        self._child: subprocess.Popen[bytes] | None = None
        self._pumps: tuple[threading.Thread, ...] = ()
        self._outlets: tuple[Outlet, ...] = ()

    def __enter__(self) -> "AgentProcess":
        with ExitStack() as held:
            held.enter_context(handle_signals(_FORWARDED, self._forward))
            self._child = self._start()
            self._held = held.pop_all()
        self._held.callback(self._terminal.take_back)
        self._pumps = self._start_pumps(self._child)
        if self._stdin is not None:
            threading.Thread(target=self._write_prompt, args=(self._stdin,), daemon=True).start()
        if self._stopping.first is not None:
            self._signal(self._stopping.first)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._child is not None and self._child.poll() is None:
            self._signal(signal.SIGKILL)
            self._child.wait()
        self._held.close()

    @property
    def process(self) -> Process:
        pid = self._process.pid
        return Process(pid=pid, start=start_time(pid) or f"ended@{pid}", host=read_host())

    @property
    def _process(self) -> subprocess.Popen[bytes]:
        assert self._child is not None
        return self._child

    @property
    def session(self) -> str | None:
        return self.ask_reader(lambda reader: reader.session)

    def classify(self, exit_code: int | None, now: datetime) -> Classification:
        return self.ask_reader(lambda reader: reader.finish(exit_code, now))

    def ask_reader(self, question: Callable[[OutputReader], T]) -> T:
        """Ask the reader of the output, between two pieces of it."""
        with self._lock:
            return question(self._reader)

    def wait(self, look: Callable[[], None]) -> ChildExit:
        """Wait for the agent's end; `look` is called again and again meanwhile."""
        while (code := self._wait_once()) is None:
            look()
            self._force_if_due()
            if self._terminal.lend_to_reader(self._process.pid):
                self._signal(signal.SIGCONT)
        self._drain()
        return ChildExit(code, self._stopping_signal(code))

    def end(self) -> None:
        """End the agent by SIGTERM to its group, and by SIGKILL after a while."""
        if self._stopping.deadline is None:
            self._stopping.deadline = time.monotonic() + _GRACE_SECONDS
            self._signal(signal.SIGTERM)

    @property
    def silent_seconds(self) -> float:
        return time.monotonic() - self._printed

    @property
    def is_held_up(self) -> bool:
        """Tell whether its output waits for the program that reads it."""
        return any(outlet.is_held_up for outlet in self._outlets)

    @property
    def may_read_terminal(self) -> bool:
        """Tell whether the user may be at the keys: then the agent may wait for them as long as it likes."""
        return self._stdin is None and self._terminal.is_there

    def _stopping_signal(self, code: int) -> int | None:
        # The signal that guard got; or Ctrl-C, if the agent had the terminal and died of it.
        died = self._terminal.lent and code in (-signal.SIGINT, 128 + signal.SIGINT)
        return self._stopping.first or (signal.SIGINT if died else None)

    def _wait_once(self) -> int | None:
        try:
            return self._process.wait(timeout=_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            return None

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        stopping = self._stopping
        stopping.first = stopping.first or number
        stopping.count += 1
        if number != signal.SIGINT or stopping.count > 1:
            stopping.deadline = stopping.deadline or time.monotonic() + _GRACE_SECONDS
        self._signal(signal.SIGKILL if stopping.count > 2 else number)

    def _force_if_due(self) -> None:
        deadline = self._stopping.deadline
        if deadline is not None and time.monotonic() >= deadline:
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._child is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, number)

    def _start_pumps(self, child: subprocess.Popen[bytes]) -> tuple[threading.Thread, ...]:
        assert child.stdout is not None
        assert child.stderr is not None
        widen(child.stdout, _CHUNK)
        errors = Outlet(2)
        output = errors if self._to_stderr else Outlet(1)
        self._outlets = (output, errors)
        streams = (
            (child.stdout, output, self._kept[0], self._take),
            (child.stderr, errors, self._kept[1], self._take_error),
        )
        pumps = tuple(
            threading.Thread(target=self._pump, args=stream, daemon=True) for stream in streams
        )
        for pump in pumps:
            pump.start()
        return pumps

    def _pump(
        self, source: BinaryIO, outlet: Outlet, kept: BinaryIO, take: Callable[[bytes], bytes]
    ) -> None:
        room = _MOST_KEPT_BYTES
        with source:
            while data := os.read(source.fileno(), _CHUNK):
                self._printed = time.monotonic()
                with self._lock:
                    shown = take(data)
                with suppress(OSError, ValueError):
                    kept.write(data[:room])
                    kept.flush()
                room = max(0, room - len(data))
                if shown:
                    outlet.put(shown)

    def _take(self, data: bytes) -> bytes:
        """Read what the agent printed, and return what is shown of it."""
        self._reader.feed(data, self._printed)
        if self._show == "text":
            return self._transcript.feed(data, has_events=self._reader.format is not None)
        return data if self._show == "raw" else b""

    def _take_error(self, data: bytes) -> bytes:
        self._reader.feed_error(data)
        return b"" if self._show == "none" else data

    def flush(self) -> None:
        """Wait until all that was printed is read, or the reader has gone."""
        for outlet in self._outlets:
            outlet.flush()

    def _write_prompt(self, data: bytes) -> None:
        # It is no error if the agent does not read the prompt to its end.
        pipe = self._process.stdin
        assert pipe is not None
        with suppress(OSError), pipe:
            pipe.write(data)

    def _drain(self) -> None:
        # A process that the agent left may hold the pipe open, and is not waited for.
        for outlet in self._outlets:
            outlet.take_the_rest()
        deadline = time.monotonic() + _DRAIN_SECONDS
        for pump in self._pumps:
            pump.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            rest = self._transcript.end()
        if rest:
            self._outlets[0].put(rest)


def _start_process(
    argv: Sequence[str], environ: Mapping[str, str], cwd: Path, has_input: bool
) -> subprocess.Popen[bytes]:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    try:
        return subprocess.Popen(  # noqa: S603
            list(argv),
            stdin=subprocess.PIPE if has_input else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            cwd=cwd,
            process_group=0,
        )
    except FileNotFoundError:
        raise WrongUsage(
            f"there is no program {argv[0]!r}", "check its name, and whether it is on PATH"
        ) from None
    except (PermissionError, OSError) as error:
        raise WrongUsage(
            f"{argv[0]!r} cannot be started: {error.strerror}",
            "check that the file is a program and may be run",
        ) from None
    except ValueError as error:
        raise WrongUsage(
            f"the command cannot be started: {error}", "check the words of the command"
        ) from None
