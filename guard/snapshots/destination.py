"""The folder that a snapshot is brought back to: a new one, where it is nobody's dirt, or the one that was named."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from guard.errors import WrongUsage

_MOST_TRIES = 1000


def new_folder(identity: str, here: Path | None, root: Path | None) -> Path:
    """The path of a folder that does not exist, in no work tree: here, beside the work tree, or with the temporary files."""
    for base in _bases(here, root):
        for number in range(1, _MOST_TRIES):
            suffix = f"-{number}" if number > 1 else ""
            path = base / f"guard-restore-{identity}{suffix}"
            if not os.path.lexists(path):
                return path
    raise WrongUsage("there is no place for a new folder", "name one with --to")


def _bases(here: Path | None, root: Path | None) -> Iterator[Path]:
    candidates = [here, root.parent if root else None, Path(tempfile.gettempdir())]
    for base in candidates:
        if base is None or not os.access(base, os.W_OK | os.X_OK):
            continue
        around = [base, *base.parents]
        if root not in around and not any(os.path.lexists(one / ".git") for one in around):
            yield base


def made(path: Path, forbidden: frozenset[tuple[int, int]]) -> Path:
    """A folder with nothing in it, made if need be; wrong usage if there is something in it or in its place."""
    refuse_full(path)
    real = Path(os.path.realpath(path))
    for folder in (real, *real.parents):
        with suppress(OSError):
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in forbidden:
                raise WrongUsage(
                    f"{path} lies in {folder}, which is git's or guard's own", "name another folder"
                )
    try:
        real.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise WrongUsage(
            f"{path} cannot be made: {error.strerror}", "name another folder with --to"
        ) from None
    return real


def refuse_full(path: Path) -> None:
    """Only a new or an empty folder cannot have anything in it that would be overwritten."""
    try:
        with os.scandir(path) as entries:
            full = next(entries, None) is not None
    except FileNotFoundError:
        return
    except OSError as error:
        raise WrongUsage(f"{path}: {error.strerror}", "name a new or an empty folder") from None
    if full:
        raise WrongUsage(f"{path} is not empty", "name a new or an empty folder, or use --in-place")
