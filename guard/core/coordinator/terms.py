"""Under what terms the coordinator decides, and how it says no."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from shlex import quote
from typing import Any

from guard.core.coordinator.state import Coordinator
from guard.core.events.plan import CoordinatorEvent

Draft = tuple[type[CoordinatorEvent], Mapping[str, Any]]
"""An event without its id and its time."""
_DIGEST = 10


@dataclass(frozen=True)
class CoordinatorLimits:
    """The knobs of the coordinator."""

    active_developers: int = 3
    remediation_attempts: int = 3
    agent_timeout: timedelta = timedelta(minutes=15)
    redispatch_limit: int = 3
    max_concurrent_per_agent: int = 2


@dataclass(frozen=True)
class AuditedCommit:
    """What git says of a task that passed its audit."""

    sha: str
    files: tuple[str, ...] = ()
    branch: str | None = None


@dataclass(frozen=True)
class DecisionTerms:
    """What is given to a decision beside the state."""

    now: datetime
    event_id: str
    """The id of the first event; those that follow are numbered after it."""
    limits: CoordinatorLimits = field(default_factory=CoordinatorLimits)
    head: str | None = None
    """Where the repository stands; None before the first commit, and without a repository."""
    commit: AuditedCommit | None = None
    boot_seconds: float = 0.0
    boot_id: str | None = None
    """Now on the boot clock; without an id only the wall clock counts."""
    made: int = 0
    """How many events there are already under the same id."""

    @property
    def until(self) -> datetime:
        """When an agent that begins now has had its time."""
        return self.now + self.limits.agent_timeout

    def events(self, drafts: Iterable[Draft]) -> tuple[CoordinatorEvent, ...]:
        """The events, each with an id of its own."""
        return tuple(
            event(at=self.now, id=self._id(number), **fields, **self._boot(fields))
            for number, (event, fields) in enumerate(drafts, self.made + 1)
        )

    def _boot(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The end of somebody's time, for events that give one."""
        until = fields.get("timeout_at")
        if until is None or self.boot_id is None:
            return {}
        seconds = self.boot_seconds + (until - self.now).total_seconds()
        return {"timeout_boot_seconds": seconds, "timeout_boot_id": self.boot_id}

    def _id(self, number: int) -> str:
        return self.event_id if number == 1 else numbered(self.event_id, number)


def numbered(event_id: str, number: int) -> str:
    """An id after another; with a digest, so that it is nobody's own: a script may well number its ids in the same way."""
    digest = sha256(event_id.encode()).hexdigest()[:_DIGEST]
    return f"{event_id[:100]}-{number}-{digest}"


@dataclass(frozen=True)
class Refusal:
    """The state does not allow it: a stable word, the sentence, and what to do instead."""

    code: str
    message: str
    hint: str


class NotAllowed(Exception):
    """A refusal on its way to whoever asked."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.refusal = Refusal(code, message, hint)


SHOW = "`guard plan show` tells where every task stands"


def called(state: Coordinator, task_id: str) -> str:
    """The task as the plan spells it, for people; its id if the plan has it no more."""
    task = state.task(task_id)
    return task.name if task is not None else task_id


def typed(state: Coordinator, task_id: str) -> str:
    """The same as a word of a command that can be typed; a name that looks like an option gives way to the id."""
    name = called(state, task_id)
    return task_id if name.startswith("-") else quote(name)


def named(state: Coordinator, stem: str, offset: int = 0) -> str:
    """A name that nobody has yet: numbered on from the last."""
    number = state.names_given + 1 + offset
    while f"{stem}-{number}" in state.active_agents:
        number += 1
    return f"{stem}-{number}"
