"""Compare the files of a workspace with what they were before an agent ran.

Sealed segments never change, and no state file becomes a link, a pipe or a folder. Guard may never read such a file while it
judges an iteration, so it looks at all of them before it gives a verdict.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from guard.core.log.view import has_seal
from guard.errors import StateProblem
from guard.store.segments import BrokenLog, segment_number
from guard.system.private_files import Folder

_NOT_STATE = ("shadow.git", "output.d", "rollbacks.d")
_SUFFIXES = (".json", ".jsonl", ".lock", ".queue")


class FileStamp(NamedTuple):
    """What tells whether a file was changed or replaced."""

    inode: int
    size: int
    modified_ns: int


Survey = Mapping[str, FileStamp]
"""The state files of a workspace, by their paths."""


def survey(folder: Folder) -> Survey:
    """Look at every state file; raise if one is not a regular file."""
    return dict(_walk(folder, ""))


def find_lost_views(folder: Folder, before: Survey) -> list[str]:
    """List the views that are missing or damaged since; raise if a sealed segment is, or a file that guard does not trust."""
    now = survey(folder)
    for path, stamp in before.items():
        if segment_number(path) is None:
            continue
        if path not in now:
            raise BrokenLog(path, 0, 1, "the file is missing")
        if now[path][1:] != stamp[1:]:
            raise BrokenLog(path, 0, 1, "a sealed segment was changed")
    views = [path for path in before if path.endswith(".json")]
    changed = [path for path in views if path in now and now[path] != before[path]]
    return [path for path in views if path not in now] + [
        path for path in changed if not _is_sound(folder, path)
    ]


def _is_sound(folder: Folder, path: str) -> bool:
    with folder.walk(path) as (parent, name):
        data = parent.read(name) if parent is not None else None
    return data is not None and has_seal(data)


def _walk(folder: Folder, prefix: str) -> Iterator[tuple[str, FileStamp]]:
    for name in folder.names():
        if name.startswith(".") or ".damaged-" in name:
            continue
        with suppress(FileNotFoundError):  # Another guard may have replaced it just now.
            status = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                stamp = FileStamp(status.st_ino, status.st_size, status.st_mtime_ns)
                yield f"{prefix}{name}", stamp
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
