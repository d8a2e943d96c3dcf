"""Time that is nobody's silence: the machine slept or was off, or its wall clock was set forward.

Three clocks are compared wherever they were read: the wall clock, the boot clock, which goes on while the machine sleeps, and
the awake clock, which does not. What the wall clock shows beyond the boot clock was set; what the boot clock shows beyond the
awake clock was slept. Across a restart of the machine the time from the last reading before it to the boot is left out:
nobody knows how much of that it was off, and its agents had no chance to show anything.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Frozen, Instant, Line

DRIFT_SECONDS = 60.0
"""Less is a clock that is being adjusted."""
Cause = Literal["slept", "clock_set", "restarted"]
Seconds = Annotated[float, Field(ge=0)]


class MachineClock(Frozen):
    """The clocks of one machine, at one moment."""

    at: Instant
    boot_seconds: Seconds
    awake_seconds: Seconds
    boot_id: Line


class Gap(Frozen):
    """Between two moments so much time does not count."""

    since: Instant
    until: Instant
    seconds: Seconds
    cause: Cause


def gaps(readings: Iterable[MachineClock]) -> tuple[Gap, ...]:
    """What the readings of one machine show, in their order."""
    return tuple(gap for before, after in pairwise(readings) for gap in _between(before, after))


def _between(before: MachineClock, after: MachineClock) -> list[Gap]:
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


def left_out(since: datetime, now: datetime, found: Sequence[Gap]) -> timedelta:
    """How much of this time does not count. When in a gap it was is not known: the silence gets the benefit."""
    total = 0.0
    for gap in found:
        overlap = (min(gap.until, now) - max(gap.since, since)).total_seconds()
        total += max(0.0, min(gap.seconds, overlap))
    return min(timedelta(seconds=total), max(timedelta(0), now - since))


def age(at: datetime, now: datetime, found: Sequence[Gap] = ()) -> timedelta:
    """How long ago something was, in time that counts."""
    return now - at - left_out(at, now, found) if found else now - at


def oldest(now: datetime, minutes: float, found: Sequence[Gap]) -> datetime:
    """No moment before this is so young that it lies within the last minutes that count."""
    return now - timedelta(minutes=minutes) - timedelta(seconds=sum(gap.seconds for gap in found))


def needed(readings: Sequence[MachineClock], new: MachineClock, every_seconds: float) -> bool:
    """Whether a new reading tells something that the ones before do not."""
    if not readings or readings[-1].boot_id != new.boot_id or new.at < readings[-1].at:
        return True
    last = readings[-1]
    return bool(_between(last, new)) or new.boot_seconds - last.boot_seconds >= every_seconds
