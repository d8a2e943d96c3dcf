"""Tick the boxes of a task file in the same rescue that commits the work that they are about."""

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from guard.core.base.paths import spell
from guard.core.base.text import plural
from guard.core.rescue.change import Changed
from guard.core.rescue.groups import Group
from guard.core.rescue.tick_boxes import tick_boxes
from guard.rescue.changes import PathChange
from guard.rescue.commits import ProvenTree, is_as_kept
from guard.rescue.select import NO_FILTER
from guard.snapshots.project import Project
from guard.snapshots.shadow import Shadow
from guard.snapshots.take import Taken
from guard.system.private_files import close

_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PLAIN = (b"100644", b"100755")


@dataclass(frozen=True)
class Ticks:
    """What changes in a task file: in the commit, and in the work tree."""

    change: PathChange
    tasks: tuple[str, ...]
    before: bytes
    after: bytes
    """What the work tree has, and what it will have: line ends may differ from those in the commit."""

    @property
    def group(self) -> Group:
        changed = Changed("M", self.change.path)
        body = "\n".join(f"- {task}" for task in self.tasks[:50])
        return Group(f"docs(tasks): tick {plural(len(self.tasks), 'task')}", body, (changed,))

    def write(self, project: Project) -> bool:
        """Tick the boxes in the work tree, unless the file was written to since; return whether they were ticked."""
        return _replace(self._path(project), self.before, self.after)

    def take_back(self, project: Project) -> None:
        _replace(self._path(project), self.after, self.before)

    def _path(self, project: Project) -> bytes:
        return os.path.join(os.fsencode(project.repository.root), self.change.path)


def _replace(path: bytes, before: bytes, after: bytes) -> bool:
    """Write a file that still has these bytes; return whether it had."""
    beside = path + b".guard-%s" % os.urandom(4).hex().encode()
    try:
        descriptor = os.open(path, _FILE_FLAGS)
        try:
            if os.read(descriptor, len(before) + 1) != before:
                return False
            mode = os.fstat(descriptor).st_mode & 0o777
        finally:
            close(descriptor)
        new = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(new, "wb") as file:
            file.write(after)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.rename(beside, path)
    except OSError:
        with suppress(OSError):
            os.unlink(beside)
        return False
    return True


def find_ticks(
    project: Project,
    own: Project,
    shadow: Shadow,
    taken: Taken,
    proven: ProvenTree,
    path: bytes,
    broken: Collection[bytes] = (),
) -> Ticks | None:
    """Find the boxes whose named files are all in these changes, and none of them broken; None if there are none.

    None too if the file is not as it would be committed, in the work tree or in the index: the user has plans for it.
    """
    here = _entry(own.call("ls-tree", "-z", "--full-tree", proven.tree, "--", os.fsdecode(path)))
    if here is None or path not in taken.kept or path in taken.trouble or _is_filtered(own, path):
        return None
    mode, oid = here
    is_new = any(change.path == path for change in proven.changed)
    staged = _entry(project.call("ls-files", "--stage", "-z", "--", os.fsdecode(path)))
    if mode not in _PLAIN or not (is_new or staged == here):
        return None
    if not is_as_kept(own, shadow, taken, PathChange("M", mode, oid, path)):
        return None
    committed = [
        spell(change.path)
        for change in proven.changed
        if change.letter != "D" and change.path != path and change.path not in broken
    ]
    blob, tasks = tick_boxes(own.call("cat-file", "blob", oid), committed)
    before = shadow.call("cat-file", "blob", taken.kept[path].oid)
    after, _ = tick_boxes(before, committed)
    if not tasks or _hash_object(own, path, after) != _hash_object(own, None, blob):
        return None
    new = own.line("hash-object", "-w", "--stdin", stdin=blob)
    return Ticks(PathChange("M", mode, new, path), tasks, before, after)


def _entry(listed: bytes) -> tuple[bytes, str] | None:
    """Mode and id of the one path in a listing of a tree (mode, kind, id) or of an index (mode, id, stage 0)."""
    lines = listed.split(b"\0")[:-1]
    if len(lines) != 1:
        return None
    mode, *about = lines[0].partition(b"\t")[0].split()
    oid = about[1] if about[0] == b"blob" else about[0]
    return mode, oid.decode()


def _is_filtered(project: Project, path: bytes) -> bool:
    """Tell whether git would run a program to convert it."""
    words = ("check-attr", "-z", "--stdin", "filter")
    return project.call(*words, stdin=path + b"\0").split(b"\0")[2] not in NO_FILTER


def _hash_object(project: Project, path: bytes | None, data: bytes) -> str:
    named = (f"--path={os.fsdecode(path)}",) if path is not None else ()
    return project.line("hash-object", *named, "--stdin", stdin=data)
