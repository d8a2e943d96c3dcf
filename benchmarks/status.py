"""`guard status` over very many active agents of one work tree, beside few: the whole process."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.history import append, spawned
from benchmarks.measure import Row, at_most, cpu_seconds, scratch
from guard.core.agents.events import AgentBaselineRecorded
from guard.core.base.paths import spell
from guard.core.log.events import BaseEvent

MANY, FEW = 1000, 10


def rows(many: int = MANY, few: int = FEW, rounds: int = 5) -> Iterator[Row]:
    with scratch() as folder:
        small, large = (_cpu(folder / str(count), count, rounds) for count in (few, many))
    detail = f"{large:.2f} s of CPU time with {many:,}, {small:.2f} s with {few}"
    what = f"`guard status`, {many:,} active agents beside {few}"
    yield at_most(what, 8, large / small, detail)


def _cpu(folder: Path, count: int, rounds: int) -> float:
    project = folder / "project"
    environ = {**os.environ, "HOME": str(folder), "GUARD_WORKSPACE": str(folder / "workspace")}
    _make(project, count, environ)
    events = [event for number in range(count) for event in _agent(number, project)]
    append(folder / "workspace", events)
    argv = [sys.executable, "-m", "guard", "status", "--format", "json"]
    return cpu_seconds(argv, rounds, cwd=project, environ=environ)


def _agent(number: int, project: Path) -> Iterator[BaseEvent]:
    now, agent = datetime.now(UTC), spawned(number)
    yield agent.model_copy(update={"at": now})
    yield AgentBaselineRecorded(
        at=now,
        id=f"b{number}",
        task_id=agent.task_id,
        agent_id=agent.agent_id,
        incarnation=1,
        root=spell(os.fsencode(project)),
        head=None,
        dirty=(),
    )


def _make(project: Path, count: int, environ: dict[str, str]) -> None:
    """Each third agent has a status file, and each tenth a branch of its own."""
    project.mkdir(parents=True)
    run = partial(subprocess.run, cwd=project, env=environ, check=True, capture_output=True)
    author = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com")
    run(["git", "init", "-q"])
    run(["git", *author, "commit", "-q", "--allow-empty", "-m", "First"])
    refs = (f"create refs/heads/agent-{number}/work HEAD" for number in range(0, count, 10))
    run(["git", "update-ref", "--stdin"], input="\n".join([*refs, ""]).encode())
    for number in range(0, count, 3):
        status = project / "agent_workspaces" / f"agent-{number}" / "status.json"
        status.parent.mkdir(parents=True)
        status.write_text(json.dumps({"current_task": "Write the form"}))
