"""Tell whether a process has worked between two looks, or only woken up.

The wake-ups of an event loop are no work: an agent that waits for an answer which never comes uses a hundredth of a CPU, and
reads and writes some bytes every second.
"""

from typing import NamedTuple

_BUSY_SHARE = 0.03
_LEAST_CPU_SECONDS = 0.05
_LEAST_READ_BYTES = 2048
LEAST_OWN_BYTES = 1024
"""What an agent CLI itself has to write: one that waits in vain still notes every five minutes that it is alive."""


class WorkCounts(NamedTuple):
    """What one process has done until now."""

    cpu_seconds: float
    read: int | None
    """None if it is not known, and not compared."""
    written: int


def has_worked(before: WorkCounts, now: WorkCounts, seconds: float, least_written: int = 1) -> bool:
    """Compare two looks at a process: CPU time above the noise, or bytes read or written beyond wake-ups."""
    gained = now.cpu_seconds - before.cpu_seconds
    if gained >= _LEAST_CPU_SECONDS and gained > _BUSY_SHARE * seconds:
        return True
    if (
        None not in (before.read, now.read)
        and (now.read or 0) - (before.read or 0) >= _LEAST_READ_BYTES
    ):
        return True
    return abs(now.written - before.written) >= least_written
