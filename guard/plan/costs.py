"""Count what the agents of each task have cost since the plan was begun, by the log."""

from copy import deepcopy

from guard.context.invocation import Invocation
from guard.core.coordinator.upkeep_events import PlanReset
from guard.core.cost.text import dollars
from guard.core.log.record import START
from guard.core.metrics.groups import UsageGroups


class TaskCosts:
    """What each task has cost, and whether that is as much as the user allows for one."""

    def __init__(self, guard: Invocation, most: float | None) -> None:
        self._guard, self._most = guard, most
        self._at, self._groups = START, UsageGroups("task")
        self.costs: dict[str, float] = {}
        """Dollars by task; without tasks whose agents did not tell."""
        if most is not None:
            self.renew()

    @property
    def has_limit(self) -> bool:
        return self._most is not None

    def renew(self) -> None:
        """Take in what the log has had since."""
        for entry in self._guard.store.entries(self._at):
            if isinstance(entry.event, PlanReset):
                self._groups = UsageGroups("task")
            self._groups.feed(entry.event)
            self._at = entry.position
        # An iteration may be checked again, so that the sums themselves stay open.
        _, found = deepcopy(self._groups).finish()
        self.costs = {one.name: one.cost_usd for one in found if one.cost_usd is not None}

    def left(self, task_id: str | None) -> float | None:
        """Return what the task may still cost; None without a limit."""
        if self._most is None or task_id is None:
            return None
        return max(0.0, self._most - self.costs.get(task_id, 0.0))

    @property
    def used_up(self) -> frozenset[str]:
        """The tasks that may cost no more."""
        return frozenset(
            name for name in self.costs if (left := self.left(name)) is not None and left < 1e-9
        )

    def words(self, task_id: str) -> str:
        """Say what the task has cost, and what it may."""
        most = dollars(self._most or 0)
        return f"its agents have cost {dollars(self.costs[task_id])}, and a task may cost {most}"
