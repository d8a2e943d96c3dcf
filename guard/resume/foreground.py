"""Prove which process would read text typed on a terminal, as the kernel reports it and not by names that tmux shows.

A terminal has one foreground process group, and only that reads from it. A shell that an agent left behind is in the
foreground as soon as the agent has ended, so a case that is not proved is refused.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from guard.system.process_identity import start_time
from guard.system.process_table import Stat, list_processes

_SHELLS = frozenset(
    re.findall(
        r"\w+",
        "ash bash busybox csh dash elvish fish ion ksh mksh nu osh pdksh powershell pwsh rbash rc sh tcsh xonsh yash zsh",
    )
)
_STOPPED = frozenset("Tt")


class NotInForeground(Exception):
    """It is not proved that the process would read typed text; the message says why."""


def require_foreground(pid: int, start: str, terminal: str) -> None:
    """Raise NotInForeground unless this process, with this start time, reads from this terminal now."""
    if start_time(pid) != start:
        raise NotInForeground(f"process {pid} has ended, or is another one now")
    found = {process.pid: process for process in list_processes()}
    own = found.get(pid)
    if own is None or own.terminal not in _device_names(terminal):
        raise NotInForeground(f"process {pid} does not run on {terminal}")
    if own.group != own.foreground:
        who = _name_processes(process for process in found.values() if _is_reader(process, own))
        raise NotInForeground(f"process {pid} is not in the foreground of its terminal: {who} is")
    if own.state in _STOPPED:
        raise NotInForeground(f"process {pid} is stopped")
    if all(
        process.name.lstrip("-") in _shells()
        for process in found.values()
        if _is_reader(process, own)
    ):
        raise NotInForeground(
            f"nothing but a shell ({own.name}) is in the foreground: it would run the text"
        )
    # A pid that was reused while the processes were listed shows here.
    if start_time(pid) != start:
        raise NotInForeground(f"process {pid} has ended")


def _is_reader(process: Stat, own: Stat) -> bool:
    return process.terminal == own.terminal and process.group == own.foreground


def _name_processes(processes: Iterable[Stat]) -> str:
    return ", ".join(f"{process.pid} ({process.name})" for process in processes) or "no process"


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
