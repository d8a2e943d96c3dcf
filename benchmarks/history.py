"""Logs of any length, written quickly: many events with one sync."""

from datetime import UTC, datetime
from pathlib import Path

from guard.core.events import AgentSpawned, AgentUpdated, Event
from guard.store.files import FileStore

MOMENT = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
_BATCH, _CHANGE = 5000, 100
_MESSAGE = "Found 5 key patterns in authentication code"


def spawned(number: int, tasks: int = 20) -> AgentSpawned:
    return AgentSpawned(
        at=MOMENT,
        id=f"s{number}",
        task_id=f"task-{number % tasks}",
        agent_id=f"agent-{number}",
        incarnation=1,
        agent_type="builder",
    )


def updated(number: int, sequence: int, tasks: int = 20, *, ends: bool = False) -> AgentUpdated:
    return AgentUpdated(
        at=MOMENT,
        id=f"u{sequence}",
        task_id=f"task-{number % tasks}",
        agent_id=f"agent-{number}",
        incarnation=1,
        status="completed" if ends else "working",
        message=_MESSAGE,
        progress=50,
    )


def append(path: Path, events: list[Event]) -> None:
    """Record all events, a batch per write."""
    store = FileStore(path)
    for first in range(0, len(events), _BATCH):
        with store.change() as change:
            change.append(*events[first : first + _BATCH])


def working(path: Path, events: int, agents: int = 100) -> None:
    """A history of agents that report over and over."""
    append(path, [spawned(number) for number in range(agents)])
    store = FileStore(path)
    for first in range(0, events, _BATCH):
        size = min(_BATCH, events - first)
        batch = [updated(n % agents, first + n) for n in range(size)]
        with store.change() as change:
            for start in range(0, size, _CHANGE):
                change.append(*batch[start : start + _CHANGE])


def finished(path: Path, agents: int, tasks: int) -> None:
    """A history of agents that have all ended, but for one in each task."""
    append(path, [spawned(number, tasks) for number in range(agents + tasks)])
    append(path, [updated(number, number, tasks, ends=True) for number in range(agents)])
