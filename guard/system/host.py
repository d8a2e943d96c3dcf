"""Tell this machine from other machines and from its own earlier boots."""

import hashlib
import os
import re
import socket
import sys
from typing import Literal

from guard.core.agents.whereabouts import Host
from guard.system.process_identity import boot_id
from guard.system.processes import run_tool

_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_FIRST_NAMESPACE = "pid:[4026531836]"
"""The kernel gives the namespace that a machine starts with this number."""
_IOREG = ("ioreg", "-rd1", "-c", "IOPlatformExpertDevice")
_DIGITS = 16


def read_host() -> Host:
    # A container has no machine id of its own, only that of the image it was made from.
    namespace = _pid_namespace()
    machine = _machine_id() if namespace in (None, _FIRST_NAMESPACE) else None
    return Host(
        name=socket.gethostname()[:512],
        machine=hashlib.sha256(machine.encode()).hexdigest()[:_DIGITS] if machine else None,
        boot_id=boot_id(),
        pid_namespace=namespace,
    )


def _pid_namespace() -> str | None:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def _machine_id() -> str | None:
    for path in _MACHINE_IDS:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                found = file.read(256).strip()
        except OSError:
            continue
        if found and found != "uninitialized":
            return found
    return _platform_uuid() if sys.platform == "darwin" else None


def _platform_uuid() -> str | None:
    found = re.search(rb'"IOPlatformUUID" = "([0-9A-Fa-f-]+)"', run_tool(*_IOREG).stdout)
    return found[1].decode() if found else None


HostRelation = Literal["here", "restarted", "elsewhere", "unknown"]


def compare_hosts(recorded: Host | None, now: Host) -> HostRelation:
    """Tell where a recorded host is, seen from here; `restarted` only if nothing of it can have survived."""
    if recorded is None:
        return "unknown"
    if recorded.boot_id is None or now.boot_id is None:
        return _compare_without_boot(recorded, now)
    if recorded.boot_id != now.boot_id:
        return "restarted" if _is_same_machine(recorded, now) else "elsewhere"
    if recorded.pid_namespace == now.pid_namespace:
        return "here"
    are_known = recorded.pid_namespace is not None and now.pid_namespace is not None
    return "elsewhere" if are_known else "unknown"


def _compare_without_boot(recorded: Host, now: Host) -> HostRelation:
    # A machine that never tells its boot is known by its own id; starts of processes tell the restarts.
    if recorded.machine is None or now.machine is None:
        return "unknown"
    if recorded.machine != now.machine:
        return "elsewhere"
    silent = recorded.boot_id is None and now.boot_id is None
    return "here" if silent and _is_same_machine(recorded, now) else "unknown"


def _is_same_machine(recorded: Host, now: Host) -> bool:
    # Copied machines share their id, so the name must be the same too; a container is not its machine.
    return recorded.machine is not None and (
        (recorded.machine, recorded.name, recorded.pid_namespace)
        == (now.machine, now.name, now.pid_namespace)
    )
