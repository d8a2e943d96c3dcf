"""Find the processes of an iteration by the mark in their environment, and watch them for signs of work.

`guard run` gives the agent's process a variable of its own, and everything that the agent starts inherits it, whatever session
or group it moves to. A check without `guard run` has no such mark: there, processes count that began in the work tree since
the baseline. A sign of work is CPU time of more than a hundredth of the time passed, or any byte read or written.
"""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from guard.core.check.evidence import MOST_LIVING, Living
from guard.core.iteration.events import Process
from guard.system.process_table import Stat, list_processes, read_pipe

MARK = "GUARD_ITERATION"
_BUSY_SHARE = 0.01
_LEAST_CPU_SECONDS = 0.02


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
    cpu_seconds: float
    moved: int
    """Bytes read and written."""
    progressed: float
    """When it last showed progress, on the monotonic clock."""


@dataclass
class ProcessWatch:
    """Looks at the processes of an iteration again and again, and knows since when each has been idle."""

    marked: ProcessMark
    _seen: dict[tuple[int, str], _Seen] = field(default_factory=dict)

    def recall(self, living: Iterable[Living], seconds_ago: float) -> None:
        now = time.monotonic()
        for seen in living:
            if seen.process is not None:
                idle = seen.idle_seconds + max(0.0, seconds_ago)
                key = (seen.process.pid, seen.process.start)
                self._seen[key] = _Seen(seen.cpu_seconds, seen.moved, now - idle)

    def look(self) -> tuple[Living, ...]:
        now = time.monotonic()
        found = [self._living(stat, now) for stat in _processes(self.marked)]
        found.sort(key=lambda living: living.idle_seconds)
        return tuple(found[:MOST_LIVING])

    def _living(self, stat: Stat, now: float) -> Living:
        key = (stat.pid, stat.start)
        before = self._seen.get(key)
        if before is None or _has_progressed(before, stat, now):
            before = self._seen[key] = _Seen(stat.cpu_seconds, stat.moved, now)
        agent = self.marked.agent
        own = agent is not None and (agent.pid, agent.start) == key
        return Living(
            kind="agent" if own else "process",
            name=f"{stat.name} (pid {stat.pid})",
            idle_seconds=max(0.0, now - before.progressed),
            process=Process(pid=stat.pid, start=stat.start),
            cpu_seconds=before.cpu_seconds,
            moved=before.moved,
        )


def _has_progressed(before: _Seen, stat: Stat, now: float) -> bool:
    gained = stat.cpu_seconds - before.cpu_seconds
    busy = gained > _BUSY_SHARE * (now - before.progressed)
    return stat.moved != before.moved or (gained >= _LEAST_CPU_SECONDS and busy)


def _processes(marked: ProcessMark) -> list[Stat]:
    stats = {stat.pid: stat for stat in list_processes()}
    agent = marked.agent.pid if marked.agent is not None else None
    ours = _lineage(stats, os.getpid()) - {agent}
    started = _descendants(stats, marked.agent) if marked.agent is not None else set()
    found = [
        stat
        for stat in stats.values()
        if stat.pid not in ours and (stat.pid in started or _belongs(stat, marked))
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
