"""Remember what the last snapshot of a work tree found, so that the next one reads only files that may have changed.

A file is taken for unchanged if its device, inode, size, mode, time of change and time of its inode's change are what they
were, and if both times lie well before the look: a file that is written in the same tick of the clock as it is read looks the
same afterwards. (A file that a process goes on writing to through a memory map that was there before the look shows no new
time until the system has written it down; git itself cannot see that either.) The memory is never needed: without it, or if a
byte of it is wrong, everything is read again. It also notes which packs of the shadow repository were read back byte for byte.
"""

import hashlib
import os
import struct
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from guard.core.base.first_use import dataclass
from guard.errors import GuardError
from guard.snapshots.read_file import git_mode
from guard.system.private_files import Folder

_PACK_FOLDER = "objects/pack"
_PACK_NOTES = "packs"
PackStamps = Mapping[str, str]
"""Packs by name, each with what would tell that one of its files was replaced or written to."""


def pack_stamps(shadow: Path) -> dict[str, str]:
    folder, found = shadow / _PACK_FOLDER, {}
    for index in folder.glob("pack-*.idx"):
        with suppress(FileNotFoundError):
            found[index.stem] = f"{_stamp(index)} {_stamp(index.with_suffix('.pack'))}"
    return found


def _stamp(path: Path) -> str:
    status = os.lstat(path)
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def verified_packs(shadow: Path) -> dict[str, str]:
    with suppress(GuardError, OSError, ValueError):
        folder = Folder.open(shadow / FOLDER)
        if folder is not None:
            with folder:
                lines = (folder.read(_PACK_NOTES) or b"").decode("ascii").splitlines()
            return dict(line.split(" ", 1) for line in lines)
    return {}


def note_verified_packs(shadow: Path, found: PackStamps) -> None:
    """Note the packs for the next snapshot, which reads back once more what could not be noted."""
    lines = "".join(f"{name} {stamp}\n" for name, stamp in found.items())
    with suppress(GuardError, OSError), Folder.make(shadow / FOLDER) as folder:
        folder.replace(_PACK_NOTES, lines.encode(), locked=False)


def pack_file(shadow: Path, name: str) -> str:
    return os.fspath(shadow / _PACK_FOLDER / f"{name}.pack")


_MOST = 2**64 - 1
"""Times before 1970 do not fit, and so do not match: such a file is read every time."""
_RACY_NS = 2_000_000_000
_HEAD = "guard-memory-2"
_FORGOTTEN_SECONDS = 30 * 86400
FOLDER = "guard.memory"
_MOST_BYTES = 1024**3


Record = tuple[int, int, int, int, int, int, bytes]
"""Device, inode, both times, size, mode and blob of a file. An inode of 0 matches no file: a change might not show."""
Records = dict[bytes, Record]


class KeptFile(NamedTuple):
    """A file as it is in the snapshot."""

    mode: bytes
    oid: str
    size: int


def is_same_file(known: Record, status: os.stat_result) -> bool:
    dev, ino, mtime, ctime, size, mode, _oid = known
    return (
        0 != ino == status.st_ino
        and ctime == status.st_ctime_ns
        and mtime == status.st_mtime_ns
        and size == status.st_size
        and mode == status.st_mode
        and dev == status.st_dev
    )


def kept_file(known: Record) -> KeptFile:
    *_stamp, size, mode, oid = known
    return KeptFile(git_mode(mode), oid.hex(), size)


def stat_record(
    status: os.stat_result, size: int, oid: str, steady: bool, looked_ns: int
) -> Record:
    """What to remember of a file that was looked at in this moment."""
    settled = max(status.st_mtime_ns, status.st_ctime_ns) < looked_ns - _RACY_NS
    return (
        status.st_dev,
        status.st_ino if steady and settled else 0,
        status.st_mtime_ns & _MOST,
        status.st_ctime_ns & _MOST,
        size,
        status.st_mode,
        bytes.fromhex(oid),
    )


class CachedFiles(Mapping[bytes, KeptFile]):
    """Records as what they say; read one by one, because there may be very many."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def __getitem__(self, path: bytes) -> KeptFile:
        return kept_file(self._records[path])

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def written_since(self, moment_ns: int) -> Iterator[bytes]:
        return (path for path, known in self._records.items() if known[3] >= moment_ns)

    def __contains__(self, path: object) -> bool:
        return path in self._records


@dataclass
class StatCache:
    """One snapshot by its commit, and its files: of the work tree, of nested git directories, of submodules."""

    commit: str = ""
    packs: frozenset[str] = frozenset()
    """Where its objects are."""
    table: str = ""
    """The hash of the table of files as it was found; that on the disk may be another's by now."""
    worktree: Records = field(default_factory=dict)
    nested: Records = field(default_factory=dict)
    modules: Records = field(default_factory=dict)

    @property
    def tables(self) -> tuple[Records, Records, Records]:
        return self.worktree, self.nested, self.modules


def recall(shadow: Path, root: Path, oid_size: int) -> StatCache:
    """What is remembered of the work tree at this path; nothing if it cannot be trusted."""
    with suppress(GuardError, OSError):
        folder = Folder.open(shadow / FOLDER)
        if folder is not None:
            with folder:
                commit, files = folder.read(_name(root)), folder.read(f"{_name(root)}.files")
            return _decode(commit or b"", files or b"", oid_size)
    return StatCache()


def remember(shadow: Path, root: Path, memory: StatCache, before: StatCache) -> None:
    """Keep it for the next snapshot. A memory that cannot be written is no trouble: a later one checks what it finds."""
    table = before.table if before.tables == memory.tables else ""
    with suppress(GuardError, OSError), Folder.make(shadow / FOLDER) as folder:
        if not table:
            files = _encode(memory)
            table = hashlib.sha256(files).hexdigest()
            folder.replace(f"{_name(root)}.files", files, locked=False)
        pointer = _pointer(memory.commit, table, memory.packs)
        folder.replace(_name(root), pointer, locked=False)
        _forget(folder)


class RulesMark(NamedTuple):
    """The ignore rules at the newest baseline of a work tree."""

    commit: str
    """The baseline's snapshot, which has the rules that lie in the project."""
    outside: str
    """A digest of those that lie outside of it."""


def note_rules(shadow: Path, root: Path, mark: RulesMark) -> None:
    # A mark that cannot be written leaves the one before it, or none: then the rules of the moment decide.
    with suppress(GuardError, OSError), Folder.make(shadow / FOLDER) as folder:
        folder.replace(f"{_name(root)}.rules", "\n".join(mark).encode(), locked=False)


def recall_rules(shadow: Path, root: Path) -> RulesMark | None:
    with suppress(GuardError, OSError, ValueError):
        folder = Folder.open(shadow / FOLDER)
        if folder is not None:
            with folder:
                noted = folder.read(f"{_name(root)}.rules")
            commit, outside = (noted or b"").decode("ascii").split("\n")
            return RulesMark(commit, outside)
    return None


def _forget(folder: Folder) -> None:
    """Delete what was not needed for long: work trees come and go."""
    long_ago = time.time() - _FORGOTTEN_SECONDS
    for name in folder.names():
        if os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False).st_mtime < long_ago:
            folder.remove(name)


def _name(root: Path) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:32]


def _pointer(commit: str, table: str, packs: Set[str]) -> bytes:
    """The file that names the table by its hash, and ends with its own."""
    content = "\n".join((_HEAD, commit, table, *sorted(packs))).encode()
    return content + b"\n" + hashlib.sha256(content).hexdigest().encode()


def _layout(oid_size: int) -> struct.Struct:
    return struct.Struct(f"<QQQQQI{oid_size}s")


def _encode(memory: StatCache) -> bytes:
    records = [record for table in memory.tables for record in table.values()]
    layout = _layout(len(records[0][-1]) if records else 20)
    packed = b"".join([layout.pack(*record) for record in records])
    counts = (b"%d" % len(table) for table in memory.tables)
    paths = (path for table in memory.tables for path in table)
    return b"\0".join((*counts, *paths, packed))


def _decode(pointer: bytes, files: bytes, oid_size: int) -> StatCache:
    try:
        head, commit, table, *packs, _hash = pointer.decode().split("\n")
    except ValueError:
        return StatCache()
    cache = StatCache(commit, frozenset(packs), table)
    if head != _HEAD or pointer != _pointer(commit, table, cache.packs):
        return StatCache()
    if len(files) > _MOST_BYTES or hashlib.sha256(files).hexdigest() != table:
        return StatCache()
    *counts, rest = files.split(b"\0", len(cache.tables))
    *paths, packed = rest.split(b"\0", sum(map(int, counts)))
    layout = _layout(oid_size)
    if len(packed) != layout.size * len(paths):
        return StatCache()
    records: Iterator[Any] = layout.iter_unpack(packed)
    named = iter(paths)
    for known, count in zip(cache.tables, counts, strict=True):
        known.update(zip(islice(named, int(count)), records, strict=False))
    return cache
