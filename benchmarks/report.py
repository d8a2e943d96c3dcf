"""A long night: what `guard report` takes beside reading the log, how large its page is, and what `guard dashboard` takes."""

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from benchmarks.history import MOMENT, append, spawned, updated
from benchmarks.measure import Row, at_most, paired, scratch
from guard.context.invocation import Invocation
from guard.context.workspace import worktree_key
from guard.core.check.events import CheckMade
from guard.core.check.evidence import Evidence
from guard.core.cost.usage import ModelUsage, sum_models
from guard.core.iteration.events import IterationEnded, IterationStarted, RunStarted
from guard.core.iteration.facts import Status
from guard.core.log.events import BaseEvent
from guard.core.work.count import CommitLine, Work
from guard.core.work.leftovers import Uncommitted
from guard.report.details import read_details
from guard.report.gather import make_report
from guard.report.page import render_page
from guard.system.clock import Clock
from tests.support.dashboards import serve

ITERATIONS, EVENTS = 2000, 200_000
_STATUSES: tuple[Status, ...] = ("complete",) * 7 + ("working", "timeout", "limited", "refuted")
_MEGABYTE = 2**20
_VIEWERS = 5


def rows(iterations: int = ITERATIONS, events: int = EVENTS, rounds: int = 3) -> Iterator[Row]:
    with scratch() as folder:
        guard = make_night(folder, iterations, events)
        read, made = paired(rounds, lambda: _read(guard), lambda: _make_page(guard))
        size = len(_make_page(guard).encode()) / _MEGABYTE
        first, memory = _look(folder, guard)
    night = f"{iterations:,} iterations, {events:,} events"
    detail = f"{made:.2f} s, and {read:.2f} s for reading the log"
    yield at_most(f"`guard report --html`, {night}, beside reading the log", 3, made / read, detail)
    yield Row(f"the page of {night}", "under 2 MB", size, size < 2, "", unit=" MB")
    name = f"`guard dashboard`, {night}"
    yield Row(f"{name}: CPU of the first page", "under 1 s", first, first < 1, "", unit=" s")
    yield Row(
        f"{name}: memory, {_VIEWERS} viewers", "under 200 MB", memory, memory < 200, "", unit=" MB"
    )


def _read(guard: Invocation) -> None:
    for _ in guard.store.entries():
        pass


def _make_page(guard: Invocation) -> str:
    report = make_report(guard)
    return render_page(report, read_details(guard, report))


def _look(folder: Path, guard: Invocation) -> tuple[float, float]:
    """Return the CPU seconds of the first page, and the megabytes at most while several people look at once."""
    environ = {**guard.environ, "GUARD_WORKSPACE": str(folder / "workspace")}
    environ["GUARD_NOW"] = guard.clock.now().isoformat()
    with patch.dict(os.environ, environ), serve(folder / "project") as served:
        pid = served.process.pid
        start = served.ask("/").headers["location"]
        before = _cpu_seconds(pid)
        assert served.ask(start).status == 200
        first = _cpu_seconds(pid) - before
        pages = [start, f"{start}run/r1", f"{start}log?at=7", f"{start}agents", f"{start}plan"]
        with ThreadPoolExecutor(_VIEWERS) as viewers:
            assert [answer.status for answer in viewers.map(served.ask, pages)] == [200] * _VIEWERS
        status = Path(f"/proc/{pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return first, int(peak.split()[1]) / 1024


def _cpu_seconds(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def make_night(folder: Path, iterations: int, events: int) -> Invocation:
    """Make a repository with a commit for each iteration, and a log of them among the reports of agents."""
    project, workspace = folder / "project", folder / "workspace"
    project.mkdir(parents=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    oids = _make_commits(project, iterations, environ)
    seconds = 10 * 3600 / iterations
    per_iteration = max(0, events // iterations - 3)
    found: list[BaseEvent] = [spawned(number) for number in range(20)]
    key = worktree_key(project.resolve())
    begun = RunStarted(
        at=MOMENT, id="run", run="r1", worktree=key, command=("claude", "-p", "go on")
    )
    found.append(begun)
    for number in range(1, iterations + 1):
        at = MOMENT + timedelta(seconds=seconds * (number - 1))
        found += _iteration(key, number, at, seconds * 0.9, oids[number - 1])
        for _ in range(per_iteration):
            report = updated(len(found) % 20, len(found))
            found.append(report.model_copy(update={"at": at}))
    append(workspace, found, 100)
    end = MOMENT + timedelta(hours=10)
    return Invocation(
        repo=project, workspace_option=str(workspace), clock=Clock(end), environ=environ
    )


def _make_commits(project: Path, count: int, environ: dict[str, str]) -> list[str]:
    run: dict[str, Any] = {"cwd": project, "env": environ, "check": True, "capture_output": True}
    subprocess.run(["git", "init", "-q", "-b", "main"], **run)
    lines = []
    for number in range(count):
        text = f"def work_{number}(): return {number}\n"
        lines += [
            "commit refs/heads/main",
            f"committer Somebody <somebody@example.com> {int(MOMENT.timestamp()) + number} +0000",
            *_data(f"feat: add work {number} to the shop, with its tests and its page"),
            f"M 644 inline src/module_{number % 50}.py",
            *_data(text),
            f"M 644 inline tests/test_module_{number % 50}.py",
            *_data(text),
        ]
    stdin = "\n".join([*lines, ""]).encode()
    subprocess.run(["git", "fast-import", "--quiet"], input=stdin, **run)
    listed = subprocess.run(["git", "rev-list", "--reverse", "main"], **run).stdout
    return [line.decode() for line in listed.split()]


def _data(text: str) -> tuple[str, str]:
    return f"data {len(text.encode())}", text


def _iteration(
    key: str, number: int, at: datetime, seconds: float, oid: str
) -> Iterator[BaseEvent]:
    random = Random(number)
    status = random.choice(_STATUSES)
    has_commit = status in ("complete", "refuted")
    place = {"run": "r1", "iteration": number, "worktree": key}
    ended = at + timedelta(seconds=seconds)
    line = CommitLine(oid=oid, subject=f"feat: add work {number - 1}", branch="refs/heads/main")
    work = Work(new_commits=1, net_change=True, commits=(line,)) if has_commit else Work()
    look = Evidence(at=ended, work=work, uncommitted=Uncommitted())
    used = ModelUsage(
        model="some-model",
        input_tokens=2000,
        cached_tokens=50_000,
        output_tokens=3000,
        cost_usd=round(random.uniform(0.01, 0.4), 4),
    )
    yield IterationStarted(at=at, id=f"i{number}", **place)  # type: ignore[arg-type]
    yield CheckMade(
        at=ended,
        id=f"k{number}",
        **place,  # type: ignore[arg-type]
        status=status,
        reason={"complete": "commits", "refuted": "new_failures"}.get(status, "no_commits"),
        detail="1 new commit" if has_commit else "no commits, and nothing was left",
        complete=status == "complete",
        new_commits=int(has_commit),
        uncommitted=0,
        rescued=False,
        rescued_commits=0,
        probes=0,
        probe_cost_usd=None,
        alive=0,
        retry_at=None,
        elapsed_seconds=1,
        supervised=True,
        left=(),
        usage=sum_models((used,), "billed", turns=12, seconds=seconds),
        policy={},
        looks=(look.model_dump(mode="json"),),
    )
    yield IterationEnded(
        at=ended,
        id=f"e{number}",
        **place,  # type: ignore[arg-type]
        status=status,
        reason="",
        elapsed_seconds=seconds,
    )
