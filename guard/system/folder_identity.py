"""Tell a folder from a later one at the same path: by its device, its inode and the time of its birth."""

import os
import sys
from pathlib import Path

_AT_FDCWD, _STATX_BTIME = -100, 0x800
_BUFFER_BYTES, _MASK_AT, _BIRTH_AT = 256, 0, 80
"""Of Linux's `struct statx`: its size, and where it has the mask and the time of birth."""


def folder_identity(path: Path) -> str | None:
    """Return the identity of the folder at this path, opaque; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return f"{status.st_dev}:{status.st_ino}:{_birth(path, status) or ''}"


def is_same_folder(known: str, found: str | None) -> bool:
    """Compare two identities: an inode number is used again, so the time of birth decides where both have one."""
    if found is None:
        return False
    (device, inode, birth), (other_device, other_inode, other_birth) = (
        known.split(":"),
        found.split(":"),
    )
    if birth and other_birth:
        # A device may have another number after a restart.
        return (inode, birth) == (other_inode, other_birth)
    return (device, inode) == (other_device, other_inode)


def _birth(path: Path, status: os.stat_result) -> str | None:
    # Python tells the time of birth only on some systems; Linux has a call for it.
    known = getattr(status, "st_birthtime", None)
    if known is not None:
        return repr(known)
    if sys.platform != "linux":
        return None
    import ctypes

    buffer = ctypes.create_string_buffer(_BUFFER_BYTES)
    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
        failed = statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, buffer)
    except (AttributeError, OSError):
        return None
    mask = int.from_bytes(buffer.raw[_MASK_AT : _MASK_AT + 4], sys.byteorder)
    if failed or not mask & _STATX_BTIME:
        return None
    seconds = int.from_bytes(buffer.raw[_BIRTH_AT : _BIRTH_AT + 8], sys.byteorder, signed=True)
    nanoseconds = int.from_bytes(buffer.raw[_BIRTH_AT + 8 : _BIRTH_AT + 12], sys.byteorder)
    return f"{seconds}.{nanoseconds:09d}"
