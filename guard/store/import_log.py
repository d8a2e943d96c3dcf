"""Take a whole log over into a folder that has none, all or nothing."""

import os
from collections.abc import Iterable
from contextlib import suppress

from guard.core.log.events import SegmentOpened
from guard.errors import Refused, StoreUnavailable
from guard.store.log import LIVE, Log
from guard.store.segments import sealed_name, segment_number
from guard.store.transfer import check_lines
from guard.system.private_files import Folder, close, write_all

UNFINISHED = "events.import"
"""Is there while the segments are put in their places: an import that was killed is made again from the beginning."""
_PART = ".import.{:06d}.tmp"
_BUFFER = 1 << 20


def import_lines(folder: Folder, lines: Iterable[bytes]) -> int:
    """Write the segments of the log. The caller has the lock."""
    _refuse_history(folder)
    try:
        return _import(folder, lines)
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write {folder.path}: {error.strerror}; nothing was imported",
            "free some space or check the disk, then try again",
        ) from error
    finally:
        for name in folder.names():
            if name.startswith(".import."):
                with suppress(OSError):
                    folder.remove(name)


def _refuse_history(folder: Folder) -> None:
    if folder.exists(UNFINISHED):
        _remove_segments(folder)
    if not Log(folder).is_empty():
        raise Refused(
            f"{folder.path} has a log already",
            "import into a workspace without history: name a new one with --workspace",
        )


def _remove_segments(folder: Folder) -> None:
    for name in folder.names():
        if name == LIVE or segment_number(name):
            folder.remove(name)
    folder.remove(UNFINISHED)


def _import(folder: Folder, lines: Iterable[bytes]) -> int:
    count, segments = 0, 0
    writer: _Writer | None = None
    try:
        for line, entry in check_lines(lines):
            if isinstance(entry.event, SegmentOpened):
                if writer is not None:
                    writer.close()
                segments += 1
                writer = _Writer(folder, _PART.format(segments))
            assert writer is not None
            writer.add(line)
            count += 1
    finally:
        if writer is not None:
            writer.close()
    if segments:
        _put_in_place(folder, segments)
    return count


class _Writer:
    def __init__(self, folder: Folder, name: str) -> None:
        folder.remove(name)
        self._descriptor = folder.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        self._waiting: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> None:
        self._waiting.append(line)
        self._size += len(line)
        if self._size > _BUFFER:
            self._flush()

    def _flush(self) -> None:
        write_all(self._descriptor, b"".join(b"%s\n" % line for line in self._waiting))
        self._waiting, self._size = [], 0

    def close(self) -> None:
        if self._descriptor < 0:
            return
        try:
            if self._waiting:
                self._flush()
            os.fsync(self._descriptor)
        finally:
            close(self._descriptor)
            self._descriptor = -1


def _put_in_place(folder: Folder, segments: int) -> None:
    # The live segment goes first: without those before it, every reader refuses the log instead of taking a part for the whole.
    folder.replace(UNFINISHED, b"", durable=True)
    folder.rename(_PART.format(segments), LIVE)
    for number in range(1, segments):
        folder.rename(_PART.format(number), sealed_name(number))
    folder.sync()
    folder.remove(UNFINISHED)
    folder.sync()
