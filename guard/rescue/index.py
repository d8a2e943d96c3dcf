"""What only the index knows: versions that were staged, and the sides of a conflict.

It is read as the shadow repository's index, with objects that the project lends, so that the project's own configuration,
broken or hostile, is not in play.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from guard.errors import StoreUnavailable
from guard.git.locate import Repository
from guard.rescue.shadow import Shadow
from guard.rescue.stream import quoted

GITLINK = b"160000"
_BATCH_BYTES = 32 * 1024**2
_MOST_BYTES = 1024**3


class Staged(NamedTuple):
    """One entry of the index."""

    mode: bytes
    oid: str
    stage: int
    path: bytes


@dataclass(frozen=True)
class Index:
    """The index of a repository, seen from the shadow."""

    shadow: Shadow
    repository: Repository

    def entries(self) -> list[Staged]:
        """Every entry, all stages; StoreUnavailable if it cannot be read."""
        path = self.repository.git_dir / "index"
        if not path.is_file():
            return []
        listed = self._call("ls-files", "--stage", "-z", GIT_INDEX_FILE=os.fspath(path))
        return list(_staged(listed))

    def only_staged(self, entries: Sequence[Staged], head: str | None) -> list[Staged]:
        """Those that the last commit does not have; all of them if it cannot be read."""
        committed: set[tuple[bytes, ...]] = set()
        with suppress(StoreUnavailable):
            listed = self._call("ls-tree", "-r", "-z", "--full-tree", head) if head else b""
            committed = {tuple(line.split(b"\t", 1)) for line in listed.split(b"\0")}
        return [
            entry
            for entry in entries
            if entry.mode != GITLINK
            and (entry.stage or (_as_in_tree(entry), entry.path) not in committed)
        ]

    def blobs(self, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of these objects, as far as they are there and not too large."""
        sizes = self._sizes(oids)
        batch: list[str] = []
        total = 0
        for oid in [oid for oid in oids if sizes.get(oid, _MOST_BYTES + 1) <= _MOST_BYTES]:
            if batch and total + sizes[oid] > _BATCH_BYTES:
                yield from self._read(batch)
                batch, total = [], 0
            batch.append(oid)
            total += sizes[oid]
        yield from self._read(batch)

    def _sizes(self, oids: Sequence[str]) -> dict[str, int]:
        asked = "\n".join(oids).encode()
        words = [line.split() for line in self._cat("--batch-check", asked).splitlines()]
        return {word[0].decode(): int(word[2]) for word in words if len(word) == 3}

    def _read(self, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        answer, at = self._cat("--batch", "\n".join(oids).encode()) if oids else b"", 0
        for oid in oids:
            start = answer.index(b"\n", at) + 1
            size = int(answer[at:start].split()[2])
            yield oid, answer[start : start + size]
            at = start + size + 1

    def _cat(self, how: str, asked: bytes) -> bytes:
        return self.shadow.call("cat-file", how, stdin=asked, extra=self._lent())

    def _call(self, *words: str, **extra: str) -> bytes:
        return self.shadow.call(*words, extra={**self._lent(), **extra})

    def _lent(self) -> dict[str, str]:
        objects = os.fsencode(self.repository.common_dir / "objects")
        return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(objects).decode()}


def _staged(listed: bytes) -> Iterator[Staged]:
    for line in listed.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, oid, stage = about.split()
        yield Staged(mode, oid.decode(), int(stage), path)


def _as_in_tree(entry: Staged) -> bytes:
    return b"%s blob %s" % (entry.mode, entry.oid.encode())
