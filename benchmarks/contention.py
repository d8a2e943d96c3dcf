"""16 processes on one registry, through the Python API, beside 16 in a bare flock-append-fdatasync loop."""

import fcntl
import multiprocessing
import os
from collections.abc import Callable, Iterator
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from time import monotonic

from benchmarks.history import append as append_events
from benchmarks.history import spawned
from benchmarks.measure import Row, at_least, scratch
from guard import agents_of, update_agent_progress
from guard.core.agents.registry import GLOBAL_REGISTRY
from guard.store.file_store import FileStore
from guard.system.private_files import sync_data

_PROCESSES, _SECONDS, _AGENTS, _ROUNDS = 16, 3.0, 100, 3
_LINE = b"x" * 460 + b"\n"
Worker = Callable[[Path, int, Barrier], int]


def rows() -> Iterator[Row]:
    """Each process goes on for the same time, so that none works alone at the end."""
    measured, lost = [], 0
    for _ in range(_ROUNDS):
        with scratch() as folder:
            append_events(folder / "workspace", [spawned(n, 1) for n in range(_AGENTS)])
            bare, ours = _total(_bare, folder), _total(_ours, folder)
            lost += ours - _recorded(folder / "workspace")
        measured.append((ours / bare, ours, bare))
    ratio, ours, bare = sorted(measured)[_ROUNDS // 2]
    detail = f"{ours / _SECONDS:.0f} beside {bare / _SECONDS:.0f} updates/s, {lost} lost"
    row = at_least("16 processes updating one registry, 100 agents", 0.5, ratio, detail)
    yield row if not lost else Row(row.what, row.target, ratio, False, detail)


def _total(work: Worker, folder: Path) -> int:
    """How many updates all processes made together."""
    context = multiprocessing.get_context("spawn")
    barrier, counts = context.Barrier(_PROCESSES), context.Queue()
    workers = [
        context.Process(target=_report, args=(work, folder, number, barrier, counts))
        for number in range(_PROCESSES)
    ]
    for worker in workers:
        worker.start()
    total: int = sum(counts.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
    return total


def _report(
    work: Worker, folder: Path, number: int, barrier: Barrier, counts: "Queue[int]"
) -> None:
    counts.put(work(folder, number, barrier))


def _bare(folder: Path, _number: int, barrier: Barrier) -> int:
    log = os.open(folder / "bare.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    lock = os.open(folder / "bare.lock", os.O_RDWR | os.O_CREAT, 0o600)
    barrier.wait()
    end, done = monotonic() + _SECONDS, 0
    while monotonic() < end:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(log, _LINE)
        sync_data(log)
        fcntl.flock(lock, fcntl.LOCK_UN)
        done += 1
    return done


def _ours(folder: Path, number: int, barrier: Barrier) -> int:
    workspace = folder / "workspace"
    os.environ["GUARD_STORE__LOCK_TIMEOUT_SECONDS"] = "60"
    agents_of("task-0", workspace=workspace)
    barrier.wait()
    end, done = monotonic() + _SECONDS, 0
    while monotonic() < end:
        agent = f"agent-{(number * 7 + done) % _AGENTS}"
        update_agent_progress("task-0", agent, "working", f"step {done}", 50, workspace=workspace)
        done += 1
    return done


def _recorded(workspace: Path) -> int:
    registry = FileStore(workspace).view(GLOBAL_REGISTRY)
    return sum(agent.updates for agent in registry.agents) if registry else 0
