"""Compare a snapshot with a folder, without writing anything: what a restore would change."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from guard.core.base.paths import spell
from guard.core.base.text import fit_line
from guard.core.snapshots.paths import LINK
from guard.core.snapshots.report import PathDifference
from guard.core.snapshots.restore import CurrentFile, SnapshotFile, is_asked_for, is_same, text_diff
from guard.snapshots.contents import SnapshotContents
from guard.snapshots.objects import Objects, ObjectUnreadable
from guard.snapshots.safe_writer import PathRefused, SafeFolder, refusal
from guard.snapshots.walk import SnapshotWalk
from guard.system.clock import Deadline

_MOST_BYTES = 128 * 1024
_MOST_DIFFS = 100
_TOO_LARGE = "too large to show"


@dataclass
class Comparison:
    """The differences, in the order of their paths."""

    changes: list[PathDifference] = field(default_factory=list)
    unchanged: int = 0
    not_read: dict[bytes, str] = field(default_factory=dict)
    damaged: bool = False
    """Whether that is the snapshot's own fault."""


@dataclass
class FolderComparer:
    """One comparison; a target of None is a folder that is not there yet."""

    objects: Objects
    target: SafeFolder | None
    left_diffs: int = _MOST_DIFFS

    def compare(
        self,
        contents: SnapshotContents,
        wanted: Sequence[bytes],
        leave_out: frozenset[tuple[int, int]],
        deadline: Deadline,
    ) -> Comparison:
        """Compare everything that is asked for; `leave_out` are folders that are guard's own."""
        lost = contents.find_lost(wanted)
        result = Comparison(not_read={**lost, **contents.refused}, damaged=bool(lost))
        known = {file.path: file for file in contents.files}
        paths = set(known)
        if self.target is not None:
            walk = SnapshotWalk(self.target.root, leave_out, deadline)
            paths |= {entry.path for entry in walk.entries()}
            unread = walk.not_read.items()
            result.not_read.update({path: why for path, why in unread if path not in known})
        for path in sorted(paths):
            if is_asked_for(path, wanted):
                self._compare_path(path, known.get(path), result)
        return result

    def _compare_path(self, path: bytes, file: SnapshotFile | None, result: Comparison) -> None:
        if file is None:
            result.changes.append(_change("D", path, None, "not in the snapshot: it is left alone"))
            return
        try:
            there = self.target.look(path, file.oid) if self.target else None
            if is_same(file, there):
                result.unchanged += 1
            else:
                result.changes.append(self._difference(file, there))
        except (PathRefused, ObjectUnreadable, OSError) as error:
            result.not_read[path] = refusal(error)

    def _difference(self, file: SnapshotFile, there: CurrentFile | None) -> PathDifference:
        letter = "A" if there is None else "M"
        if there is not None and there.oid == file.oid:
            return _change(letter, file.path, None, _bits(there.mode, there.bits, file))
        if self.left_diffs <= 0:
            return _change(letter, file.path, None, f"more than {_MOST_DIFFS} files differ")
        before = self.target.read(file.path, _MOST_BYTES) if there and self.target else b""
        after = None
        with suppress(ObjectUnreadable):
            after = self.objects.read(file.oid, most=_MOST_BYTES)
        if before is None or after is None:
            return _change(letter, file.path, None, _TOO_LARGE)
        self.left_diffs -= 1
        text = text_diff(file.path, before, after)
        note = "binary" if text is None else "a link" if file.mode == LINK else None
        return _change(letter, file.path, text, note)


def _bits(mode: bytes, bits: int, file: SnapshotFile) -> str:
    if LINK in (mode, file.mode):
        return "a file and a link with the same text"
    return f"permissions {bits:o} become {file.bits:o}"


def _change(letter: str, path: bytes, diff: str | None, note: str | None) -> PathDifference:
    return PathDifference.model_validate(
        {"letter": letter, "path": spell(path), "diff": diff, "note": note and fit_line(note)}
    )
