"""A process in which agents come, work and end: `python -m tests.support.reporter WORKSPACE NAME JOURNAL`.

It goes on until it is killed. Each report that returned is one line of the journal. Beside its own agents it reports the ends
of agents that it shares with all other such processes: only one of them can be the first.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from guard import spawn_agent, update_agent_progress
from guard.agents import registry
from guard.core.agents.agent import TERMINAL
from guard.store.file_store import FileStore
from tests.support import ROOT
from tests.support.events import MOMENT

TASKS = tuple(f"T{number}" for number in range(8))
SHARED = tuple(f"shared-{number}" for number in range(40))


def start(workspace: Path, name: str, journal: Path) -> "subprocess.Popen[bytes]":
    """Such a process, running."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.reporter", str(workspace), name, str(journal)],
        cwd=workspace.parent,
        # Many wait for one lock, and the machine may have much else to do.
        env={**os.environ, "PYTHONPATH": str(ROOT), "GUARD_STORE__LOCK_TIMEOUT_SECONDS": "240"},
        stderr=subprocess.PIPE,
    )


def populate(workspace: Path) -> None:
    """The agents that all share."""
    for task in TASKS:
        for agent in SHARED:
            registry.spawn(FileStore(workspace), MOMENT, task_id=task, agent_id=agent)


def _live(workspace: str, name: str, journal: str) -> None:
    chance = random.Random(name)
    notes = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def said(report: Any) -> None:
        agent = report.agent
        line = [agent.task_id, agent.agent_id, agent.status, report.recorded_as]
        os.write(notes, json.dumps(line).encode() + b"\n")

    for number in range(10**6):
        task, agent = chance.choice(TASKS), f"{name}-{number}"
        end: Any = chance.choice(sorted(TERMINAL))
        said(spawn_agent(task, agent, workspace=workspace))
        said(update_agent_progress(task, agent, "working", "at it", 50, workspace=workspace))
        said(update_agent_progress(task, agent, end, "done", 100, workspace=workspace))
        shared = chance.choice(SHARED)
        said(update_agent_progress(task, shared, end, f"by {name}", workspace=workspace))


if __name__ == "__main__":
    _live(*sys.argv[1:])
