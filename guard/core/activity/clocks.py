"""Tell from a machine's clocks when it slept, was off or had its clock set: silence in such a gap does not count.

The wall clock is compared with the boot clock, which goes on while the machine sleeps, and the boot clock with the awake clock,
which does not. Time of the wall clock beyond the boot clock was set; time of the boot clock beyond the awake clock was slept.
Across a restart the whole time from the last reading to the boot is a gap: how long the machine was off is not known.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from guard.core.activity.events import ClocksRead
from guard.core.base.fast_models import entry_from
from guard.core.base.fields import Frozen, Instant, Line
from guard.core.log.view import FieldsFold, ViewDocument, ViewKind

MOST_KEPT = 200
DRIFT_SECONDS = 60.0
"""A smaller difference is a clock that is being adjusted."""
Cause = Literal["slept", "clock_set", "restarted"]
Seconds = Annotated[float, Field(ge=0)]


class MachineClock(Frozen):
    """The clocks of one machine at one moment."""

    at: Instant
    boot_seconds: Seconds
    awake_seconds: Seconds
    boot_id: Line


class Gap(Frozen):
    """How much of the time between two moments does not count, and why."""

    since: Instant
    until: Instant
    seconds: Seconds
    cause: Cause


def find_gaps(readings: Iterable[MachineClock]) -> tuple[Gap, ...]:
    return tuple(
        gap for before, after in pairwise(readings) for gap in _gaps_between(before, after)
    )


def _gaps_between(before: MachineClock, after: MachineClock) -> list[Gap]:
    if after.at <= before.at:
        return []
    if before.boot_id != after.boot_id:
        booted = after.at - timedelta(seconds=after.boot_seconds)
        off = (booted - before.at).total_seconds()
        return [_gap(before, after, off, "restarted")] if off > 0 else []
    boot = after.boot_seconds - before.boot_seconds
    slept = boot - (after.awake_seconds - before.awake_seconds)
    ahead = (after.at - before.at).total_seconds() - boot
    found: list[Gap] = []
    if slept > DRIFT_SECONDS:
        found.append(_gap(before, after, slept, "slept"))
    if ahead > DRIFT_SECONDS:
        found.append(_gap(before, after, ahead, "clock_set"))
    return found


def _gap(before: MachineClock, after: MachineClock, seconds: float, cause: Cause) -> Gap:
    longest = (after.at - before.at).total_seconds()
    return Gap(since=before.at, until=after.at, seconds=min(seconds, longest), cause=cause)


def uncounted_time(since: datetime, now: datetime, gaps: Sequence[Gap]) -> timedelta:
    """How much of the time since `since` lies in gaps."""
    total = 0.0
    for gap in gaps:
        # Where in the gap the machine slept is not known: the longest possible overlap counts for the agent.
        overlap = (min(gap.until, now) - max(gap.since, since)).total_seconds()
        total += max(0.0, min(gap.seconds, overlap))
    return min(timedelta(seconds=total), max(timedelta(0), now - since))


def age(at: datetime, now: datetime, gaps: Sequence[Gap] = ()) -> timedelta:
    """How long ago a moment was, without time in gaps."""
    return now - at - uncounted_time(at, now, gaps) if gaps else now - at


def window_start(now: datetime, minutes: float, gaps: Sequence[Gap]) -> datetime:
    """The start of a window that is long enough to hold the last `minutes` that count."""
    return now - timedelta(minutes=minutes) - timedelta(seconds=sum(gap.seconds for gap in gaps))


def is_worth_recording(
    readings: Sequence[MachineClock], new: MachineClock, every_seconds: float
) -> bool:
    """Whether a reading shows a gap, a restart or a clock set back, or is due after `every_seconds`."""
    if not readings or readings[-1].boot_id != new.boot_id or new.at < readings[-1].at:
        return True
    last = readings[-1]
    return bool(_gaps_between(last, new)) or new.boot_seconds - last.boot_seconds >= every_seconds


class MachineClocks(ViewDocument):
    """The readings of one machine's clocks."""

    schema_: Literal["guard/machine-clocks/1"] = Field("guard/machine-clocks/1", alias="schema")
    machine: Line
    readings: tuple[MachineClock, ...]
    """The oldest first; of three readings without a gap the middle one is dropped."""

    def key(self) -> str:
        return machine_key(self.machine)


class MachineClocksFold(FieldsFold[MachineClocks]):
    document_class = MachineClocks

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._fields = {"machine": "", "readings": ()}

    def apply(self, event: ClocksRead) -> None:
        reading = entry_from(MachineClock, event)
        kept = self._fields["readings"]
        if len(kept) > 1 and _has_no_gap((*kept[-2:], reading)):
            kept = kept[:-1]
        readings = (*kept, reading)[-MOST_KEPT:]
        self._fields = {"machine": event.machine, "readings": readings}


def _has_no_gap(three: tuple[MachineClock, ...]) -> bool:
    times = [clock.at for clock in three]
    return (
        len({clock.boot_id for clock in three}) == 1
        and times == sorted(times)
        and not find_gaps(three)
    )


def machine_key(machine: str) -> str:
    # A machine may have any name; the key is part of a path.
    return sha256(machine.encode()).hexdigest()[:32]


MACHINE_CLOCKS: ViewKind[MachineClocks, MachineClocksFold] = ViewKind(
    document=MachineClocks,
    fold=MachineClocksFold,
    events=(ClocksRead,),
    key=lambda event: machine_key(event.machine),
    folder="machines.d/",
    file="/clocks.json",
    needles=lambda _key: (b'"type":"clocks_read"',),
)
