"""Read the texts of changed files before and after, from git and from the work tree, in bounded memory."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from guard.core.base.paths import spell
from guard.core.claims.substance import TextChange
from guard.git.changed_paths import BlobPair
from guard.git.reader import RepositoryReader
from guard.system.foreign_files import read_beginning

MOST_BYTES = 512 * 1024
"""A larger file is not read."""
_MOST_TOTAL = 16 * 1024 * 1024


class _UnreadableText(Exception):
    """The file is no text, or too large."""


class _ListedBlob(NamedTuple):
    name: str
    oid: bytes
    size: int


def read_text_changes(
    git: RepositoryReader,
    head: str | None,
    committed: Mapping[bytes, BlobPair],
    left: Collection[bytes],
) -> Iterator[TextChange]:
    """Yield the text of each changed file; what is in no commit lies in the work tree, and was that of `head` before.

    Files that are no text, or too large, are left out.
    """
    pairs = {path: BlobPair(f"{head}:{os.fsdecode(path)}" if head else None, None) for path in left}
    pairs |= committed
    blobs = _read_blobs(git, {name for pair in pairs.values() for name in pair if name})
    for path, pair in pairs.items():
        with suppress(_UnreadableText):
            before = _text_of(blobs.get(pair.before or ""))
            disk = _read_file(git, path) if path in left else blobs.get(pair.after or "")
            after = _text_of(disk)
            if before != after:
                yield TextChange(spell(path), before, after)


def _read_file(git: RepositoryReader, path: bytes) -> bytes | None:
    file = git.repository.root / os.fsdecode(path)
    if not os.path.lexists(file):
        return None
    data = read_beginning(file, MOST_BYTES + 1)
    # A NUL byte makes it unreadable.
    return b"\0" if data is None or len(data) > MOST_BYTES else data


def _text_of(data: bytes | None) -> str | None:
    if data is not None and b"\0" in data:
        raise _UnreadableText
    return None if data is None else data.decode(errors="replace")


def _read_blobs(git: RepositoryReader, names: Collection[str]) -> dict[str, bytes]:
    """Return the bytes of each blob by its name; one that is too large is a NUL byte, and what is no blob is left out."""
    wanted = sorted(name for name in names if "\n" not in name)
    stdin = b"".join(os.fsencode(f"{name}\n") for name in wanted)
    checked = git.ask("cat-file", "--batch-check", stdin=stdin).splitlines() if wanted else []
    found, chosen, left = dict[str, bytes](), list[_ListedBlob](), _MOST_TOTAL
    for name, line in zip(wanted, checked, strict=True):
        oid, _, rest = line.partition(b" blob ")
        if rest:
            found[name] = b"\0"
            if int(rest) <= min(MOST_BYTES, left):
                left -= int(rest)
                chosen.append(_ListedBlob(name, oid, int(rest)))
    stdin = b"".join(b"%s\n" % blob.oid for blob in chosen)
    answer, at = git.ask("cat-file", "--batch", stdin=stdin) if chosen else b"", 0
    for blob in chosen:
        at = answer.index(b"\n", at) + 1
        found[blob.name] = answer[at : at + blob.size]
        at += blob.size + 1
    return found
