"""Find the processes of an iteration by the mark in their environment, and watch them for signs of work.

`guard run` gives the agent's process a variable of its own, and everything that the agent starts inherits it, whatever session
or group it moves to. A check without `guard run` has no such mark: there, processes count that began in the work tree since
the baseline. What a sign of work is, `guard.system.process_work` says.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from guard.core.base.first_use import dataclass
from guard.core.check.evidence import MOST_LIVING, Living
from guard.core.hooks.event_kinds import MARK, PROBE
from guard.core.iteration.facts import Process
from guard.system.process_table import Stat, list_processes, read_pipe
from guard.system.process_work import LEAST_OWN_BYTES, WorkCounts, has_worked

_OF_PROBE = f"{PROBE}=".encode()
_WINDOW_SECONDS = 30.0
_SLACK = 1.0
"""So much later than it began a process can seem to have begun."""


@dataclass(frozen=True)
class ProcessMark:
    """What tells the processes of an iteration from others."""

    value: str | None = None
    """What the mark says: run and iteration."""
    agent: Process | None = None
    """The agent's own process, which leads a group of its own."""
    root: Path | None = None
    """Without a mark: the work tree in which they began,"""
    since: float | None = None
    """and the wall time since which."""


@dataclass
class _Seen:
    progressed: float
    """When it last showed progress, on the monotonic clock."""
    counts: WorkCounts
    since: float
    """Since when its counts are compared."""

    def has_progressed(self, stat: Stat, now: float, least_written: int) -> bool:
        """Compare it with an earlier look, and keep what the next look compares."""
        passed, counts = now - self.since, _counts(stat)
        found = has_worked(self.counts, counts, passed, least_written)
        if self.counts.read is None or passed > _WINDOW_SECONDS:
            self.counts, self.since = counts, now
        return found


@dataclass
class ProcessWatch:
    """Looks at the processes of an iteration again and again, and knows since when each has been idle."""

    marked: ProcessMark
    _seen: dict[tuple[int, str], _Seen] = field(default_factory=dict)
    _probes: list[tuple[float, float]] = field(default_factory=list)
    """From when to when a probe ran, by the wall clock."""

    @contextmanager
    def probing(self) -> Iterator[None]:
        """Leave out what begins meanwhile by itself: a probe may start a process that drops its environment."""
        began = time.time()
        try:
            yield
        finally:
            self._probes.append((began, time.time()))

    def recall(self, living: Iterable[Living], seconds_ago: float) -> None:
        now = time.monotonic()
        for seen in living:
            if seen.process is not None:
                idle = seen.idle_seconds + max(0.0, seconds_ago)
                key = (seen.process.pid, seen.process.start)
                self._seen[key] = _Seen(
                    now - idle, WorkCounts(seen.cpu_seconds, None, seen.moved), now - idle
                )

    def look(self) -> tuple[Living, ...]:
        now = time.monotonic()
        stats = self._without_probes(_processes(self.marked))
        servers = _servers(stats)
        found = [self._living(stat, now, stat.pid in servers) for stat in stats]
        found.sort(key=lambda living: living.idle_seconds)
        return tuple(found[:MOST_LIVING])

    def _without_probes(self, stats: list[Stat]) -> list[Stat]:
        if self.marked.value is not None:
            return stats
        others = {stat.pid: stat for stat in stats if not self._began_in_probe(stat)}
        while more := [stat for stat in stats if stat.pid not in others and stat.parent in others]:
            others |= {stat.pid: stat for stat in more}
        return list(others.values())

    def _began_in_probe(self, stat: Stat) -> bool:
        return any(began <= stat.started_by <= ended + _SLACK for began, ended in self._probes)

    def _living(self, stat: Stat, now: float, serves: bool) -> Living:
        key = (stat.pid, stat.start)
        agent = self.marked.agent
        own = agent is not None and (agent.pid, agent.start) == key
        before, least = self._seen.get(key), LEAST_OWN_BYTES if own else 1
        if before is None or before.has_progressed(stat, now, least):
            before = _Seen(now, _counts(stat), now)
            self._seen[key] = before
        return Living(
            kind="agent" if own else "process",
            name=f"{stat.name} (pid {stat.pid})",
            idle_seconds=max(0.0, now - before.progressed),
            process=Process(pid=stat.pid, start=stat.start),
            cpu_seconds=before.counts.cpu_seconds,
            moved=before.counts.written,
            serves=serves and not own,
        )


def _counts(stat: Stat) -> WorkCounts:
    return WorkCounts(stat.cpu_seconds, stat.read, stat.written)


def _servers(stats: list[Stat]) -> set[int]:
    """Return the processes that listen on a port, and those that only wait for such children, as `npm run dev` does."""
    servers = {stat.pid for stat in stats if stat.is_listening}
    children: dict[int, set[int]] = {}
    for stat in stats:
        children.setdefault(stat.parent, set()).add(stat.pid)
    while more := {
        stat.pid
        for stat in stats
        if servers and stat.pid not in servers and children.get(stat.pid, {0}) <= servers
    }:
        servers |= more
    return servers


def _processes(marked: ProcessMark) -> list[Stat]:
    stats = {stat.pid: stat for stat in list_processes()}
    agent = marked.agent.pid if marked.agent is not None else None
    ours = _lineage(stats, os.getpid()) - {agent}
    started = _descendants(stats, marked.agent) if marked.agent is not None else set()
    found = [
        stat
        for stat in stats.values()
        if stat.pid not in ours
        and (stat.pid in started or _belongs(stat, marked))
        and not _is_of_probe(stat)
    ]
    readers = _readers(list(stats.values())) if found else set()
    return [stat for stat in found if stat.pid not in readers]


def _lineage(stats: dict[int, Stat], pid: int) -> set[int]:
    # Guard itself and the programs that called it are not the agent's.
    line: set[int] = set()
    while pid in stats and pid not in line:
        line.add(pid)
        pid = stats[pid].parent
    return line


def _descendants(stats: dict[int, Stat], agent: Process) -> set[int]:
    """Return all processes that the living agent has started, also those that dropped its environment."""
    known = stats.get(agent.pid)
    if known is None or known.start != agent.start:
        return set()
    children: dict[int, list[int]] = {}
    for stat in stats.values():
        children.setdefault(stat.parent, []).append(stat.pid)
    found: set[int] = set()
    below = [agent.pid]
    while below:
        more = [pid for pid in children.get(below.pop(), ()) if pid not in found]
        found.update(more)
        below += more
    return found


def _readers(stats: list[Stat]) -> set[int]:
    """Return the processes that read what guard prints, as in `guard check | tee log`, and those that read from them.

    All processes are searched, because such a line goes on through those that are not the iteration's.
    """
    pipes = {read_pipe(os.getpid(), 1), read_pipe(os.getpid(), 2)} - {None}
    readers: set[int] = set()
    while more := [stat for stat in stats if stat.pid not in readers and stat.pipe(0) in pipes]:
        readers |= {stat.pid for stat in more}
        pipes |= {stat.pipe(1) for stat in more} - {None}
    return readers


def _belongs(stat: Stat, marked: ProcessMark) -> bool:
    if marked.agent is not None and marked.agent.pid in (stat.pid, stat.group, stat.session):
        return True
    if marked.value is not None:
        return f"{MARK}={marked.value}".encode() in stat.environment
    if marked.root is None or stat.folder is None or stat.started_by < (marked.since or 0.0):
        return False
    return stat.folder == marked.root or marked.root in stat.folder.parents


def _is_of_probe(stat: Stat) -> bool:
    # What an interrupted probe of guard's left is no sign of the agent's life.
    return any(variable.startswith(_OF_PROBE) for variable in stat.environment)
