"""Compare the files of a workspace with what they were before an agent ran.

A record of the log never changes, and no state file becomes a link, a pipe or a folder. Guard may never read such a file or
record while it judges an iteration, so it looks at all of them before it gives a verdict.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from guard.core.base.first_use import dataclass
from guard.core.log.record import START, Position
from guard.core.log.view import has_seal
from guard.errors import StateProblem
from guard.store.log import Log
from guard.store.segments import BrokenLog, segment_number
from guard.system.private_files import Folder

_NOT_STATE = ("shadow.git", "output.d", "rollbacks.d")
_SUFFIXES = (".json", ".jsonl", ".lock", ".queue")


class FileStamp(NamedTuple):
    """What tells whether a file was changed or replaced."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int
    """No program can set this one."""


@dataclass(frozen=True)
class Survey:
    """The state files of a workspace by their paths, and where the live segment of its log begins."""

    files: Mapping[str, FileStamp]
    live: Position


def survey(folder: Folder) -> Survey:
    """Look at every state file; raise if one is not a regular file."""
    live = Log(folder).live_start()  # Read first: a segment that is sealed meanwhile is read again.
    return Survey(dict(_walk(folder, "")), live)


def refuse_changed_log(folder: Folder, before: Survey, known: Position) -> None:
    """Raise `BrokenLog` if a record of the log was changed since; `known` is one that must be in it.

    Read are the segment that was live, what came after it, and sealed segments that were written to.
    """
    log, start = Log(folder), before.live
    for path, stamp in before.files.items():
        number = segment_number(path)
        if number is None or number >= start.segment:
            continue
        if not folder.exists(path):
            raise BrokenLog(path, 0, 1, "the file is missing")
        if _stamp_of(_status(folder, path)) != stamp:
            start = log.end_of_segment(number - 1) if number > 1 else START
    log.check_links(start, known)


def find_lost_views(folder: Folder, before: Survey) -> list[str]:
    """List the views that are missing or damaged since; raise if there is a file that guard does not trust."""
    now = dict(_walk(folder, ""))
    views = [path for path in before.files if path.endswith(".json")]
    changed = [path for path in views if path in now and now[path] != before.files[path]]
    return [path for path in views if path not in now] + [
        path for path in changed if not _is_sound(folder, path)
    ]


def _status(folder: Folder, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)


def _stamp_of(status: os.stat_result) -> FileStamp:
    return FileStamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_sound(folder: Folder, path: str) -> bool:
    with folder.walk(path) as (parent, name):
        data = parent.read(name) if parent is not None else None
    return data is not None and has_seal(data)


def _walk(folder: Folder, prefix: str) -> Iterator[tuple[str, FileStamp]]:
    for name in folder.names():
        if name.startswith(".") or ".damaged-" in name:
            continue
        with suppress(FileNotFoundError):  # Another guard may have replaced it just now.
            status = _status(folder, name)
            if stat.S_ISREG(status.st_mode):
                yield f"{prefix}{name}", _stamp_of(status)
            elif not prefix and name in _NOT_STATE and stat.S_ISDIR(status.st_mode):
                continue
            elif not stat.S_ISDIR(status.st_mode) or name.endswith(_SUFFIXES):
                raise StateProblem(
                    f"{folder.path_of(name)} is not a file or folder of guard's, so guard does not trust it",
                    "find out which program changed it, move it away, then run `guard rebuild`",
                )
            else:
                child = folder.child(name)
                if child is not None:
                    with child:
                        yield from _walk(child, f"{prefix}{name}/")
