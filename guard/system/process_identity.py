"""Tell one process from another, and whether a recorded process (pid and start time) is still running.

A pid is reused; a pid with its start time and boot is not. A start time is an opaque text that only compares: it holds the
machine's boot, so that it never matches after a restart. A process that has ended and was not waited for yet (a zombie)
counts as gone.
"""

import os
import sys
from functools import cache
from typing import Literal

ProcessState = Literal["runs", "gone", "reused", "hidden"]
"""`reused`: the pid belongs to another process now. `hidden`: a process has the pid, and the system does not tell which."""

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_MOST_BYTES = 4096
_ENDED = frozenset("ZXx")


def start_time(pid: int) -> str | None:
    """Return when the process of this pid started; None if there is none, or the system does not tell."""
    if pid <= 0:
        return None
    return _start_from_proc(pid) if _has_proc() else _start_from_ps(pid)


def is_alive(pid: int, start: str | None) -> bool:
    """Tell whether the process with this pid and start still runs; without a start, whether any process has the pid."""
    if pid <= 0:
        return False
    return _exists(pid) if start is None else start_time(pid) == start


def process_state(pid: int, start: str | None) -> ProcessState:
    """Tell what became of a recorded process; without a start it is never said to run."""
    if not _exists(pid):
        return "gone"
    if _is_proc_foreign():
        return "hidden"
    now = start_time(pid)
    if now is None:
        return "gone" if not _exists(pid) or _is_zombie(pid) else "hidden"
    if start is None or not _may_compare(start, now):
        return "hidden"
    return "runs" if now == start else "reused"


def ancestors(pid: int) -> set[int]:
    """Return the processes that a process comes from, as far as the machine tells."""
    found: set[int] = set()
    while (pid := _parent(pid)) > 1 and pid not in found:
        found.add(pid)
    return found


@cache
def boot_id() -> str | None:
    """Return what names this run of the machine; None where nothing does."""
    found = _read(_BOOT_ID)
    if found is None and sys.platform == "darwin":
        found = _run_tool("sysctl", "-n", "kern.bootsessionuuid")
    return (found or "").strip()[:64] or None


def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        # The process is another user's.
        pass
    return True


def _is_proc_foreign() -> bool:
    """Whether `/proc` is that of another pid namespace, as in a sandbox that did not mount its own."""
    try:
        return os.readlink("/proc/self") != str(os.getpid())
    except OSError:
        return False


def _is_zombie(pid: int) -> bool:
    if not _has_proc():
        return (_run_tool("ps", "-o", "stat=", "-p", str(pid)) or "?")[:1] in _ENDED
    try:
        # Of a process whose first thread has ended the others may still run.
        return _stat(pid)[:1] in (["Z"], ["X"], ["x"]) and len(os.listdir(f"/proc/{pid}/task")) <= 1
    except OSError:
        return False


def _may_compare(recorded: str, other: str) -> bool:
    """Whether both starts come from the same source, and name the boot that they count from."""
    (start, _, boot), (other_start, _, other_boot) = recorded.rpartition("@"), other.rpartition("@")
    is_alike = start.isdecimal() == other_start.isdecimal()
    return is_alike and (boot == "?") == (other_boot == "?")


def _parent(pid: int) -> int:
    if _has_proc():
        words = _stat(pid)
        text = words[1] if len(words) > 1 else ""
    else:
        text = _run_tool("ps", "-o", "ppid=", "-p", str(pid)) or ""
    return int(text) if text.strip().isdecimal() else 0


def _start_from_proc(pid: int) -> str | None:
    words = _stat(pid)
    # Field 22 of `/proc/<pid>/stat`; the state is the third.
    if len(words) < 20 or words[0] in _ENDED:
        return None
    return f"{words[19]}@{boot_id() or '?'}"


def _start_from_ps(pid: int) -> str | None:
    text = _run_tool("ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)) or ""
    state, _, started = text.partition(" ")
    if not started.strip() or state[0] in _ENDED:
        return None
    return f"{' '.join(started.split())}@{boot_id() or '?'}"


def _stat(pid: int) -> list[str]:
    """The fields of `/proc/<pid>/stat` behind the name, which may hold spaces and brackets."""
    return (_read(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()


def _run_tool(*argv: str) -> str | None:
    # Not loaded where `/proc` tells everything. Times in UTC: the zone may change while a process lives.
    from guard.system.processes import run_tool

    done = run_tool(*argv)
    return done.stdout.decode(errors="replace").strip() if done.code == 0 else None


def _read(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return None
