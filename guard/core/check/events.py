"""The event of a completion check: its verdict, and every look at the evidence that led to it."""

from typing import Any, Literal

from guard.core.base.fields import Count, Instant, Line
from guard.core.base.paths import Spelled
from guard.core.iteration.events import DirtyFile, IterationEventBase, Seconds, Status

MOST_LOOKS = 32


class CheckMade(IterationEventBase):
    """One completion check. The looks are evidence documents (`guard/evidence/1`): a replay judges them again."""

    type: Literal["check_made"] = "check_made"
    status: Status
    reason: Line
    detail: Line
    complete: bool
    new_commits: Count
    uncommitted: Count
    rescued: bool
    rescued_commits: Count
    probes: Count
    probe_cost_usd: float | None
    alive: Count
    """How many processes and members were alive and at work when the verdict fell."""
    retry_at: Instant | None
    elapsed_seconds: Seconds
    supervised: bool = False
    """Whether it was made by the guard that watches over the iteration, and not by hand."""
    left: tuple[DirtyFile, ...]
    """What the iteration left uncommitted, so that the next baseline does not take it for the user's."""
    aside: tuple[Spelled, ...] = ()
    """What changed while no guard watched: the user's, for all checks of this iteration."""
    policy: dict[str, Any]
    looks: tuple[dict[str, Any], ...]


CheckEvent = CheckMade
