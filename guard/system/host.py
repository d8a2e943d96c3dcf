"""Tell this machine from other machines and from its own earlier boots."""

import fcntl
import hashlib
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from guard.errors import GuardError
from guard.system.homes import state_home
from guard.system.private_files import Folder, close, write_all
from guard.system.process_identity import boot_id

if TYPE_CHECKING:
    from guard.core.base.host import Host

MACHINE = "GUARD_MACHINE"
"""The variable with the user's own name for this machine."""

_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_FIRST_NAMESPACE = "pid:[4026531836]"
"""The kernel gives the namespace that a machine starts with this number."""
_IOREG = ("ioreg", "-rd1", "-c", "IOPlatformExpertDevice")
_DIGITS = 16
_KEPT, _MOST_BYTES = "machine-id", 256


def read_host(environ: Mapping[str, str] = os.environ) -> "Host":
    import socket

    from guard.core.base.host import Host

    return Host(
        name=socket.gethostname()[:512],
        machine=machine_id(environ),
        boot_id=boot_id(),
        pid_namespace=_pid_namespace(),
    )


def machine_id(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return what tells this machine from others, as a digest; None where nothing does and nothing can be kept.

    It is the user's own name for it, else the id of the system, else one that guard keeps in its state home.
    """
    given = environ.get(MACHINE, "")
    if given:
        return _digest(given)
    # A container has no machine id of its own, only that of the image it was made from.
    found = _system_id() if _pid_namespace() in (None, _FIRST_NAMESPACE) else None
    if found is not None:
        return _digest(found)
    with suppress(GuardError, OSError):
        return _kept_id(state_home(environ))
    return None


def _digest(identity: str) -> str:
    return hashlib.sha256(os.fsencode(identity)).hexdigest()[:_DIGITS]


@lru_cache(maxsize=8)
def _kept_id(home: Path) -> str | None:
    """Return the id in the state home; the first process that asks makes it."""
    os.makedirs(home.parent, mode=0o700, exist_ok=True)
    with Folder.make(home) as folder:
        with folder.open_if_any(_KEPT) as descriptor:
            kept = os.read(descriptor, _MOST_BYTES).strip() if descriptor is not None else b""
        return _digest((kept or _make_id(folder)).decode("ascii", "replace"))


def _make_id(folder: Folder) -> bytes:
    # Two processes may ask at once for the first time: the second waits for what the first writes.
    descriptor = folder.open_file(_KEPT, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        kept = os.pread(descriptor, _MOST_BYTES, 0).strip()
        if not kept:
            kept = os.urandom(16).hex().encode()
            write_all(descriptor, kept + b"\n")
            os.fsync(descriptor)
            folder.sync()
    finally:
        close(descriptor)
    return kept


def _pid_namespace() -> str | None:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


@lru_cache(maxsize=1)
def _system_id() -> str | None:
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
    from guard.system.processes import run_tool

    found = re.search(rb'"IOPlatformUUID" = "([0-9A-Fa-f-]+)"', run_tool(*_IOREG).stdout)
    return found[1].decode() if found else None


HostRelation = Literal["here", "restarted", "elsewhere", "unknown"]


def compare_hosts(recorded: "Host | None", now: "Host") -> HostRelation:
    """Tell where a recorded host is, seen from here; `restarted` only if nothing of it can have survived."""
    if recorded is None:
        return "unknown"
    if recorded.machine and now.machine and recorded.machine != now.machine:
        return "elsewhere"
    if recorded.boot_id is None or now.boot_id is None:
        return _compare_without_boot(recorded, now)
    if recorded.boot_id != now.boot_id:
        return "restarted" if _is_same_machine(recorded, now) else "elsewhere"
    if recorded.pid_namespace == now.pid_namespace:
        return "here"
    are_known = recorded.pid_namespace is not None and now.pid_namespace is not None
    return "elsewhere" if are_known else "unknown"


def _compare_without_boot(recorded: "Host", now: "Host") -> HostRelation:
    # A machine that never tells its boot is known by its own id; starts of processes tell the restarts.
    if recorded.machine is None or now.machine is None:
        return "unknown"
    silent = recorded.boot_id is None and now.boot_id is None
    return "here" if silent and _is_same_machine(recorded, now) else "unknown"


def _is_same_machine(recorded: "Host", now: "Host") -> bool:
    # Copied machines share their id, so the name must be the same too; a container is not its machine.
    return recorded.machine is not None and (
        (recorded.machine, recorded.name, recorded.pid_namespace)
        == (now.machine, now.name, now.pid_namespace)
    )
