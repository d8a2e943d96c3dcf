"""Snapshots as a table, for people."""

from collections.abc import Sequence

from guard.core.base.text import visible
from guard.core.events.snapshot import MOST_NAMED
from guard.core.rescue.report import SnapshotEntry, SnapshotsReport

_HEAD = ("id", "when", "run", "kind", "files", "bytes", "skipped", "")
_RIGHT = frozenset({4, 5, 6})
_STEP = 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def table(report: SnapshotsReport) -> str:
    """One line per snapshot; the work trees as headings if there are several."""
    if not report.snapshots:
        return "no snapshots"
    worktrees = sorted({entry.worktree for entry in report.snapshots})
    rows = [_HEAD, *(_row(entry) for entry in report.snapshots)]
    lines = _aligned(rows)
    if len(worktrees) == 1:
        return "\n".join(lines)
    parts = [lines[0]]
    for worktree in worktrees:
        parts.append(f"{visible(worktree)}:")
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
        sized(entry.bytes),
        str(skipped) if skipped <= MOST_NAMED else f"{MOST_NAMED}+",
        ", ".join(notes),
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if at in _RIGHT else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def sized(count: int) -> str:
    """A number of bytes, in the largest unit that it fills."""
    value, unit = float(count), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} B"
