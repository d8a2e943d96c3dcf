"""Which process is which: a pid is reused, a pid with its start time and boot is not.

A start time is an opaque text that only compares: it holds the machine's boot, so that it never matches after a restart.
A process that has ended and was not waited for yet (a zombie) counts as gone.
"""

import os
import sys
from functools import cache

from guard.system.processes import run

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_SECONDS = 5.0
_MOST_BYTES = 4096
_ENDED = frozenset("ZXx")


def start_time(pid: int) -> str | None:
    """When the process of this number started; None if there is none, or nobody tells."""
    if pid <= 0:
        return None
    return _from_proc(pid) if os.path.exists("/proc/self/stat") else _from_ps(pid)


def is_alive(pid: int, start: str | None) -> bool:
    """Whether the process that had this number at that start still runs; with no start known, any of that number."""
    if pid <= 0:
        return False
    return _exists(pid) if start is None else start_time(pid) == start


def ancestors(pid: int) -> set[int]:
    """The processes that a process comes from, as far as the machine tells."""
    found: set[int] = set()
    while (pid := _parent(pid)) > 1 and pid not in found:
        found.add(pid)
    return found


def _parent(pid: int) -> int:
    if os.path.exists("/proc/self/stat"):
        words = (_read(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
        told = words[1] if len(words) > 1 else ""
    else:
        told = _printed("ps", "-o", "ppid=", "-p", str(pid)) or ""
    return int(told) if told.strip().isdecimal() else 0


@cache
def boot_id() -> str | None:
    """What names this run of the machine; None where nothing does."""
    found = _read(_BOOT_ID)
    if found is None and sys.platform == "darwin":
        found = _printed("sysctl", "-n", "kern.bootsessionuuid")
    return (found or "").strip()[:64] or None


def _from_proc(pid: int) -> str | None:
    """Field 22 of `/proc/<pid>/stat`; the name before it may hold spaces and brackets."""
    words = (_read(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    if len(words) < 20 or words[0] in _ENDED:
        return None
    return f"{words[19]}@{boot_id() or '?'}"


def _from_ps(pid: int) -> str | None:
    told = _printed("ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)) or ""
    state, _, started = told.partition(" ")
    if not started.strip() or state[0] in _ENDED:
        return None
    return f"{' '.join(started.split())}@{boot_id() or '?'}"


def _printed(*argv: str) -> str | None:
    """What a program of the system prints, with times in UTC: the zone may change while a process lives."""
    environ = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
    try:
        done = run(argv, environ=environ, time_limit=_SECONDS)
    except OSError:
        return None
    return done.stdout.decode(errors="replace").strip() if done.code == 0 else None


def _read(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
