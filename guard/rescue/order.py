"""What a rescue is asked to do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from guard.core.rescue.change import Changed
from guard.core.rescue.groups import Group, group_changes
from guard.core.rescue.settings import SnapshotLimits
from guard.core.snapshots.snapshot import HeldBack

Grouping = Callable[[Sequence[Changed]], list[Group]]
"""Which changes become one commit, and what it says; each change in exactly one of them."""


@dataclass(frozen=True)
class Orders:
    """The iteration whose work it is, which paths, and how they are to be committed."""

    run: str
    iteration: int
    baseline_branch: str | None
    paths: Sequence[bytes]
    baseline_head: str | None = None
    """Where the branch stood: one that is gone since is not begun anew."""
    since: datetime | None = None
    """When the iteration began: what was written since then may be the agent's work, ignored or not."""
    held: tuple[HeldBack, ...] = ()
    """What is left out from the start, because it is not the agent's alone."""
    grouping: Grouping = group_changes
    on_branch: bool = False
    """Whether a branch of its own is wanted in any case."""
    dry: bool = False
    """Whether to say what would be done, and no more."""
    hooks: bool = False
    tasks: bytes | None = None
    """The task file whose boxes are ticked by what is committed."""
    limits: SnapshotLimits = field(default_factory=SnapshotLimits)
