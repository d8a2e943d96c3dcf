"""Deletions that are the one half of a move: not committed while the other half is held back, and no sign of destruction."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from guard.core.base.paths import path_line
from guard.snapshots.fast_import import Listing
from guard.snapshots.objects import blobs
from guard.snapshots.project import Project
from guard.snapshots.shadow import Shadow
from guard.snapshots.take import Taken

_MOST_COMPARED = 50
_MOST_BYTES = 256 * 1024
_ALIKE = 0.5


def half_moves(
    project: Project,
    shadow: Shadow,
    taken: Taken,
    committed: Listing,
    deleted: Sequence[bytes],
    added: Collection[bytes],
    held: Mapping[bytes, str],
) -> dict[bytes, str]:
    """Deleted paths whose content now stands where it is not committed, and where that is."""
    if not deleted:
        return {}
    there = {taken.kept[path].oid for path in added}
    lost = {committed[path][1]: path for path in deleted if committed[path][1] not in there}
    found = {}
    for path in taken.kept if lost else ():
        if path not in committed and path not in added and taken.kept[path].oid in lost:
            found[lost[taken.kept[path].oid]] = path
    found |= dict(_edited(project, shadow, taken, lost, held))
    return {
        gone: f"moved: to {path_line(path)}, which is not committed" for gone, path in found.items()
    }


def _edited(
    project: Project,
    shadow: Shadow,
    taken: Taken,
    lost: Mapping[str, bytes],
    held: Mapping[bytes, str],
) -> Iterator[tuple[bytes, bytes]]:
    """Moved and edited: most lines are the same."""
    new = {taken.kept[path].oid: path for path in list(held)[:_MOST_COMPARED] if path in taken.kept}
    after = dict(blobs(shadow.call, list(new), _MOST_BYTES)) if lost and new else {}
    before = blobs(project.call, list(lost)[:_MOST_COMPARED], _MOST_BYTES) if after else ()
    for oid, old in before:
        for other, data in after.items():
            if _is_alike(old, data):
                yield lost[oid], new[other]


def _is_alike(one: bytes, other: bytes) -> bool:
    lines, others = set(one.splitlines()), set(other.splitlines())
    most = max(len(lines), len(others))
    return most > 0 and len(lines & others) >= _ALIKE * most
