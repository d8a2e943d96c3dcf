"""Decide which snapshots go: never the last of a work tree, nor its last baseline, nor one with work that is not committed."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

Fate = Literal["unreadable", "unpromoted", "newest", "baseline", "among_newest", "young", "due"]
"""Why a snapshot stays, or `due`: it goes."""


class SnapshotFacts(NamedTuple):
    """What decides over one snapshot."""

    id: str
    worktree: str
    at: datetime | None
    """None if its manifest cannot be read."""
    unpromoted: bool
    baseline: bool = False
    """Whether it is from the beginning of an iteration: what the user had then may be nowhere else."""


def fates(
    held: Sequence[SnapshotFacts], *, keep_snapshots: int, keep_days: float, now: datetime
) -> dict[str, Fate]:
    """What becomes of each snapshot; they are given from the oldest to the newest."""
    youth = timedelta(days=keep_days)
    seen: dict[str, int] = {}
    begun: set[str] = set()
    found: dict[str, Fate] = {}
    for snapshot in reversed(held):
        if snapshot.at is None:
            found[snapshot.id] = "unreadable"
            continue
        rank = seen[snapshot.worktree] = seen.get(snapshot.worktree, 0) + 1
        found[snapshot.id] = _fate(snapshot, rank, keep_snapshots, young=now - snapshot.at < youth)
        if snapshot.baseline and snapshot.worktree not in begun:
            begun.add(snapshot.worktree)
            found[snapshot.id] = (
                "baseline" if found[snapshot.id] in ("young", "due") else found[snapshot.id]
            )
    return found


def _fate(snapshot: SnapshotFacts, rank: int, keep_snapshots: int, *, young: bool) -> Fate:
    if snapshot.unpromoted:
        return "unpromoted"
    if rank == 1:
        return "newest"
    if rank <= keep_snapshots:
        return "among_newest"
    return "young" if young else "due"


def due_ids(
    held: Sequence[SnapshotFacts], *, keep_snapshots: int, keep_days: float, now: datetime
) -> tuple[str, ...]:
    found = fates(held, keep_snapshots=keep_snapshots, keep_days=keep_days, now=now)
    return tuple(snapshot.id for snapshot in held if found[snapshot.id] == "due")


def slack(keep_snapshots: int) -> int:
    """How many must be due before the space is freed unasked: it costs a copy of all that stays."""
    return max(1, keep_snapshots // 10)
