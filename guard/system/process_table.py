"""List the processes of this machine, and end a process with all that it started.

The list comes from `/proc` where there is one, else from `ps`, which tells no I/O, no environment and no folder: there a
process is known by its group alone, and works while it uses CPU time. Before a signal each process is known by its pid and
its start, so that a process which got the pid later is not signalled; those that one of them starts meanwhile are found by
looking again.
"""

import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from guard.core.base.first_use import dataclass, late_pattern
from guard.errors import Refused
from guard.system.process_identity import ancestors, boot_id, start_time
from guard.system.processes import run_tool

_PROC = Path("/proc")
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_ENDED = (b"Z", b"X", b"x")
_PS = ("ps", "-axo", "pid=,ppid=,pgid=,stat=,time=,tpgid=,tty=,lstart=,comm=")
_PS_LINE = late_pattern(
    r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(-?\d+)\s+(\S+)"
    r"\s+(\w{3}\s+\w{3}\s+\d+\s+[\d:]+\s+\d{4})\s+(.*)"
)
_WAKE_UP_BYTES = 8
_FEW_BYTES = 64
_LISTEN = "0A"
_FIRST_LOOK_SECONDS = 0.02
_LOOK_SECONDS = 0.25
_DEATH_SECONDS = 10.0


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
    state: str
    """One letter, as `ps` shows it."""
    terminal: str | None
    """The device, as `4:2` or as `ps` names it."""
    foreground: int
    """The process group that reads from its terminal now."""

    @cached_property
    def environment(self) -> frozenset[bytes]:
        return frozenset(_read(self.pid, "environ").split(b"\0"))

    @cached_property
    def written(self) -> int:
        """How many bytes it has written, counted so that wake-ups change nothing: an event loop writes 8 bytes for each."""
        counts = self._io_counts
        return abs(counts.get(b"wchar", 0) - _WAKE_UP_BYTES * counts.get(b"syscw", 0))

    @cached_property
    def read(self) -> int:
        """How many bytes it has read beyond a few for each call; less than before if it only woke up meanwhile."""
        counts = self._io_counts
        return counts.get(b"rchar", 0) - _FEW_BYTES * counts.get(b"syscr", 0)

    @cached_property
    def _io_counts(self) -> dict[bytes, int]:
        lines = (line.split(b": ") for line in _read(self.pid, "io").splitlines())
        return {line[0]: int(line[1]) for line in lines if len(line) == 2}

    @cached_property
    def is_listening(self) -> bool:
        """Whether it waits for connections on a TCP port, as a server does."""
        sockets = {f"socket:[{inode}]" for inode in _listening_inodes(self.pid)}
        return not sockets.isdisjoint(_descriptors(self.pid)) if sockets else False

    def pipe(self, descriptor: int) -> str | None:
        return read_pipe(self.pid, descriptor)

    @cached_property
    def folder(self) -> Path | None:
        """Its current folder, if we may see it."""
        try:
            if os.stat(_PROC / str(self.pid)).st_uid != os.getuid():
                return None
            return Path(os.readlink(_PROC / str(self.pid) / "cwd"))
        except OSError:
            return None


def _listening_inodes(pid: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        for line in _read(pid, f"net/{table}").decode(errors="replace").splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[3] == _LISTEN:
                yield words[9]


def _descriptors(pid: int) -> Iterator[str]:
    folder = _PROC / str(pid) / "fd"
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                yield os.readlink(folder / name)


def read_pipe(pid: int, descriptor: int) -> str | None:
    """Return the name of the pipe under this descriptor; None if it is no pipe, or not ours to see."""
    try:
        target = os.readlink(_PROC / str(pid) / "fd" / str(descriptor))
    except OSError:
        return None
    return target if target.startswith("pipe:") else None


def list_processes() -> Iterator[Stat]:
    # Processes that have ended and were not waited for yet count as gone.
    if (_PROC / "self" / "stat").exists():
        for name in os.listdir(_PROC):
            stat = _from_proc(int(name)) if name.isdecimal() else None
            if stat is not None:
                yield stat
    else:
        yield from list_from_ps()


def _from_proc(pid: int) -> Stat | None:
    data = _read(pid, "stat")
    opened, closed = data.find(b"("), data.rfind(b")")
    words = data[closed + 2 :].split()
    if opened < 0 or len(words) < 20 or words[0] in _ENDED:
        return None
    began = int(words[19])
    boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    started = time.time() - boot + began * _TICK
    device = int(words[4])
    major, minor = (device >> 8) & 0xFFF, (device & 0xFF) | ((device >> 12) & 0xFFF00)
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
        state=words[0].decode(),
        terminal=f"{major}:{minor}" if device else None,
        foreground=int(words[5]),
    )


def list_from_ps() -> Iterator[Stat]:
    for line in run_tool(*_PS).stdout.decode(errors="replace").splitlines():
        found = _PS_LINE.fullmatch(line)
        if found is None or found[4].encode()[:1] in _ENDED:
            continue
        began = " ".join(found[8].split())
        moment = datetime.strptime(began, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        yield Stat(
            pid=int(found[1]),
            name=os.path.basename(found[9])[:64],
            parent=int(found[2]),
            group=int(found[3]),
            session=0,
            cpu_seconds=_seconds(found[5]),
            started_at=moment.timestamp(),
            started_by=moment.timestamp() + 1,
            start=f"{began}@{boot_id() or '?'}",
            state=found[4][0],
            terminal=found[7] if found[7].strip("?-") else None,
            foreground=int(found[6]),
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


class ProcessTree:
    """The living processes that come from some first ones, or share a group or session that one of all these leads.

    So a child that has lost its parent is found, but not one that has made a session of its own before the first look.
    """

    def __init__(self, first: Iterable[tuple[int, str]]) -> None:
        self._known = dict(first)
        self._spared = {os.getpid(), *ancestors(os.getpid())}
        self._led: set[int] = set()
        self._add_descendants(_stats())

    @property
    def has_guard(self) -> bool:
        """Whether guard was started from one of them."""
        return not self._spared.isdisjoint(self._known)

    def find_living(self) -> list[Stat]:
        """Return those that run now, with what they have started since the last look."""
        stats = _stats()
        self._add_descendants(stats)
        return [stats[pid] for pid in sorted(self._find_alive(stats))]

    def ask_to_end(self) -> None:
        # Those that are stopped have to go on to hear it.
        for number in (signal.SIGTERM, signal.SIGCONT):
            for stat in self.find_living():
                _signal(stat, number)

    def wait_for_end(self, seconds: float) -> bool:
        """Wait until all of them have ended; False if some still run after this time."""
        deadline, pause = time.monotonic() + seconds, _FIRST_LOOK_SECONDS
        while self.find_living():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LOOK_SECONDS)
        return True

    def force(self) -> None:
        """Kill all of them, again and again until none is left; Refused if one outlives that."""
        deadline = time.monotonic() + _DEATH_SECONDS
        while living := self.find_living():
            self._kill(living)
            if self.wait_for_end(_LOOK_SECONDS):
                return
            if time.monotonic() > deadline:
                names = ", ".join(f"{process.pid} ({process.name})" for process in living[:5])
                raise Refused(
                    f"guard killed process {names}, but it has not ended within {_DEATH_SECONDS:g} s",
                    "it belongs to another user or hangs in the kernel: end it by hand, then try again",
                )

    def _kill(self, living: list[Stat]) -> None:
        # A pid is not given away while a group has it, so a group with a known member is the agent's.
        for group in {process.group for process in living} & self._led:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        for process in living:
            _signal(process, signal.SIGKILL)

    def _find_alive(self, stats: Mapping[int, Stat]) -> set[int]:
        known = self._known.items()
        return {pid for pid, start in known if pid in stats and stats[pid].start == start}

    def _add_descendants(self, stats: Mapping[int, Stat]) -> None:
        # A group that guard or its caller is in, too, as in a pipeline, is not the agent's own.
        not_its_own = _memberships(stats, self._spared)
        found = more = self._find_alive(stats)
        while more:
            self._led |= more - not_its_own
            held = _memberships(stats, found) & self._led
            members = {
                process.pid for process in stats.values() if held & {process.group, process.session}
            }
            children = {process.pid for process in stats.values() if process.parent in found}
            more = (members | children) - found - self._spared
            found = found | more
        self._known.update({pid: stats[pid].start for pid in found})


def end_marked(variable: str) -> None:
    """Kill every process that has this variable, as `NAME=value`, in its environment, and all that it started."""
    mark = variable.encode()
    end_processes(stat for stat in list_processes() if mark in stat.environment)


def end_processes(processes: Iterable[Stat]) -> None:
    """Kill these processes and all that they started."""
    first = [(stat.pid, stat.start) for stat in processes]
    if first:
        with suppress(Refused):  # A process that hangs in the kernel is left to the kernel.
            ProcessTree(first).force()


def _memberships(stats: Mapping[int, Stat], pids: Iterable[int]) -> set[int]:
    known = [stats[pid] for pid in pids if pid in stats]
    return {led for process in known for led in (process.group, process.session)}


def _stats() -> dict[int, Stat]:
    stats = {stat.pid: stat for stat in list_processes()}
    if os.getpid() not in stats:
        raise Refused("cannot list the processes of this machine", "check /proc, or ps")
    return stats


def _signal(process: Stat, number: int) -> None:
    send_signal(process.pid, process.start, number)


def send_signal(pid: int, start: str, number: int) -> bool:
    """Send a signal to the process with this pid and start; False if it is gone or not ours."""
    # The process may have ended meanwhile; through a descriptor it cannot be mistaken for another.
    with suppress(ProcessLookupError, PermissionError):
        try:
            descriptor = os.pidfd_open(pid)
        except (AttributeError, OSError):
            if start_time(pid) != start:
                return False
            os.kill(pid, number)
            return True
        try:
            if start_time(pid) == start:
                signal.pidfd_send_signal(descriptor, number)
                return True
        finally:
            os.close(descriptor)
    return False
