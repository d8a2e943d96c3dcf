"""Read the files of a spool: a document counts only if it is whole and fits its model."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from guard.core.base.fields import Frozen
from guard.core.base.first_use import late_pattern
from guard.errors import GuardError
from guard.system.private_files import Folder, close, read_from

_NAME = late_pattern(r"[A-Za-z0-9._-]{1,128}")
_HOUR = 3600.0
M = TypeVar("M", bound=Frozen)


def document_names(folder: Folder) -> list[str]:
    return [name for name in folder.names() if name.endswith(".json") and name[0] != "."]


def read_document(folder: Folder, name: str, model: type[M], most_bytes: int) -> M | None:
    """Return the document in the file of this name; None if it is broken or too long."""
    if not _NAME.fullmatch(name):
        return None
    try:
        descriptor = folder.open_file(name)
    except (GuardError, OSError):
        return None
    try:
        data, whole = read_from(descriptor, 0, most_bytes)
        return model.model_validate_json(data) if whole else None
    except ValueError:
        return None
    finally:
        close(descriptor)


def remove_leftovers(folder: Folder, now: float, is_leftover: Callable[[str], bool]) -> None:
    # Killed hooks left them; a hook that still writes is younger than an hour.
    for name in filter(is_leftover, folder.names()):
        with suppress(OSError):
            status = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
            if now - status.st_mtime > _HOUR:
                folder.remove(name)


def is_temporary(name: str) -> bool:
    return name.endswith(".tmp")
