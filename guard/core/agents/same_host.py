"""Whether something that was recorded on one machine can still be looked for on this one."""

from typing import Literal

from guard.core.events.whereabouts import Host

SamePlace = Literal["here", "restarted", "elsewhere", "unknown"]


def same_place(recorded: Host | None, now: Host) -> SamePlace:
    """Where the recorded place is, seen from here; `restarted` only if nothing of it can have survived."""
    if recorded is None:
        return "unknown"
    if recorded.boot_id is None or now.boot_id is None:
        return _without_boot(recorded, now)
    if recorded.boot_id != now.boot_id:
        return "restarted" if _same_machine(recorded, now) else "elsewhere"
    if recorded.pid_namespace == now.pid_namespace:
        return "here"
    told = recorded.pid_namespace is not None and now.pid_namespace is not None
    return "elsewhere" if told else "unknown"


def _without_boot(recorded: Host, now: Host) -> SamePlace:
    """A machine that never tells its boot is known by its own id; starts of processes tell the restarts."""
    if recorded.machine is None or now.machine is None:
        return "unknown"
    if recorded.machine != now.machine:
        return "elsewhere"
    silent = recorded.boot_id is None and now.boot_id is None
    return "here" if silent and _same_machine(recorded, now) else "unknown"


def _same_machine(recorded: Host, now: Host) -> bool:
    """Copied machines share their id, so the name must be the same too; a container is not its machine."""
    return recorded.machine is not None and (
        (recorded.machine, recorded.name, recorded.pid_namespace)
        == (now.machine, now.name, now.pid_namespace)
    )
