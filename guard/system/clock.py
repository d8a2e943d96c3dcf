"""Read the clocks (wall time, boot time, time awake) and keep deadlines.

The boot clock goes on while the machine sleeps and never jumps. `GUARD_NOW` stops all, so that a test or a replay says the
same twice; sleeps stay real. Only the outermost layer makes a clock; everything below is handed one.
"""

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from guard.core.base.first_use import dataclass
from guard.errors import WrongUsage

if TYPE_CHECKING:
    from guard.core.base.moment import Moment

VARIABLE = "GUARD_NOW"
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_AWAKE_CLOCK = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)
"""Where the monotonic clock goes on during sleep, there is this one."""


@dataclass(frozen=True)
class Clock:
    """Where `now` comes from; stopped if `fixed` is set."""

    fixed: datetime | None = None
    slept: float | None = None
    """For a stopped clock: how many seconds the machine has slept; None if it knows nothing of machines."""

    def now(self) -> datetime:
        return self.fixed or datetime.now(UTC)

    def boot(self) -> float:
        """Seconds on the boot clock: only differences mean anything."""
        return self.fixed.timestamp() if self.fixed else time.clock_gettime(_BOOT_CLOCK)

    def awake(self) -> float:
        # Without the seconds in which the machine slept; as with `boot`, only differences mean anything.
        if self.fixed:
            return self.fixed.timestamp() - (self.slept or 0.0)
        return time.clock_gettime(_AWAKE_CLOCK)

    def moment(self) -> "Moment":
        from guard.core.base.moment import Moment
        from guard.system.process_identity import boot_id

        # A clock that was stopped for a test has no boot, so that only the time it shows counts.
        return Moment(self.now(), self.boot(), None if self.fixed else boot_id())


def make_clock(environ: Mapping[str, str] = os.environ) -> Clock:
    text = environ.get(VARIABLE)
    if not text:
        return Clock()
    try:
        moment = datetime.fromisoformat(text)
        return Clock(moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise WrongUsage(
            f"{VARIABLE} is {text!r}, which is not an ISO-8601 time",
            f"unset the variable, or set for example {VARIABLE}=2026-01-31T12:00:00Z",
        ) from None


class Deadline:
    """One time limit, on the monotonic clock, shared by everything that a check, a snapshot or a rescue does."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        # A little more than nothing when it has passed, so that a call fails by its own time limit.
        return max(0.01, self._end - time.monotonic())

    def has_passed(self) -> bool:
        return time.monotonic() >= self._end

    def extend(self, seconds: float) -> None:
        """Move the end by the time that something else took, such as a wait."""
        self._end += seconds

    def part(self, share: float) -> "Deadline":
        """Return an earlier deadline, so that something can still be done after it."""
        return Deadline(self.left() * share)
