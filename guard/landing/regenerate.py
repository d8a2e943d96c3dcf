"""Run the command that makes a file, such as a lock file, in a clean checkout of the merged tree."""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.landing.settings import RegeneratedFile
from guard.prove.execute import execute
from guard.prove.order import Order
from guard.prove.prove import open_checkouts

_SLOT = "landing"
_MOST_BYTES = 256 * 1024**2
_MOST_TAIL = 4000


@dataclass(frozen=True)
class RegeneratedContent:
    """What the command made of the file; without a problem and without data, the file is gone."""

    data: bytes | None
    problem: str = ""


def regenerate(
    guard: Invocation, tree: str, head: str, file: RegeneratedFile, seconds: float
) -> RegeneratedContent:
    checkouts = open_checkouts(guard)
    with checkouts.scratch() as scratch, checkouts.open(_SLOT, tree, head) as checkout:
        order = Order(
            command=file.command,
            folder=checkout.path,
            project=guard.repository.root,
            environ=guard.environ,
            scratch=scratch,
            timeout_seconds=seconds,
            slot=_SLOT,
            lends=checkout.lends,
            kind="exit",
        )
        done = execute(order, lambda _line: None)
        if done.end != "exited" or done.exit_code != 0:
            code = f"exit code {done.exit_code}" if done.end == "exited" else str(done.end)
            tail = done.tail[-_MOST_TAIL:]
            return RegeneratedContent(
                None, f"`{file.command}`, which makes {file.file}, fails ({code})\n{tail}"
            )
        return _read(checkout.path, file.file)


def _read(folder: Path, name: str) -> RegeneratedContent:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with suppress(FileNotFoundError):
        try:
            descriptor = os.open(folder / name, flags)
        except FileNotFoundError:
            raise
        except OSError as error:
            return RegeneratedContent(None, f"{name} cannot be read: {error.strerror}")
        with open(descriptor, "rb") as opened:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_BYTES:
                return RegeneratedContent(opened.read())
            return RegeneratedContent(None, f"{name} is no regular file, or too large")
    return RegeneratedContent(None)
