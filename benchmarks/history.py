"""Logs of any length, written quickly: many events with one sync."""

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from guard.core.agents.events import AgentClaimValidated, AgentSpawned, AgentUpdated
from guard.core.claims.completion_validation import CompletionValidation
from guard.core.claims.evidence import ClaimEvidence, WorkSinceBaseline
from guard.core.claims.settings import ClaimsSettings
from guard.core.claims.validate import validate
from guard.core.log.events import BaseEvent
from guard.store.file_store import FileStore

MOMENT = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
_BATCH, _CHANGE = 5000, 100
_MESSAGE = "Found 5 key patterns in authentication code"


def _common(number: int, tasks: int) -> dict[str, Any]:
    """The fields that all events of one agent have."""
    place = {"task_id": f"task-{number % tasks}", "agent_id": f"agent-{number}"}
    return {"at": MOMENT, "incarnation": 1, **place}


def spawned(number: int, tasks: int = 20) -> AgentSpawned:
    return AgentSpawned(
        id=f"s{number}",
        **_common(number, tasks),
        agent_type="builder",
    )


def updated(number: int, sequence: int, tasks: int = 20, *, ends: bool = False) -> AgentUpdated:
    return AgentUpdated(
        id=f"u{sequence}",
        **_common(number, tasks),
        status="completed" if ends else "working",
        message=_MESSAGE,
        progress=50,
    )


def judged(number: int, tasks: int = 20) -> AgentClaimValidated:
    return AgentClaimValidated(
        id=f"c{number}",
        **_common(number, tasks),
        refused=False,
        message=_MESSAGE,
        validation=_validation(),
    )


@cache
def _validation() -> CompletionValidation:
    files = frozenset(f"src/module_{number}.py" for number in range(20))
    evidence = ClaimEvidence(
        agent_type="builder",
        message="Fixed src/module_1.py and src/other.py; ran pytest, all tests pass.",
        spawned_at=MOMENT,
        at=MOMENT + timedelta(hours=1),
        updates=2,
        working_updates=1,
        findings=0,
        changes=WorkSinceBaseline(files, 3),
        unmeasured=None,
    )
    return validate(evidence, ClaimsSettings())


def append(path: Path, events: list[BaseEvent], together: int = _BATCH) -> None:
    """Record all events, so many in a change."""
    store = FileStore(path)
    for first in range(0, len(events), _BATCH):
        batch = events[first : first + _BATCH]
        with store.change() as change:
            for start in range(0, len(batch), together):
                change.append(*batch[start : start + together])


def working(path: Path, events: int, agents: int = 100) -> None:
    """A history of agents that report over and over."""
    append(path, [spawned(number) for number in range(agents)])
    for first in range(0, events, _BATCH):
        size = min(_BATCH, events - first)
        append(path, [updated(n % agents, first + n) for n in range(size)], _CHANGE)


def finished(path: Path, agents: int, tasks: int) -> None:
    """A history of agents that have all claimed to be complete, but for one in each task."""
    append(path, [spawned(number, tasks) for number in range(agents + tasks)])
    append(path, [updated(number, number, tasks, ends=True) for number in range(agents)])
    append(path, [judged(number, tasks) for number in range(agents)])
