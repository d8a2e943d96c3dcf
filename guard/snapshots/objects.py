"""Read the objects of a repository: one by one, each checked against its own id, or in batches that fit in memory."""

import hashlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

from guard.git.run import open_git_dialogue
from guard.snapshots.shadow import OPTIONS
from guard.system.dialogue import Dialogue, DialogueEnded

MISSING = "its object is missing"
DAMAGED = "its object is damaged"
TREE = b"40000"
_ALGORITHMS = {40: "sha1", 64: "sha256"}
_IN_MEMORY = 8 * 1024**2
"""Larger objects git hands out piece by piece."""
_LONGEST_MANIFEST = 256 * 1024**2


class ObjectUnreadable(Exception):
    """An object that is not there, or not what it should be; the message says which."""


class TreeEntry(NamedTuple):
    """One name in a tree."""

    mode: bytes
    name: bytes
    oid: str


class Objects:
    """Asks one git for objects; a damaged object ends it, and the next question starts another."""

    def __init__(self, shadow: Path, environ: Mapping[str, str], time_limit: float) -> None:
        self._shadow, self._environ, self._time_limit = shadow, environ, time_limit
        self._stack = ExitStack()
        self._git: Dialogue | None = None

    def __enter__(self) -> "Objects":
        return self

    def __exit__(self, *_: object) -> None:
        self._hang_up()

    def pieces(
        self, name: str, kind: str = "blob", most: int | None = None
    ) -> Generator[bytes, None, None]:
        """Yield the bytes of an object; only after the last piece is it known that they were right."""
        oid, size = self._request(name, kind, most)
        digest = blob_digest(oid, size, kind)
        finished = False
        try:
            assert self._git is not None
            for piece in self._git.pieces(size):
                digest.update(piece)
                yield piece
            self._git.line()
            finished = True
        except DialogueEnded:
            raise ObjectUnreadable(DAMAGED) from None
        finally:
            if not finished:
                self._hang_up()
        if digest.hexdigest() != oid:
            raise ObjectUnreadable(DAMAGED)

    def _request(self, name: str, kind: str, most: int | None) -> tuple[str, int]:
        try:
            git = self._git = self._git or self._start()
            git.ask(name.encode() + b"\n")
            header = git.line().split(b" ")
        except DialogueEnded:
            self._hang_up()
            raise ObjectUnreadable(DAMAGED) from None
        if len(header) != 3:
            raise ObjectUnreadable(MISSING)
        oid, size = header[0].decode(), int(header[2])
        wrong = DAMAGED if header[1] != kind.encode() else None
        too_large = f"larger than {most} bytes" if most is not None and size > most else None
        if wrong or too_large:
            self._hang_up()
            raise ObjectUnreadable(wrong or too_large)
        return oid, size

    def _start(self) -> Dialogue:
        return self._stack.enter_context(
            open_git_dialogue(
                *(*OPTIONS, "-c", f"core.bigFileThreshold={_IN_MEMORY}", "cat-file", "--batch"),
                environ=self._environ,
                git_dir=self._shadow,
                time_limit=self._time_limit,
            )
        )

    def _hang_up(self) -> None:
        self._git = None
        self._stack.close()

    def read(self, name: str, kind: str = "blob", most: int | None = None) -> bytes:
        with closing(self.pieces(name, kind, most)) as pieces:
            return b"".join(pieces)

    def manifest(self, commit: str) -> bytes:
        return self.read(f"{commit}:manifest.json", most=_LONGEST_MANIFEST)

    def tree(self, name: str) -> list[TreeEntry]:
        try:
            return list(_entries(self.read(name, "tree"), len(name.partition("^")[0]) // 2))
        except ValueError:
            raise ObjectUnreadable(DAMAGED) from None


def _entries(data: bytes, id_bytes: int) -> Iterator[TreeEntry]:
    at = 0
    while at < len(data):
        space, end = data.index(b" ", at), data.index(b"\0", at)
        oid = data[end + 1 : end + 1 + id_bytes].hex()
        yield TreeEntry(data[at:space], data[space + 1 : end], oid)
        at = end + 1 + id_bytes


def blob_digest(oid: str, size: int, kind: str = "blob") -> "hashlib._Hash":
    """Begin the hash that names an object of this size, with the algorithm of this id."""
    head = b"%s %d\0" % (kind.encode(), size)
    return hashlib.new(_ALGORITHMS[len(oid)], head, usedforsecurity=False)


_BATCH_BYTES = 32 * 1024**2
_MOST_BYTES = 1024**3
Call = Callable[..., bytes]
"""Runs git in one repository: its words, and `stdin`."""


def read_blobs(
    call: Call, oids: Sequence[str], most: int = _MOST_BYTES
) -> Iterator[tuple[str, bytes]]:
    """Read these objects, as far as they are there and not too large, in batches that fit in memory."""
    sizes = _sizes(call, oids)
    batch: list[str] = []
    total = 0
    for oid in [oid for oid in oids if sizes.get(oid, most + 1) <= most]:
        if batch and total + sizes[oid] > _BATCH_BYTES:
            yield from _read_batch(call, batch)
            batch, total = [], 0
        batch.append(oid)
        total += sizes[oid]
    yield from _read_batch(call, batch)


def _sizes(call: Call, oids: Sequence[str]) -> dict[str, int]:
    stdin = "\n".join(oids).encode()
    words = [line.split() for line in call("cat-file", "--batch-check", stdin=stdin).splitlines()]
    return {word[0].decode(): int(word[2]) for word in words if len(word) == 3}


def _read_batch(call: Call, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    answer = call("cat-file", "--batch", stdin="\n".join(oids).encode()) if oids else b""
    at = 0
    for oid in oids:
        start = answer.index(b"\n", at) + 1
        size = int(answer[at:start].split()[2])
        yield oid, answer[start : start + size]
        at = start + size + 1
