"""What `guard snapshot`, `guard snapshots` and `guard restore` print."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Instant, Line, Report, Seq, Text
from guard.core.base.paths import Spelled
from guard.core.base.text import escape
from guard.core.snapshots.snapshot import MOST_NAMED, Snapshot, SnapshotKind

Letter = Literal["A", "M", "D"]
"""What a restore would do to a path: add it, change it, or leave it though the snapshot does not have it."""


class SnapshotEntry(Frozen):
    """One snapshot in a list."""

    id: Id
    at: Instant
    kind: SnapshotKind
    run: Id | None
    iteration: Seq | None
    worktree: Spelled
    files: Count
    bytes: Count
    whole: bool
    skipped: tuple[Line, ...]
    """What is not in it, and why; at most as many as a result lists."""
    unpromoted: bool
    """Whether it has work that has not been taken over yet; such a snapshot is never pruned."""
    recover: Line
    """A command that brings it back into the folder DIR, by git alone."""


class DamagedSnapshot(Frozen):
    """A snapshot that cannot be read as a whole; what its tree still has can be restored."""

    id: Line
    why: Line


class SnapshotsReport(Report):
    """The snapshots of a work tree, or of all work trees of the workspace, the newest last."""

    schema_: Literal["guard/snapshots/1"] = Field("guard/snapshots/1", alias="schema")
    worktree: Spelled | None
    """Whose they are; null for all."""
    snapshots: tuple[SnapshotEntry, ...]
    damaged: tuple[DamagedSnapshot, ...]
    pruned: tuple[Id, ...]
    """Those that were deleted by this call."""
    freed_bytes: Count
    promoted: Id | None
    """The one that this call let go: its work has been taken over."""


class SnapshotReport(Snapshot, Report):
    """A snapshot that was taken."""

    schema_: Literal["guard/snapshot/1"] = Field("guard/snapshot/1", alias="schema")


class NotRestored(Frozen):
    """A path that stayed as it was, or is missing."""

    path: Line
    why: Line


class RestoreReport(Report):
    """What came back, and where it is."""

    schema_: Literal["guard/restore/1"] = Field("guard/restore/1", alias="schema")
    id: Id
    to: Spelled
    in_place: bool
    files: Count
    """How many files and links were written."""
    unchanged: Count
    """How many were there already, as the snapshot has them."""
    not_restored: tuple[NotRestored, ...]
    left: tuple[Line, ...]
    """Files of the work tree that the snapshot does not have; they were left alone."""
    snapshot: Snapshot | None
    """The work tree as it was before; null if nothing of it had to change."""


class PathDifference(Frozen):
    """One path that differs between the snapshot and a folder."""

    letter: Letter
    path: Spelled
    diff: Text | None
    """For text of bounded length, what would change, as a unified diff."""
    note: Line | None
    """Why there is none, or what differs beside the content."""


class RestoreDiffReport(Report):
    """What a restore would change."""

    schema_: Literal["guard/restore-diff/1"] = Field("guard/restore-diff/1", alias="schema")
    id: Id
    against: Spelled
    changes: tuple[PathDifference, ...]
    unchanged: Count
    not_read: tuple[NotRestored, ...]
    """What could not be compared."""


_HEAD = ("id", "when", "run", "kind", "files", "bytes", "skipped", "")
_RIGHT = frozenset({4, 5, 6})
_STEP = 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def snapshot_table(report: SnapshotsReport) -> str:
    """One line per snapshot; the work trees as headings if there are several."""
    if not report.snapshots:
        return "no snapshots"
    worktrees = sorted({entry.worktree for entry in report.snapshots})
    rows = [_HEAD, *(_row(entry) for entry in report.snapshots)]
    lines = _align(rows)
    if len(worktrees) == 1:
        return "\n".join(lines)
    parts = [lines[0]]
    for worktree in worktrees:
        parts.append(f"{escape(worktree)}:")
        pairs = zip(report.snapshots, lines[1:], strict=True)
        parts += [line for entry, line in pairs if entry.worktree == worktree]
    return "\n".join(parts)


def _row(entry: SnapshotEntry) -> tuple[str, ...]:
    run = f"{entry.run}/{entry.iteration}" if entry.run else "-"
    skipped = len(entry.skipped)
    notes = ["unpromoted"] if entry.unpromoted else []
    notes += [] if entry.whole else ["not whole"]
    return (
        entry.id,
        f"{entry.at:%Y-%m-%d %H:%M:%S}",
        run,
        entry.kind,
        str(entry.files),
        size_text(entry.bytes),
        str(skipped) if skipped <= MOST_NAMED else f"{MOST_NAMED}+",
        ", ".join(notes),
    )


def _align(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if at in _RIGHT else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def size_text(count: int) -> str:
    value, unit = float(count), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} B"
