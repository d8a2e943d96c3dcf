"""What `guard rescue` prints."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Id, Report
from guard.core.snapshots.snapshot import Rescue


class RescueReport(Rescue, Report):
    """What became of the work that was left uncommitted."""

    schema_: Literal["guard/rescue/1"] = Field("guard/rescue/1", alias="schema")
    run: Id
    iteration: Count
    dry_run: bool
    """Whether it was only planned."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to be done."""
        return not self.held_back and self.reason in ("rescued", "on_branch", "planned", "nothing")
