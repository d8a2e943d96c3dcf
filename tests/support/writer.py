"""A process that changes a workspace: `python -m tests.support.writer WORKSPACE NAME UPDATES SEGMENT_MAX_BYTES ACKNOWLEDGED`.

Each update goes to one of the agents of `populate`, says `NAME-number`, and is noted in ACKNOWLEDGED after it returned.
With 0 updates the process takes the lock, says so on stdout, and does not let go.
"""

import os
import random
import subprocess
import sys
from pathlib import Path
from time import sleep

from guard.agents import registry
from guard.store.file_store import FileStore
from tests.support import ROOT
from tests.support.events import MOMENT, spawned

AGENTS = [(f"T{number % 5}", f"a{number}") for number in range(100)]


def populate(store: FileStore) -> None:
    """A hundred agents in five tasks."""
    with store.change() as change:
        change.append(*(spawned(agent, task) for task, agent in AGENTS))


def start(
    workspace: Path,
    name: str,
    updates: int,
    acknowledged: Path,
    *,
    segment_max_bytes: int = 1 << 24,
) -> "subprocess.Popen[str]":
    """Such a process, running."""
    words = [str(workspace), name, str(updates), str(segment_max_bytes), str(acknowledged)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.writer", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _write(store: FileStore, name: str, updates: int, acknowledged: Path) -> None:
    chosen = random.Random(name)
    notes = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in range(updates):
        task, agent = chosen.choice(AGENTS)
        registry.update(
            store, MOMENT, registry.AgentUpdate(task, agent, "working", message=f"{name}-{number}")
        )
        os.write(notes, f"{name}-{number}\n".encode())


def _hold(store: FileStore) -> None:
    with store.change():
        print("held", flush=True)
        while True:
            sleep(60)


if __name__ == "__main__":
    _workspace, _name, _updates, _segment_max, _acknowledged = sys.argv[1:]
    _store = FileStore(
        Path(_workspace), lock_timeout_seconds=240, segment_max_bytes=int(_segment_max)
    )
    if int(_updates):
        _write(_store, _name, int(_updates), Path(_acknowledged))
    else:
        _hold(_store)
