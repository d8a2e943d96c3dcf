"""Run one shell command, and end everything that it started when it ends or when guard goes away.

This file runs as a program of its own and imports nothing of guard. It adopts the orphans of the command, so a process
that forks twice, makes a session of its own and drops its environment is still found. Its stdin is a pipe that guard
holds: when guard closes it, or is killed, everything ends. It exits as the command did, by the same signal if there was one.

It is two processes, one the parent of the other: a command that kills its parent leaves its orphans to the grandparent.
"""

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_ADOPT_ORPHANS = 36
_DEATH_SECONDS = 10.0
_PAUSE_SECONDS = 0.01


def main(command: str) -> None:
    _supervise(lambda: _fork(lambda: _supervise(lambda: _fork(lambda: _execute(command)))))


def _supervise(start: "Callable[[], int]") -> "NoReturn":
    """Start a process, wait for it, end all that came from it, and exit as it did."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    child = start()
    status = _wait(child, woken)
    _end_descendants(child)
    if status is None:
        os.kill(os.getpid(), signal.SIGKILL)
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(128 + number)
    os._exit(os.WEXITSTATUS(status) if status is not None else 128 + signal.SIGKILL)


def _fork(run: "Callable[[], NoReturn]") -> int:
    """Run a function in a child; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        run()
    finally:
        os._exit(127)


def _execute(command: str) -> "NoReturn":
    try:
        os.setsid()
        # What guard lends to the supervisor is not for the command.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        for number in (
            signal.SIGCHLD,
            signal.SIGPIPE,
            signal.SIGINT,
            signal.SIGHUP,
            signal.SIGQUIT,
        ):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execv("/bin/sh", ["/bin/sh", "-c", command])  # noqa: S606
    finally:
        os._exit(127)


def _wait(child: int, woken: int) -> "int | None":
    """Wait for the command; None if guard went away first."""
    while True:
        status = _reap(child)
        if status is not None:
            return status
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
        if 0 in ready and not os.read(0, 4096):
            return None


def _reap(child: int) -> "int | None":
    found = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                found = status
    return found


def _end_descendants(child: int) -> None:
    """Kill all that is left, again and again: each orphan becomes a child of this process."""
    deadline = time.monotonic() + _DEATH_SECONDS
    while True:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        for pid in _descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _reap(child)
        if not _has_children() or time.monotonic() > deadline:
            return
        time.sleep(_PAUSE_SECONDS)


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _descendants() -> "set[int]":
    parents = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with (
                    suppress(OSError, ValueError, IndexError),
                    open(f"/proc/{name}/stat", "rb") as file,
                ):
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found = {os.getpid()}
    more = True
    while more:
        new = {pid for pid, parent in parents.items() if parent in found} - found
        found |= new
        more = bool(new)
    return found - {os.getpid()}


if __name__ == "__main__":
    main(sys.argv[1])
