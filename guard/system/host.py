"""The machine that guard runs on, as what other machines and later boots can be told from."""

import hashlib
import os
import re
import socket
import sys

from guard.core.agents.same_host import same_place
from guard.core.events.whereabouts import Host
from guard.system.process_identity import boot_id
from guard.system.processes import run

__all__ = ["here", "same_place"]

_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_FIRST_NAMESPACE = "pid:[4026531836]"
"""The kernel gives the namespace that a machine starts with this number."""
_IOREG = ("ioreg", "-rd1", "-c", "IOPlatformExpertDevice")
_SECONDS = 5.0
_DIGITS = 16


def here() -> Host:
    """This machine; a container has no machine id of its own, only that of the image it was made from."""
    namespace = _pid_namespace()
    told = _machine_id() if namespace in (None, _FIRST_NAMESPACE) else None
    return Host(
        name=socket.gethostname()[:512],
        machine=hashlib.sha256(told.encode()).hexdigest()[:_DIGITS] if told else None,
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
                told = file.read(256).strip()
        except OSError:
            continue
        if told and told != "uninitialized":
            return told
    return _platform_uuid() if sys.platform == "darwin" else None


def _platform_uuid() -> str | None:
    environ = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        done = run(_IOREG, environ=environ, time_limit=_SECONDS)
    except OSError:
        return None
    found = re.search(rb'"IOPlatformUUID" = "([0-9A-Fa-f-]+)"', done.stdout)
    return found[1].decode() if found else None
