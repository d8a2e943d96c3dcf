"""Remove git's locks that a killed rescue left in the project, only where they are provably guard's own.

Git locks a ref by a file that stays if git is killed, and that blocks every git from then on. So before git is asked to move a
branch, a note says which locks it will make and what they will hold. If the guard that wrote the note is gone, and a lock was
made in its time, holds what it should hold and is open in no process, then no other program can have made it.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from guard.errors import GuardError
from guard.system.private_files import Folder, close

_FOLDER = "guard.locks"
_WINDOW_NS = 60_000_000_000
"""How long after its note git may make a lock: on a busy machine it takes seconds until git runs."""
_SETTLED_NS = 1_000_000_000
_MOST_BYTES = 4096


class _Note(NamedTuple):
    began_ns: int
    oid: str
    locks: tuple[str, ...]


@contextmanager
def note_locks(shadow: Path, locks: Sequence[Path], oid: str) -> Iterator[None]:
    """Note the locks while git makes them; a note that cannot be written does not stop the rescue."""
    note = _Note(time.time_ns(), oid, tuple(map(os.fspath, locks)))
    descriptor, path = -1, shadow / _FOLDER / f"{os.urandom(8).hex()}.json"
    with suppress(OSError, GuardError):
        Folder.make(shadow / _FOLDER).close()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, json.dumps(note).encode())
        os.fsync(descriptor)
    try:
        yield
    finally:
        if descriptor >= 0:
            with suppress(OSError):
                os.unlink(path)
            close(descriptor)


def unfinished_commits(shadow: Path) -> set[str]:
    found = set()
    for path in (shadow / _FOLDER).glob("*.json"):
        with suppress(OSError):
            note = _read(path.read_bytes()[:_MOST_BYTES])
            found |= {note.oid} if note else set()
    return found


def sweep_locks(shadow: Path) -> list[str]:
    try:
        notes = sorted(path for path in (shadow / _FOLDER).iterdir() if path.suffix == ".json")
    except OSError:
        return []
    gone: list[str] = []
    for path in notes:
        with suppress(OSError):
            gone += _sweep_note(path)
    return gone


def _sweep_note(path: Path) -> list[str]:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        note = _read(os.pread(descriptor, _MOST_BYTES, 0))
        gone = [lock for lock in note.locks if _is_ours(lock, note)] if note else []
        for lock in gone:
            os.unlink(lock)
        os.unlink(path)
        return gone
    finally:
        close(descriptor)


def _read(data: bytes) -> _Note | None:
    """Parse a note. One that was cut short is None: its guard was killed before git made a lock."""
    with suppress(ValueError, TypeError):
        began, oid, locks = json.loads(data)
        return _Note(int(began), str(oid), tuple(map(str, locks)))
    return None


def _is_ours(lock: str, note: _Note) -> bool:
    try:
        status = os.lstat(lock)
    except OSError:
        return False
    age = time.time_ns() - status.st_mtime_ns
    if 0 <= age < _SETTLED_NS:
        # A git that outlived its guard needs no more than a moment.
        time.sleep((_SETTLED_NS - age) / 1e9)
    in_time = 0 <= status.st_mtime_ns - note.began_ns + _SETTLED_NS <= _WINDOW_NS
    return in_time and stat.S_ISREG(status.st_mode) and _holds(lock, status, note.oid)


def _holds(lock: str, status: os.stat_result, oid: str) -> bool:
    """Tell whether the lock is still the same file, holds nothing but guard's commit, and is open in no process."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        now = os.fstat(descriptor)
        data = os.pread(descriptor, _MOST_BYTES, 0)
    finally:
        close(descriptor)
    same = (now.st_ino, now.st_mtime_ns) == (status.st_ino, status.st_mtime_ns)
    known = data in (b"", oid.encode() + b"\n")
    return same and known and not _is_open(lock)


def _is_open(path: str) -> bool:
    """Tell whether a process of this user has it open, where the system can tell."""
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):
            for entry in folder.iterdir():
                with suppress(OSError):
                    if os.readlink(entry) == path:
                        return True
    return False
