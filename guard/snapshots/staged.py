"""What only the index and the stash know: versions that were staged, the sides of a conflict, and what was put aside.

They are read as the shadow repository's own, with objects that the project lends, so that the project's configuration,
broken or hostile, is not in play.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from guard.errors import StoreUnavailable
from guard.git.locate import Repository
from guard.snapshots.blobs import blobs
from guard.snapshots.fast_import import quoted
from guard.snapshots.shadow import Shadow

GITLINK = b"160000"
_MOST_FOLDERS = 200


class IndexEntry(NamedTuple):
    """One entry of the index, or of a tree (stage 0)."""

    mode: bytes
    oid: str
    stage: int
    path: bytes


@dataclass(frozen=True)
class ProjectIndex:
    """The index of a repository, seen from the shadow."""

    shadow: Shadow
    repository: Repository

    def tracked(self, folders: Sequence[bytes]) -> list[IndexEntry]:
        """What the index has in these folders."""
        if not folders or not os.path.isfile(self._path):
            return []
        named = folders if len(folders) <= _MOST_FOLDERS else ()
        words = ("ls-files", "--stage", "-z", "--", *map(os.fsdecode, named))
        return list(_staged(self._call(*words, GIT_INDEX_FILE=os.fspath(self._path))))

    def only_staged(self, head: str | None) -> list[IndexEntry]:
        """What the last commit does not have; all of it if that cannot be read."""
        if not os.path.isfile(self._path):
            return []
        own = {"GIT_INDEX_FILE": os.fspath(self._path)}
        with suppress(StoreUnavailable):
            words = ("diff-index", "--cached", "--no-renames", "-z", head or self.shadow.empty_tree)
            listed = self._call(*words, **own)
            found = list(_changed(listed))
            if b" U\0" in listed:
                found += _staged(self._call("ls-files", "--unmerged", "--stage", "-z", **own))
            return [one for one in found if one.mode != GITLINK]
        every = _staged(self._call("ls-files", "--stage", "-z", **own))
        return [one for one in every if one.mode != GITLINK]

    def changed_between(self, before: str, after: str) -> list[IndexEntry]:
        """What one commit has that another has not."""
        words = ("diff-tree", "-r", "-z", "--no-renames", before, after)
        return [one for one in _changed(self._call(*words)) if one.mode != GITLINK]

    def parents(self, commit: str) -> list[str]:
        """The parents of a commit."""
        return self._call("rev-list", "--parents", "-n", "1", commit).decode().split()[1:]

    def subject(self, commit: str) -> bytes:
        """The first line of its message."""
        return self._call("log", "-1", "--format=%s", commit, "--")

    def in_commit(self, commit: str) -> list[IndexEntry]:
        """All that a commit has."""
        listed = self._call("ls-tree", "-r", "-z", "--full-tree", commit)
        lines = (line.partition(b"\t") for line in listed.split(b"\0")[:-1])
        fields = ((*about.split(), path) for about, _, path in lines)
        return [IndexEntry(mode, oid.decode(), 0, path) for mode, _kind, oid, path in fields]

    def blobs(self, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of these objects, as far as they are there and not too large."""
        return blobs(partial(self.shadow.call, extra=self._lent()), oids)

    @property
    def _path(self) -> Path:
        return self.repository.git_dir / "index"

    def _call(self, *words: str, **extra: str) -> bytes:
        return self.shadow.call(*words, extra={**self._lent(), **extra})

    def _lent(self) -> dict[str, str]:
        objects = os.fsencode(self.repository.common_dir / "objects")
        return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(objects).decode()}


def _staged(listed: bytes) -> Iterator[IndexEntry]:
    for line in listed.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, oid, stage = about.split()
        yield IndexEntry(mode, oid.decode(), int(stage), path)


def _changed(listed: bytes) -> Iterator[IndexEntry]:
    fields = listed.split(b"\0")[:-1]
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        _old_mode, mode, _old, oid, letter = about.split()
        if letter not in (b"D", b"U"):
            yield IndexEntry(mode, oid.decode(), 0, path)
