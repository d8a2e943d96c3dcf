"""Add up what iterations used, by run, task, agent, day or model."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from guard.core.agents.events import AgentPlaced, AgentUpdated
from guard.core.base.fields import Count, Line
from guard.core.check.events import CheckMade
from guard.core.cost.usage import Usage, sum_models, total_usage
from guard.core.iteration.events import SessionSeen
from guard.core.log.events import BaseEvent

Grouping = Literal["run", "task", "agent", "day", "model"]
NO_NAME = "(none)"
_MOST_OPEN = 1000
_Place = tuple[str | None, int | None]


class UsageGroup(Usage):
    """What the iterations of one run, task, agent or day used, or what one model was used for."""

    name: Line
    iterations: Count


@dataclass
class _Open:
    """An iteration that may still be checked again."""

    place: _Place
    at: datetime
    usage: Usage


@dataclass
class UsageGroups:
    """The sums while the events are read; the newest check of an iteration counts."""

    by: Grouping | None = None
    total: Usage | None = None
    _sums: dict[str, tuple[int, Usage]] = field(default_factory=dict)
    _open: dict[str, _Open] = field(default_factory=dict)
    """The newest iteration of each work tree."""
    _names: dict[_Place, dict[str, str]] = field(default_factory=dict)
    """The task and the agents of iterations that are not yet counted."""

    def feed(self, event: BaseEvent) -> None:
        match event:
            case SessionSeen() if event.agent:
                self._name(event, program=event.agent)
            case AgentUpdated() | AgentPlaced() if event.iteration is not None:
                self._name(event, task=event.task_id, agent=event.agent_id)
            case CheckMade() if event.usage is not None:
                self._check(event, event.usage)
            case _:
                pass

    def _name(self, event: BaseEvent, **names: str) -> None:
        place = event.run, event.iteration
        while place not in self._names and len(self._names) >= _MOST_OPEN:
            del self._names[next(iter(self._names))]
        self._names.setdefault(place, {}).update(names)

    def _check(self, event: CheckMade, usage: Usage) -> None:
        place: _Place = event.run, event.iteration
        known = self._open.get(event.worktree)
        if known is not None and known.place != place:
            self._count(known)
            self._names.pop(known.place, None)
        self._open[event.worktree] = _Open(place, event.at, usage)

    def _count(self, iteration: _Open) -> None:
        usage = iteration.usage
        self.total = usage if self.total is None else total_usage((self.total, usage))
        for name, part in self._parts(iteration):
            count, known = self._sums.get(name, (0, None))
            summed = part if known is None else total_usage((known, part))
            self._sums[name] = count + 1, summed

    def _parts(self, iteration: _Open) -> list[tuple[str, Usage]]:
        usage, names = iteration.usage, self._names.get(iteration.place, {})
        match self.by:
            case None:
                return []
            case "run":
                return [(iteration.place[0] or NO_NAME, usage)]
            case "task":
                return [(names.get("task", NO_NAME), usage)]
            case "agent":
                return [(names.get("agent") or names.get("program", NO_NAME), usage)]
            case "day":
                return [(f"{iteration.at:%Y-%m-%d}", usage)]
            case "model":
                parts = [
                    (each.model or NO_NAME, sum_models((each,), usage.cost_basis))
                    for each in usage.by_model
                ]
                return parts or [(NO_NAME, usage)]

    def finish(self) -> tuple[Usage, tuple[UsageGroup, ...]]:
        """Return the sum of all, and the groups by their names."""
        for iteration in self._open.values():
            self._count(iteration)
        self._open.clear()
        groups = tuple(
            UsageGroup(name=name, iterations=count, **dict(usage))
            for name, (count, usage) in sorted(self._sums.items())
        )
        return self.total or Usage(), groups
