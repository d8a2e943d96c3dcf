"""The event of a rescue: what was committed, what was held back, and the snapshot that has it all."""

from typing import Literal

from guard.core.base.fields import Id, Line, Oid
from guard.core.iteration.events import IterationEventBase
from guard.core.snapshots.snapshot import HeldBack


class RescueMade(IterationEventBase):
    """A rescue has ended, whatever it came to; its words are those of the result."""

    type: Literal["rescue_made"] = "rescue_made"
    commits: tuple[Oid, ...]
    snapshot: Id | None
    held_back: tuple[HeldBack, ...]
    branch: Line | None
    reason: Line
    detail: Line


RescueEvent = RescueMade
