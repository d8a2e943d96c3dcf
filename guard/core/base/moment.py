"""The present moment on two clocks, and the fields that the events of one decision share."""

from dataclasses import replace
from datetime import datetime

from guard.core.base.fields import BootSeconds, Frozen, Instant, Line
from guard.core.base.first_use import dataclass


class Reading(Frozen):
    """A moment by both clocks: wall time, and seconds on the boot clock of one boot."""

    at: Instant
    boot_seconds: BootSeconds
    boot_id: Line | None


@dataclass(frozen=True)
class Moment:
    """The present moment on both clocks; without a boot id only the wall clock counts."""

    now: datetime
    boot_seconds: float
    boot_id: str | None


@dataclass(frozen=True)
class Stamp:
    """The fields that the events of one decision share, besides their time."""

    id: str
    run: str | None = None
    iteration: int | None = None

    def next(self) -> "Stamp":
        return replace(self, id=f"{self.id}-2")


def elapsed_seconds(since: Reading, moment: Moment) -> float | None:
    """Return the seconds from then to now; None if then is in the future."""
    if since.boot_id is not None and since.boot_id == moment.boot_id:
        seconds = moment.boot_seconds - since.boot_seconds
    else:
        seconds = (moment.now - since.at).total_seconds()
    return seconds if seconds >= 0 else None
