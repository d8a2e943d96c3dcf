"""16 processes on one registry, through the Python API, beside 16 in a bare flock-append-fdatasync loop."""

import fcntl
import multiprocessing
import os
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from time import perf_counter

from benchmarks.history import append as append_events
from benchmarks.history import spawned
from benchmarks.measure import Row, at_least, scratch
from guard import agents_of, update_agent_progress
from guard.core.registry import GLOBAL_REGISTRY
from guard.files import sync_data
from guard.store.files import FileStore

_PROCESSES, _UPDATES, _AGENTS, _ROUNDS = 16, 200, 100, 3
_LINE = b"x" * 460 + b"\n"
Worker = Callable[[Path, int, Barrier], None]


def rows() -> Iterator[Row]:
    ratios = []
    lost = 0
    for _ in range(_ROUNDS):
        with scratch() as folder:
            append_events(folder / "workspace", [spawned(n, 1) for n in range(_AGENTS)])
            bare = _elapsed(_bare, folder)
            ours = _elapsed(_ours, folder)
            lost += _PROCESSES * _UPDATES - _recorded(folder / "workspace")
        ratios.append((bare / ours, ours, bare))
    ratio, ours, bare = sorted(ratios)[_ROUNDS // 2]
    total = _PROCESSES * _UPDATES
    detail = (
        f"{total / ours:.0f} beside {total / bare:.0f} updates/s, {lost} lost of {total * _ROUNDS}"
    )
    row = at_least("16 processes updating one registry, 100 agents", 0.5, ratio, detail)
    yield row if not lost else Row(row.what, row.target, ratio, False, detail)


def _elapsed(work: Worker, folder: Path) -> float:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(_PROCESSES + 1)
    workers = [context.Process(target=work, args=(folder, n, barrier)) for n in range(_PROCESSES)]
    for worker in workers:
        worker.start()
    barrier.wait()
    begun = perf_counter()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RuntimeError("a worker failed")
    return perf_counter() - begun


def _bare(folder: Path, _number: int, barrier: Barrier) -> None:
    log = os.open(folder / "bare.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    lock = os.open(folder / "bare.lock", os.O_RDWR | os.O_CREAT, 0o600)
    barrier.wait()
    for _ in range(_UPDATES):
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(log, _LINE)
        sync_data(log)
        fcntl.flock(lock, fcntl.LOCK_UN)


def _ours(folder: Path, number: int, barrier: Barrier) -> None:
    workspace = folder / "workspace"
    os.environ["GUARD_STORE__LOCK_TIMEOUT_SECONDS"] = "60"
    agents_of("task-0", workspace=workspace)
    barrier.wait()
    for step in range(_UPDATES):
        agent = f"agent-{(number * _UPDATES + step) % _AGENTS}"
        update_agent_progress("task-0", agent, "working", f"step {step}", 50, workspace=workspace)


def _recorded(workspace: Path) -> int:
    registry = FileStore(workspace).view(GLOBAL_REGISTRY)
    return sum(agent.updates for agent in registry.agents) if registry else 0
