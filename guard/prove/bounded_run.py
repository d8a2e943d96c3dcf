"""Run one shell command under limits of time and disk space, keep the end of its output, and leave nothing of it running."""

import os
import re
import secrets
import select
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from guard.core.prove.outcome import End
from guard.errors import Refused
from guard.system.process_identity import is_alive, start_time
from guard.system.process_table import (
    ProcessTree,
    Stat,
    end_marked,
    end_processes,
    list_processes,
)
from guard.system.processes import end_group, start
from guard.system.programs import own_python
from guard.system.signals import defer_signals

TAIL_BYTES = 64 * 1024
MARK = "GUARD_PROVE_ID"
"""Names a run, and the guard that made it: `<random>.<pid>.<start>`."""
_OWNER = re.compile(rb"GUARD_PROVE_ID=[0-9a-f]+\.(\d{1,10})\.(.+)")
_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_PIECE = 1024 * 1024
_TURN_SECONDS = 0.1
_LOOK_SECONDS = 0.5
_GRACE_SECONDS = 1.0
_END_SECONDS = 15.0
_LEAST_FREE = 1024**3


@dataclass(frozen=True)
class Ended:
    """How a command ended; `code` is its exit code, or the negative number of the signal that ended it."""

    end: End
    code: int | None
    seconds: float
    tail: bytes
    problem: str = ""


class BoundedRun:
    """One command. `hear` gets all that it prints, piece by piece; `look` is called twice a second."""

    def __init__(
        self,
        command: str,
        folder: Path,
        environ: Mapping[str, str],
        time_limit: float,
        hear: Callable[[bytes], None],
        look: Callable[[float], None],
        lends: tuple[int, ...] = (),
    ) -> None:
        self._command, self._folder, self._lends = command, folder, lends
        self._mark = f"{secrets.token_hex(16)}.{os.getpid()}.{start_time(os.getpid())}"
        self._environ = {**environ, MARK: self._mark}
        self._time_limit = time_limit
        self._hear, self._look = hear, look
        self._tail = bytearray()

    def run(self) -> Ended:
        began = monotonic()
        process: subprocess.Popen[bytes] | None = None
        argv = own_python("-I", "-S", str(_SUPERVISOR), self._command)
        try:
            # What is free now, not the size of the disk, is what the command could take away from the user.
            floor = min(_LEAST_FREE, self._free_bytes() // 20)
            with defer_signals():
                process = start(
                    argv,
                    self._environ,
                    self._folder,
                    stderr=subprocess.STDOUT,
                    lends=self._lends,
                    chosen=True,
                )
            end = self._serve(process, began, floor)
            self._end(process)
            if end == "exited" and self._free_bytes() < floor:
                # It was quicker than the looks at the disk; what it says of the code may be for want of space.
                end = "disk_full"
        except OSError as error:
            problem = f"{self._folder}: {error.strerror}"
            return Ended("cannot_start", None, monotonic() - began, b"", problem)
        finally:
            if process is not None:
                self._end(process)
        code = process.returncode if end == "exited" else None
        return Ended(end, code, monotonic() - began, bytes(self._tail))

    def _free_bytes(self) -> int:
        status = os.statvfs(self._folder)
        return status.f_bavail * status.f_frsize

    def _serve(self, process: subprocess.Popen[bytes], began: float, floor: int) -> End:
        deadline, next_look = began + self._time_limit, began
        gone_by: float | None = None
        is_open = True
        while is_open or process.poll() is None:
            now = monotonic()
            if now >= next_look:
                next_look = now + _LOOK_SECONDS
                self._look(now - began)
                if self._free_bytes() < floor:
                    return "disk_full"
            if process.poll() is not None and gone_by is None:
                # The supervisor has ended what was left; something that it could not end may still hold the pipe.
                gone_by = now + _GRACE_SECONDS
            if now >= (gone_by or deadline):
                return "exited" if gone_by else "timeout"
            is_open = is_open and self._turn(process)
            if not is_open:
                # The command has closed its output, and may still work.
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_TURN_SECONDS)
        return "exited"

    def _turn(self, process: subprocess.Popen[bytes]) -> bool:
        """Take what was printed; return False once the output is closed."""
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], _TURN_SECONDS)
        return not ready or self._take(process.stdout.fileno())

    def _take(self, descriptor: int) -> bool:
        piece = os.read(descriptor, _PIECE)
        self._tail += piece
        if len(self._tail) > TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]
        self._hear(piece)
        return bool(piece)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End the supervisor, which ends the rest; then look for what escaped it."""
        if process.stdin is not None and not process.stdin.closed:
            with suppress(OSError):
                process.stdin.close()
            self._end_supervisor(process)
            end_marked(f"{MARK}={self._mark}")
            end_group(process)

    def _end_supervisor(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
            return
        # The command has stopped it.
        begun = start_time(process.pid)
        if begun is not None:
            with suppress(Refused):
                ProcessTree([(process.pid, begun)]).force()


def end_leftovers() -> None:
    """End what runs of a guard that is gone have left: a command can stop its supervisor, and then guard is killed."""
    end_processes(process for process in list_processes() if _is_left(process))


def _is_left(process: Stat) -> bool:
    found = next(filter(None, map(_OWNER.fullmatch, process.environment)), None)
    return found is not None and not is_alive(int(found[1]), os.fsdecode(found[2]))
