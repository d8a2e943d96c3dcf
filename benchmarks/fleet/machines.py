"""A machine as time passes on it: it sleeps, is restarted, and its wall clock is set.

Times are minutes since the simulation began, as a perfect clock would tell them; the machine's own clocks are read from them.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from guard.core.activity.clocks import MachineClock

BEGAN = datetime(2026, 1, 5, 6, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Away:
    """From when to when nothing runs on it."""

    since: float
    until: float
    restarted: bool = False


@dataclass(frozen=True)
class Machine:
    """Its absences in order, and when its wall clock was set forward by how much."""

    away: tuple[Away, ...] = ()
    set_forward: tuple[tuple[float, float], ...] = ()

    def is_awake(self, at: float) -> bool:
        return not any(one.since <= at < one.until for one in self.away)

    def at_work(self, minutes: float) -> float:
        """When so many minutes of work are done that begin with the simulation."""
        for one in self.away:
            if minutes < one.since:
                break
            minutes += one.until - one.since
        return minutes

    def wall(self, at: float) -> datetime:
        ahead = sum(by for when, by in self.set_forward if when <= at)
        return BEGAN + timedelta(minutes=at + ahead)

    def read(self, at: float) -> MachineClock:
        """Its three clocks."""
        boots = [one.until for one in self.away if one.restarted and one.until <= at]
        booted = boots[-1] if boots else -1440.0
        slept = [one for one in self.away if not one.restarted and booted <= one.since < at]
        asleep = sum(min(one.until, at) - one.since for one in slept)
        return MachineClock(
            at=self.wall(at),
            boot_seconds=(at - booted) * 60,
            awake_seconds=(at - booted - asleep) * 60,
            boot_id=f"boot {len(boots)}",
        )
