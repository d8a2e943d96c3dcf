"""The boxes of a task file that a rescue may tick, committed with the work that they are about."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from guard.core.changed import Changed
from guard.core.grouping import Group
from guard.core.paths import spelled
from guard.core.text import plural
from guard.core.ticking import ticked
from guard.files import close
from guard.rescue.commits import Change, is_as_kept
from guard.rescue.project import Project
from guard.rescue.shadow import Shadow
from guard.rescue.snapshots import Taken

_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PLAIN = (b"100644", b"100755")


@dataclass(frozen=True)
class Ticks:
    """What changes in a task file: in the commit, and in the work tree."""

    change: Change
    tasks: tuple[str, ...]
    before: bytes
    after: bytes
    """What the work tree has, and what it will have: line ends may differ from those in the commit."""

    @property
    def group(self) -> Group:
        """The commit for it."""
        changed = Changed("M", self.change.path)
        body = "\n".join(f"- {task}" for task in self.tasks[:50])
        return Group(f"docs(tasks): tick {plural(len(self.tasks), 'task')}", body, (changed,))

    def write(self, project: Project) -> bool:
        """Put it into the work tree, if nobody wrote there since."""
        path = os.path.join(os.fsencode(project.repository.root), self.change.path)
        beside = path + b".guard-%s" % os.urandom(4).hex().encode()
        try:
            descriptor = os.open(path, _FILE_FLAGS)
            try:
                if os.read(descriptor, len(self.before) + 1) != self.before:
                    return False
                mode = os.fstat(descriptor).st_mode & 0o777
            finally:
                close(descriptor)
            new = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with open(new, "wb") as file:
                file.write(self.after)
                file.flush()
                os.fsync(file.fileno())
            os.rename(beside, path)
        except OSError:
            with suppress(OSError):
                os.unlink(beside)
            return False
        return True


def ticks(
    project: Project,
    shadow: Shadow,
    taken: Taken,
    tree: str,
    path: bytes,
    changed: Sequence[Change],
) -> Ticks | None:
    """The boxes whose named files are all in these changes; None if there are none, or if the file is not as committed."""
    listed = project.call("ls-tree", "-z", "--full-tree", tree, "--", os.fsdecode(path))
    about, _, found = listed.rstrip(b"\0").partition(b"\t")
    if found != path or path not in taken.kept or path in taken.trouble:
        return None
    mode, _kind, oid = about.split()
    now = Change("M", mode, oid.decode(), path)
    if mode not in _PLAIN or not is_as_kept(project, shadow, taken, now):
        return None
    committed = [spelled(one.path) for one in changed if one.letter != "D" and one.path != path]
    blob, tasks = ticked(project.call("cat-file", "blob", oid.decode()), committed)
    before = shadow.call("cat-file", "blob", taken.kept[path].oid)
    after, _ = ticked(before, committed)
    if not tasks:
        return None
    new = project.line("hash-object", "-w", "--stdin", stdin=blob)
    return Ticks(Change("M", mode, new, path), tasks, before, after)
