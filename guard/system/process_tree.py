"""A process with all that it started: asked to end, forced after a while, and the end verified.

Each is known by its number and its start, so that nobody is signalled who got a number later. What one of them starts in the
meantime is found by looking again before every signal.
"""

import os
import signal
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from guard.errors import Refused
from guard.system.process_identity import ancestors, start_time
from guard.system.process_table import Stat, table

_FIRST_LOOK_SECONDS = 0.02
_LOOK_SECONDS = 0.25
_DEATH_SECONDS = 10.0


class Tree:
    """The living processes that come from some first ones, or share a group or session that one of all these leads.

    So a child that has lost its parent is found, but not one that has made a session of its own before the first look.
    """

    def __init__(self, first: Iterable[tuple[int, str]]) -> None:
        self._known = dict(first)
        self._spared = {os.getpid(), *ancestors(os.getpid())}
        self._led: set[int] = set()
        self._add_descendants(_stats())

    @property
    def holds_guard(self) -> bool:
        """Whether guard was started from one of them."""
        return not self._spared.isdisjoint(self._known)

    def living(self) -> list[Stat]:
        """Those that run now, with what they have started since the last look."""
        stats = _stats()
        self._add_descendants(stats)
        return [stats[pid] for pid in sorted(self._alive(stats))]

    def ask(self) -> None:
        """Tell all of them to end; those that are stopped have to go on to hear it."""
        for number in (signal.SIGTERM, signal.SIGCONT):
            for stat in self.living():
                _signal(stat, number)

    def gone_within(self, seconds: float) -> bool:
        """Wait for the end of all of them; whether it came."""
        deadline, pause = time.monotonic() + seconds, _FIRST_LOOK_SECONDS
        while self.living():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LOOK_SECONDS)
        return True

    def force(self) -> None:
        """Kill all of them, again and again until none is left; Refused if one outlives that."""
        deadline = time.monotonic() + _DEATH_SECONDS
        while living := self.living():
            self._kill(living)
            if self.gone_within(_LOOK_SECONDS):
                return
            if time.monotonic() > deadline:
                names = ", ".join(f"{one.pid} ({one.name})" for one in living[:5])
                raise Refused(
                    f"killed, but not ended within {_DEATH_SECONDS:g} s: process {names}",
                    "it belongs to another user or hangs in the kernel: end it by hand, then try again",
                )

    def _kill(self, living: list[Stat]) -> None:
        """A number is not given away while a group has it, so a group with a known member is the agent's."""
        for group in {one.group for one in living} & self._led:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        for one in living:
            _signal(one, signal.SIGKILL)

    def _alive(self, stats: Mapping[int, Stat]) -> set[int]:
        known = self._known.items()
        return {pid for pid, start in known if pid in stats and stats[pid].start == start}

    def _add_descendants(self, stats: Mapping[int, Stat]) -> None:
        # A group that guard or its caller is in, too, as in a pipeline, is not the agent's own.
        not_its_own = _memberships(stats, self._spared)
        found = more = self._alive(stats)
        while more:
            self._led |= more - not_its_own
            held = _memberships(stats, found) & self._led
            members = {one.pid for one in stats.values() if held & {one.group, one.session}}
            more = (members | _children(stats, found)) - found - self._spared
            found = found | more
        self._known.update({pid: stats[pid].start for pid in found})


def _memberships(stats: Mapping[int, Stat], pids: Iterable[int]) -> set[int]:
    """The groups and the sessions that they are in."""
    known = [stats[pid] for pid in pids if pid in stats]
    return {led for one in known for led in (one.group, one.session)}


def _children(stats: Mapping[int, Stat], parents: set[int]) -> set[int]:
    return {one.pid for one in stats.values() if one.parent in parents}


def _stats() -> dict[int, Stat]:
    stats = {stat.pid: stat for stat in table()}
    if os.getpid() not in stats:
        raise Refused("the processes of this machine cannot be listed", "check /proc, or ps")
    return stats


def _signal(process: Stat, number: int) -> None:
    """Signal a process that may have ended meanwhile; through a descriptor it cannot be mistaken for another."""
    with suppress(ProcessLookupError, PermissionError):
        try:
            descriptor = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            if start_time(process.pid) == process.start:
                os.kill(process.pid, number)
            return
        try:
            if start_time(process.pid) == process.start:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
