"""Read git's index without git: what git saw of each file when it wrote it, to the nanosecond.

Git itself compares whole seconds, and reads a file again that is as young as its index. To the nanosecond, and with the time
of the last change, which no program can set, a look at each file says whether it is still the one that git wrote.
"""

import os
import stat
import struct
from typing import NamedTuple

_HEAD = struct.Struct(">4sII")
_STAT = struct.Struct(">10I")
_VERSIONS = (2, 3)
_LONG_NAME = 0xFFF
_EXTENDED, _STAGE = 0x4000, 0x3000
_LOW = 0xFFFFFFFF
_SECOND = 10**9


WrittenStamp = tuple[int, int, int, int]
"""What tells a file from a changed or another one: times of change and of writing, inode, size."""


class WrittenEntry(NamedTuple):
    stamp: WrittenStamp
    mode: int
    oid: bytes


def stamp_of(status: os.stat_result) -> WrittenStamp:
    # Git keeps 32 bits of the inode and of the size.
    inode, size = status.st_ino & _LOW, status.st_size & _LOW
    return status.st_ctime_ns, status.st_mtime_ns, inode, size


def kind_of(mode: int) -> int:
    """Return the file type that an entry of this mode has in the work tree."""
    if stat.S_ISLNK(mode):
        return stat.S_IFLNK
    return stat.S_IFREG if stat.S_ISREG(mode) else stat.S_IFDIR


def parse_index(data: bytes, id_bytes: int) -> dict[bytes, WrittenEntry] | None:
    """Return the entries of an index by path; None if it is damaged, or of a kind that guard does not write."""
    try:
        magic, version, count = _HEAD.unpack_from(data)
        if magic != b"DIRC" or version not in _VERSIONS:
            return None
        return _parse_entries(data, count, id_bytes)
    except (struct.error, ValueError, IndexError):
        return None


def _parse_entries(data: bytes, count: int, id_bytes: int) -> dict[bytes, WrittenEntry]:
    entries: dict[bytes, WrittenEntry] = {}
    at, fixed = _HEAD.size, _STAT.size + id_bytes + 2
    unpack = _STAT.unpack_from
    for _ in range(count):
        c_s, c_ns, m_s, m_ns, _device, inode, mode, _user, _group, size = unpack(data, at)
        oid = data[at + _STAT.size : at + fixed - 2]
        flags = data[at + fixed - 2] << 8 | data[at + fixed - 1]
        if flags & _STAGE:
            raise ValueError("an unmerged entry")
        begin = at + fixed + (2 if flags & _EXTENDED else 0)
        length = flags & _LONG_NAME
        end = data.index(b"\0", begin) if length == _LONG_NAME else begin + length
        stamp = (c_s * _SECOND + c_ns, m_s * _SECOND + m_ns, inode, size)
        entries[data[begin:end]] = WrittenEntry(stamp, mode, oid)
        # One to eight NULs bring the entry to a multiple of eight.
        at = at + ((end - at + 8) & ~7)
    return entries
