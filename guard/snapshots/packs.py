"""The packs of the shadow repository, and which of them were read back byte for byte and have not been touched since."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from guard.errors import GuardError
from guard.snapshots.stat_cache import FOLDER
from guard.system.private_files import Folder

_FOLDER = "objects/pack"
_NOTES = "packs"

Stamps = Mapping[str, str]
"""Packs by name, each with what would tell that one of its files was replaced or written to."""


def stamps(shadow: Path) -> dict[str, str]:
    """The packs that there are."""
    folder, found = shadow / _FOLDER, {}
    for index in folder.glob("pack-*.idx"):
        with suppress(FileNotFoundError):
            found[index.stem] = f"{_stamp(index)} {_stamp(index.with_suffix('.pack'))}"
    return found


def _stamp(path: Path) -> str:
    status = os.lstat(path)
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def read_back(shadow: Path) -> dict[str, str]:
    """The packs that were read back, as they were then."""
    with suppress(GuardError, OSError, ValueError):
        folder = Folder.open(os.fspath(shadow / FOLDER))
        if folder is not None:
            with folder:
                lines = (folder.read(_NOTES) or b"").decode("ascii").splitlines()
            return dict(line.split(" ", 1) for line in lines)
    return {}


def note_read_back(shadow: Path, found: Stamps) -> None:
    """For the next snapshot. What cannot be noted is read back once more."""
    lines = "".join(f"{name} {stamp}\n" for name, stamp in found.items())
    with suppress(GuardError, OSError):
        folder = Folder.open(os.fspath(shadow / FOLDER), create=True)
        assert folder is not None
        with folder:
            folder.replace(_NOTES, lines.encode(), locked=False)


def path_of(shadow: Path, name: str) -> str:
    """The file that `git verify-pack` wants to be told."""
    return os.fspath(shadow / _FOLDER / f"{name}.idx")
