"""Find what a snapshot has in it by walking its trees, so that a damaged tree hides no more than itself."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from guard.core.base.paths import unspell
from guard.core.snapshots.paths import work_tree_path
from guard.core.snapshots.restore import (
    USUAL_BITS,
    SnapshotFile,
    is_asked_for,
    refuse_unknown,
    why_unsafe,
    why_unsafe_nested,
)
from guard.core.snapshots.snapshot import Manifest
from guard.errors import StateProblem
from guard.snapshots.inventory import Reference, read_manifest
from guard.snapshots.objects import TREE, Objects, ObjectUnreadable, TreeEntry

WORKTREE = b"worktree"
NESTED = b"nested"
MANIFEST = b"manifest.json of the snapshot"
_MOST_DEPTH = 1000


@dataclass
class SnapshotContents:
    """The files of a snapshot, in the order of their paths, and what cannot be had of it."""

    files: list[SnapshotFile] = field(default_factory=list)
    nested: list[SnapshotFile] = field(default_factory=list)
    """The git directories of nested repositories, file by file."""
    empty_folders: list[bytes] = field(default_factory=list)
    trouble: dict[bytes, str] = field(default_factory=dict)
    """Folders that cannot be read, and why."""
    refused: dict[bytes, str] = field(default_factory=dict)
    """Paths that may not be written."""
    manifest_damage: str | None = None

    def check(self, wanted: Sequence[bytes]) -> None:
        """Refuse a path under which it has nothing, unless that may be in a folder that cannot be read."""
        sure = [
            path for path in wanted if not any(self.concerns(at, [path]) for at in self.trouble)
        ]
        there = {file.path for file in (*self.files, *self.nested)}
        refuse_unknown(sure, {*there, *self.empty_folders, *self.refused})

    def find_lost(self, wanted: Sequence[bytes]) -> dict[bytes, str]:
        found = {path: why for path, why in self.trouble.items() if self.concerns(path, wanted)}
        if self.manifest_damage:
            found[MANIFEST] = self.manifest_damage
        return found

    def concerns(self, folder: bytes, wanted: Sequence[bytes]) -> bool:
        """Tell whether a folder that cannot be read may hold something that is asked for."""
        inside = folder + b"/" if folder else b""
        return is_asked_for(folder, wanted) or any(path.startswith(inside) for path in wanted)


def read_work_tree(objects: Objects, reference: Reference) -> SnapshotContents:
    found = SnapshotContents()
    manifest = _manifest(objects, reference, found)
    bits = _bits(manifest)
    for entry in _top(objects, reference):
        if entry.name == WORKTREE:
            _walk(objects, entry, b"", found, bits)
        elif entry.name == NESTED:
            _walk_nested(objects, entry, found)
    for name in manifest.empty_folders if manifest else ():
        path = unspell(name)
        if why_unsafe(path + b"/inside") is None:
            found.empty_folders.append(path)
    found.files.sort()
    return found


def read_index(objects: Objects, reference: Reference) -> SnapshotContents:
    """Read what was staged, by stage, what was stashed, and the files of the operation that was in progress."""
    found = SnapshotContents()
    for entry in _top(objects, reference):
        if entry.mode == TREE and entry.name not in (WORKTREE, NESTED):
            _walk(objects, entry, entry.name + b"/", found, {})
    found.files.sort()
    return found


def _walk_nested(objects: Objects, top: TreeEntry, found: SnapshotContents) -> None:
    inner = SnapshotContents()
    _walk(objects, top, b"", inner, {}, why_unsafe_nested)
    found.nested = sorted(inner.files)
    found.trouble.update(inner.trouble)
    found.refused.update(inner.refused)


def _manifest(objects: Objects, reference: Reference, found: SnapshotContents) -> Manifest | None:
    try:
        return read_manifest(objects, reference.commit)
    except ObjectUnreadable as error:
        found.manifest_damage = f"{error}; permissions and empty folders are lost"
        return None


def _bits(manifest: Manifest | None) -> dict[bytes, int]:
    modes = manifest.modes if manifest else {}
    return {unspell(name): _octal(bits) for bits, names in modes.items() for name in names}


def _octal(text: str) -> int:
    return int(text, 8) & 0o7777 if re.fullmatch("[0-7]+", text) else 0o600


def _top(objects: Objects, reference: Reference) -> list[TreeEntry]:
    try:
        if not reference.commit:
            raise ObjectUnreadable("its ref is broken")
        return objects.tree(f"{reference.commit}^{{tree}}")
    except ObjectUnreadable as error:
        raise StateProblem(
            f"cannot read snapshot {reference.id}: {error}",
            "list the others with `guard snapshots`; guard changed nothing",
        ) from None


def _walk(
    objects: Objects,
    top: TreeEntry,
    prefix: bytes,
    found: SnapshotContents,
    bits: dict[bytes, int],
    why_not: Callable[[bytes], str | None] = why_unsafe,
) -> None:
    waiting = [(prefix, top.oid, 0)]
    while waiting:
        prefix, oid, depth = waiting.pop()
        for entry in _entries(objects, prefix, oid, found):
            path = work_tree_path(prefix + entry.name)
            why = why_not(path) if depth < _MOST_DEPTH else "it lies too deep"
            if entry.mode == TREE and depth < _MOST_DEPTH:
                waiting.append((prefix + entry.name + b"/", entry.oid, depth + 1))
            elif why is not None or entry.mode not in USUAL_BITS:
                found.refused[path] = why or "it is neither a file nor a link"
            else:
                usual = USUAL_BITS[entry.mode]
                found.files.append(SnapshotFile(path, entry.mode, entry.oid, bits.get(path, usual)))


def _entries(objects: Objects, prefix: bytes, oid: str, found: SnapshotContents) -> list[TreeEntry]:
    try:
        return objects.tree(oid)
    except ObjectUnreadable as error:
        found.trouble[work_tree_path(prefix.rstrip(b"/"))] = str(error)
        return []
