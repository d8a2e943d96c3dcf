"""The processes of this machine: from `/proc` where there is one, else from `ps`, which tells less.

`ps` tells no I/O, no environment and no folder: there a process is known by its group alone, and works while it uses CPU time.
"""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from guard.system.process_identity import boot_id
from guard.system.processes import run

_PROC = Path("/proc")
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_ENDED = (b"Z", b"X", b"x")
_PS = ("ps", "-axo", "pid=,ppid=,pgid=,stat=,time=,lstart=,comm=")
_PS_LINE = re.compile(
    r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(\w{3}\s+\w{3}\s+\d+\s+[\d:]+\s+\d{4})\s+(.*)"
)
_PS_SECONDS = 5.0


@dataclass(frozen=True)
class Stat:
    """One process that is alive."""

    pid: int
    name: str
    parent: int
    group: int
    session: int
    cpu_seconds: float
    started_at: float
    """Wall time, rounded down as far as the machine counts coarsely."""
    started_by: float
    """The latest that it can have been."""
    start: str
    """What tells it from others of the same number, as in `guard.system.process_identity`."""

    @cached_property
    def environment(self) -> frozenset[bytes]:
        """What its environment was when it began."""
        return frozenset(_read(self.pid, "environ").split(b"\0"))

    @cached_property
    def moved(self) -> int:
        """Bytes that it has read and written."""
        lines = (line.split(b": ") for line in _read(self.pid, "io").splitlines())
        return sum(int(line[1]) for line in lines if line[0] in (b"rchar", b"wchar"))

    def pipe(self, descriptor: int) -> str | None:
        """The pipe that it has under this number, if it is one."""
        return pipe_of(self.pid, descriptor)

    @cached_property
    def folder(self) -> Path | None:
        """Its current folder, if it is ours to see."""
        try:
            if os.stat(_PROC / str(self.pid)).st_uid != os.getuid():
                return None
            return Path(os.readlink(_PROC / str(self.pid) / "cwd"))
        except OSError:
            return None


def pipe_of(pid: int, descriptor: int) -> str | None:
    """What names a pipe on this machine, if the descriptor is one and ours to see."""
    try:
        target = os.readlink(_PROC / str(pid) / "fd" / str(descriptor))
    except OSError:
        return None
    return target if target.startswith("pipe:") else None


def table() -> Iterator[Stat]:
    """Every process; those that have ended and were not waited for yet are gone."""
    if (_PROC / "self" / "stat").exists():
        for name in os.listdir(_PROC):
            stat = _from_proc(int(name)) if name.isdecimal() else None
            if stat is not None:
                yield stat
    else:
        yield from from_ps()


def _from_proc(pid: int) -> Stat | None:
    data = _read(pid, "stat")
    opened, closed = data.find(b"("), data.rfind(b")")
    words = data[closed + 2 :].split()
    if opened < 0 or len(words) < 20 or words[0] in _ENDED:
        return None
    began = int(words[19])
    boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    started = time.time() - boot + began * _TICK
    return Stat(
        pid=pid,
        name=data[opened + 1 : closed].decode(errors="replace"),
        parent=int(words[1]),
        group=int(words[2]),
        session=int(words[3]),
        cpu_seconds=sum(int(words[place]) for place in (11, 12, 13, 14)) * _TICK,
        started_at=started,
        started_by=started + 2 * _TICK,
        start=f"{began}@{boot_id() or '?'}",
    )


def from_ps() -> Iterator[Stat]:
    """The same from `ps`, with what it tells."""
    environ = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
    try:
        done = run(_PS, environ=environ, time_limit=_PS_SECONDS)
    except OSError:
        return
    for line in done.stdout.decode(errors="replace").splitlines():
        found = _PS_LINE.fullmatch(line)
        if found is None or found[4].encode()[:1] in _ENDED:
            continue
        pid, parent, group = int(found[1]), int(found[2]), int(found[3])
        began = " ".join(found[6].split())
        moment = datetime.strptime(began, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        yield Stat(
            pid=pid,
            name=os.path.basename(found[7])[:64],
            parent=parent,
            group=group,
            session=0,
            cpu_seconds=_seconds(found[5]),
            started_at=moment.timestamp(),
            started_by=moment.timestamp() + 1,
            start=f"{began}@{boot_id() or '?'}",
        )


def _seconds(text: str) -> float:
    """`[days-]hours:minutes:seconds`, of which the first may be missing."""
    days, _, clock = text.rpartition("-")
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part)
    return total + 86400 * int(days or 0)


def _read(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""
