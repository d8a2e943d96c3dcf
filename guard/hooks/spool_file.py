"""A file that a hook has left: a document that counts only if it is whole and makes sense."""

import re
from typing import TypeVar

from guard.core.base.fields import Frozen
from guard.errors import GuardError
from guard.system.private_files import Folder, close, read_from

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
M = TypeVar("M", bound=Frozen)


def told_in(folder: Folder, name: str, model: type[M], most_bytes: int) -> M | None:
    """What the file of this name tells; None if that makes no sense."""
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
