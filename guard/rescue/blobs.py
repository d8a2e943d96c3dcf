"""The bytes of many objects, read in batches that fit in memory."""

from collections.abc import Iterator, Mapping, Sequence

from guard.rescue.shadow import Shadow

_BATCH_BYTES = 32 * 1024**2
_MOST_BYTES = 1024**3


def blobs(
    shadow: Shadow, oids: Sequence[str], extra: Mapping[str, str] | None = None
) -> Iterator[tuple[str, bytes]]:
    """These objects, as far as they are there and not too large."""
    sizes = _sizes(shadow, oids, extra)
    batch: list[str] = []
    total = 0
    for oid in [oid for oid in oids if sizes.get(oid, _MOST_BYTES + 1) <= _MOST_BYTES]:
        if batch and total + sizes[oid] > _BATCH_BYTES:
            yield from _read(shadow, batch, extra)
            batch, total = [], 0
        batch.append(oid)
        total += sizes[oid]
    yield from _read(shadow, batch, extra)


def _sizes(shadow: Shadow, oids: Sequence[str], extra: Mapping[str, str] | None) -> dict[str, int]:
    asked = "\n".join(oids).encode()
    answers = shadow.call("cat-file", "--batch-check", stdin=asked, extra=extra).splitlines()
    words = [line.split() for line in answers]
    return {word[0].decode(): int(word[2]) for word in words if len(word) == 3}


def _read(
    shadow: Shadow, oids: Sequence[str], extra: Mapping[str, str] | None
) -> Iterator[tuple[str, bytes]]:
    asked = "\n".join(oids).encode()
    answer = shadow.call("cat-file", "--batch", stdin=asked, extra=extra) if oids else b""
    at = 0
    for oid in oids:
        start = answer.index(b"\n", at) + 1
        size = int(answer[at:start].split()[2])
        yield oid, answer[start : start + size]
        at = start + size + 1
