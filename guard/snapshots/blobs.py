"""The bytes of many objects, read in batches that fit in memory."""

from collections.abc import Callable, Iterator, Sequence

_BATCH_BYTES = 32 * 1024**2
_MOST_BYTES = 1024**3

Call = Callable[..., bytes]
"""Runs git in one repository: its words, and `stdin`."""


def blobs(call: Call, oids: Sequence[str], most: int = _MOST_BYTES) -> Iterator[tuple[str, bytes]]:
    """These objects, as far as they are there and not too large."""
    sizes = _sizes(call, oids)
    batch: list[str] = []
    total = 0
    for oid in [oid for oid in oids if sizes.get(oid, most + 1) <= most]:
        if batch and total + sizes[oid] > _BATCH_BYTES:
            yield from _read(call, batch)
            batch, total = [], 0
        batch.append(oid)
        total += sizes[oid]
    yield from _read(call, batch)


def _sizes(call: Call, oids: Sequence[str]) -> dict[str, int]:
    asked = "\n".join(oids).encode()
    words = [line.split() for line in call("cat-file", "--batch-check", stdin=asked).splitlines()]
    return {word[0].decode(): int(word[2]) for word in words if len(word) == 3}


def _read(call: Call, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    answer = call("cat-file", "--batch", stdin="\n".join(oids).encode()) if oids else b""
    at = 0
    for oid in oids:
        start = answer.index(b"\n", at) + 1
        size = int(answer[at:start].split()[2])
        yield oid, answer[start : start + size]
        at = start + size + 1
