"""Whether the process that was known by a number and a start still runs, and when nobody can tell."""

import os
from typing import Literal

from guard.system.process_identity import start_time
from guard.system.processes import run

Standing = Literal["runs", "gone", "reused", "hidden"]
"""`reused`: the number belongs to another process now. `hidden`: there is one, and nobody tells whether it is that one."""

_ENDED = frozenset("ZXx")
_SECONDS = 5.0


def standing(pid: int, start: str | None) -> Standing:
    """What became of a process; with no start known it is never said to run."""
    if not _exists(pid):
        return "gone"
    if _numbers_are_foreign():
        return "hidden"
    now = start_time(pid)
    if now is None:
        return "gone" if not _exists(pid) or _is_zombie(pid) else "hidden"
    if start is None or not _comparable(start, now):
        return "hidden"
    return "runs" if now == start else "reused"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _numbers_are_foreign() -> bool:
    """Whether `/proc` is that of another pid namespace, as in a sandbox that did not mount its own."""
    try:
        return os.readlink("/proc/self") != str(os.getpid())
    except OSError:
        return False


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and was not waited for; of a process whose first thread has ended the others still run."""
    if not os.path.exists("/proc/self/stat"):
        return _state_from_ps(pid)[:1] in _ENDED
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read(4096).rpartition(b")")[2].split()[:1]
        return state in ([b"Z"], [b"X"], [b"x"]) and len(os.listdir(f"/proc/{pid}/task")) <= 1
    except OSError:
        return False


def _state_from_ps(pid: int) -> str:
    environ = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        done = run(("ps", "-o", "stat=", "-p", str(pid)), environ=environ, time_limit=_SECONDS)
    except OSError:
        return "?"
    return done.stdout.decode(errors="replace").strip() or "?"


def _comparable(one: str, other: str) -> bool:
    """Whether both starts were told by the same source, and name the boot that they count from."""
    told = [text.rpartition("@") for text in (one, other)]
    return told[0][0].isdecimal() == told[1][0].isdecimal() and (told[0][2] == "?") == (
        told[1][2] == "?"
    )
