"""A registry file from outside, read safely: a regular file of bounded size, never through a link."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

from guard.core.base.json_text import loads
from guard.core.base.text import visible
from guard.errors import StateProblem, WrongUsage
from guard.system.private_files import close

MOST_BYTES = 64 * 1024 * 1024
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HINT = "name an AGENT_REGISTRY.json or GLOBAL_REGISTRY.json that is a regular file"


def read(path: Path) -> Any:
    """The document in the file."""
    data = _bytes(path)
    try:
        return loads(data)
    except (ValueError, RecursionError) as error:
        raise StateProblem(
            f"{visible(str(path))} is not JSON: {visible(str(error))}",
            "mend the file by hand; nothing was imported",
        ) from None


def _bytes(path: Path) -> bytes:
    try:
        descriptor = os.open(path, _OPEN)
    except OSError as error:
        linked = error.errno == errno.ELOOP
        reason = "it is a symbolic link" if linked else error.strerror or "it cannot be opened"
        raise _unusable(path, reason) from None
    except ValueError as error:
        raise _unusable(path, str(error)) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        close(descriptor)
        raise _unusable(path, "it is not a regular file")
    with open(descriptor, "rb") as file:
        try:
            data = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise _unusable(path, error.strerror or "it cannot be read") from None
    if len(data) > MOST_BYTES:
        raise _unusable(path, f"it has more than {MOST_BYTES} bytes")
    return data


def _unusable(path: Path, reason: str) -> WrongUsage:
    return WrongUsage(f"{visible(str(path))} cannot be imported: {reason}", _HINT)
