"""What the settings files were before guard's hooks came into them: kept among guard's own state, outside the project.

It only serves to leave things as they were. Where it is missing (another machine, another user) or cannot be read, what is
empty without guard's hooks is taken for guard's.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import Field

from guard.context import config
from guard.core.base.fields import Frozen, parsed
from guard.core.base.text import valid
from guard.errors import GuardError
from guard.install.base import Environ
from guard.install.merge import Origin
from guard.system.private_files import Folder

_FOLDER = "installed.d"
_MOST_BYTES = 1024 * 1024


class Remembered(Frozen):
    """One settings file as it was."""

    schema_: Literal["guard/installed/1"] = Field("guard/installed/1", alias="schema")
    path: str
    created: bool
    blank: str | None
    bare: bool = False
    empty: dict[str, str]
    folders: tuple[str, ...]
    """Folders that were made for it, the outermost first."""

    def origin(self) -> Origin:
        return Origin(self.created, self.blank, self.bare, self.empty)


def remember(environ: Environ, path: Path, origin: Origin, folders: tuple[Path, ...]) -> None:
    """Keep what a file was; that this fails does not stop anything."""
    document = Remembered(
        path=valid(path),
        created=origin.created,
        blank=origin.blank,
        bare=origin.bare,
        empty=dict(origin.empty),
        folders=tuple(valid(folder) for folder in folders),
    )
    with suppress(GuardError, OSError):
        home = config.state_home(environ)
        os.makedirs(home / _FOLDER, mode=0o700, exist_ok=True)
        with _opened(home) as folder:
            folder.replace(_name(path), document.model_dump_json().encode() + b"\n", locked=False)


def recall(environ: Environ, path: Path) -> Remembered | None:
    """What a file was, if that is known."""
    with suppress(GuardError, OSError, ValueError), _opened(config.state_home(environ)) as folder:
        data = folder.read(_name(path))
        return parsed(Remembered, data) if data and len(data) <= _MOST_BYTES else None
    return None


def forget(environ: Environ, path: Path) -> None:
    """It is as it was again."""
    with suppress(GuardError, OSError):
        home = config.state_home(environ)
        with _opened(home) as folder:
            folder.remove(_name(path))
        os.rmdir(home / _FOLDER)


def _opened(home: Path) -> Folder:
    folder = Folder.open(os.fspath(home / _FOLDER))
    if folder is None:
        raise FileNotFoundError(home)
    return folder


def _name(path: Path) -> str:
    return f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"
