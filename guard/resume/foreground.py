"""Prove which process would read text typed on a terminal, as the kernel reports it and not by names that tmux shows.

A terminal has one foreground process group, and only that reads from it. A shell that an agent left behind is in the
foreground as soon as the agent has ended, so a case that is not proved is refused.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from guard.system.process_identity import start_time
from guard.system.processes import run_tool

_SHELLS = frozenset(
    re.findall(
        r"\w+",
        "ash bash busybox csh dash elvish fish ion ksh mksh nu osh pdksh powershell pwsh rbash rc sh tcsh xonsh yash zsh",
    )
)
_STOPPED = frozenset("Tt")
_ENDED = frozenset("ZXx")
_PS_LINE = re.compile(r"\s*(\d+)\s+(\d+)\s+(-?\d+)\s+(\S)\S*\s+(\S+)\s+(.*)")


class NotInForeground(Exception):
    """It is not proved that the process would read typed text; the message says why."""


@dataclass(frozen=True)
class TerminalProcess:
    """One living process that has a terminal."""

    pid: int
    group: int
    foreground: int
    """The process group that reads from its terminal now."""
    state: str
    name: str
    terminal: str
    """The device, as `4:2` or as `ps` names it."""


def require_foreground(pid: int, start: str, terminal: str) -> None:
    """Raise NotInForeground unless this process, with this start time, reads from this terminal now."""
    if start_time(pid) != start:
        raise NotInForeground(f"process {pid} has ended, or is another one now")
    found = {one.pid: one for one in terminal_processes()}
    own = found.get(pid)
    if own is None or own.terminal not in _device_names(terminal):
        raise NotInForeground(f"process {pid} does not run on {terminal}")
    if own.group != own.foreground:
        who = _name_processes(one for one in found.values() if _is_reader(one, own))
        raise NotInForeground(f"process {pid} is not in the foreground of its terminal: {who} is")
    if own.state in _STOPPED:
        raise NotInForeground(f"process {pid} is stopped")
    if all(one.name.lstrip("-") in _shells() for one in found.values() if _is_reader(one, own)):
        raise NotInForeground(
            f"nothing but a shell ({own.name}) is in the foreground: it would run the text"
        )
    # A pid that was reused while the processes were listed shows here.
    if start_time(pid) != start:
        raise NotInForeground(f"process {pid} has ended")


def _is_reader(one: TerminalProcess, other: TerminalProcess) -> bool:
    return one.terminal == other.terminal and one.group == other.foreground


def _name_processes(found: Iterable[TerminalProcess]) -> str:
    return ", ".join(f"{one.pid} ({one.name})" for one in found) or "no process"


def terminal_processes() -> Iterator[TerminalProcess]:
    if os.path.exists("/proc/self/stat"):
        for name in os.listdir("/proc"):
            found = _from_proc(name) if name.isdecimal() else None
            if found is not None:
                yield found
    else:
        yield from processes_from_ps()


def _from_proc(pid: str) -> TerminalProcess | None:
    try:
        text = Path("/proc", pid, "stat").read_bytes().decode(errors="replace")
    except OSError:
        return None
    opened, closed = text.find("("), text.rfind(")")
    words = text[closed + 2 :].split()
    if opened < 0 or len(words) < 6 or words[0] in _ENDED or words[4] == "0":
        return None
    device = int(words[4])
    major, minor = (device >> 8) & 0xFFF, (device & 0xFF) | ((device >> 12) & 0xFFF00)
    name = text[opened + 1 : closed]
    return TerminalProcess(
        int(pid), int(words[2]), int(words[5]), words[0], name, f"{major}:{minor}"
    )


def processes_from_ps() -> Iterator[TerminalProcess]:
    """The living processes that have a terminal, as `ps` lists them where there is no `/proc`."""
    done = run_tool("ps", "-axo", "pid=,pgid=,tpgid=,stat=,tty=,comm=")
    for line in done.stdout.decode(errors="replace").splitlines():
        found = _PS_LINE.fullmatch(line)
        if found is not None and found[4] not in _ENDED and found[5].strip("?-"):
            yield TerminalProcess(
                int(found[1]),
                int(found[2]),
                int(found[3]),
                found[4],
                os.path.basename(found[6].strip()),
                found[5],
            )


def _device_names(terminal: str) -> set[str]:
    try:
        device = os.stat(terminal).st_rdev
    except (OSError, ValueError):
        return set()
    return {f"{os.major(device)}:{os.minor(device)}", terminal.removeprefix("/dev/")}


def _shells() -> frozenset[str]:
    try:
        listed = Path("/etc/shells").read_bytes()[:65536].decode(errors="replace").splitlines()
    except OSError:
        listed = []
    paths = [os.environ.get("SHELL", ""), *(line for line in listed if line.startswith("/"))]
    return _SHELLS | {os.path.basename(path.strip()) for path in paths if path}
