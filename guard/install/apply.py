"""Put guard's part into files, or take it out: each file is read under a lock and changed in one write.

The origin of a file, its state before guard's part came in, is kept among guard's own state, outside the project. It only
serves to leave things as they were. Where it is missing (another machine, another user) or cannot be read, everything that is
empty without guard's hooks is taken for guard's.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Literal

from pydantic import Field

from guard.context.config import state_home
from guard.core.base.fields import Frozen, parse_document
from guard.core.base.text import utf8_text
from guard.errors import ConfigProblem, GuardError
from guard.install import settings_file
from guard.install.command_line import Environ
from guard.install.files import SettingsPiece
from guard.install.merge import Origin
from guard.system.private_files import Folder

_NO_NEWLINE = "\\ No newline at end of file"
_FOLDER = "installed.d"
_MOST_BYTES = 1024 * 1024


class DoesNotFit(ConfigProblem):
    """A settings file is not what it should be, so that nothing was changed in it."""


@dataclass(frozen=True)
class SettingsFileChange:
    """The change of one file, made or planned."""

    path: Path
    before: str | None
    after: str | None
    events: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Notes on hooks in it that are not guard's."""

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    @property
    def diff(self) -> str:
        if not self.is_change:
            return ""
        name, texts = utf8_text(self.path), (self.before, self.after)
        old, new = (name if text is not None else "/dev/null" for text in texts)
        # With their ends, so that a last line without one differs from one with it.
        before, after = ((text or "").splitlines(keepends=True) for text in texts)
        return "\n".join(_mark_open_ends(unified_diff(before, after, old, new, lineterm="")))


class _StoredFile(Frozen):
    schema_: Literal["guard/installed/1"] = Field("guard/installed/1", alias="schema")
    path: str


class StoredOrigin(Origin, _StoredFile):
    """One settings file as it was before guard's hooks came into it."""

    folders: tuple[str, ...]
    """Folders that were made for it, the outermost first."""


def put_piece(
    piece: SettingsPiece, root: Path | None, environ: Environ, *, dry_run: bool
) -> SettingsFileChange:
    """Put guard's part into a file; `root` is the repository that the file has to stay in."""
    path = settings_file.resolve(piece.path, root)
    plan = _plan_put(piece, path)
    if dry_run or not plan.is_change:
        return plan
    folders = settings_file.folders_to_make(path)
    try:
        settings_file.make_folders(folders)
        with settings_file.lock_folder(path.parent):
            change = _plan_put(piece, path)
            if change.is_change:
                with _refuse_misfit(path):
                    has_hooks = change.before is not None and piece.events(change.before)
                if not has_hooks:
                    _remember(environ, path, piece.origin(change.before), folders)
                settings_file.replace_text(path, change.before, change.after)
            return change
    except GuardError:
        settings_file.remove_folders(folders)
        raise


def take_piece(
    piece: SettingsPiece, root: Path | None, environ: Environ, *, dry_run: bool
) -> SettingsFileChange:
    path = settings_file.resolve(piece.path, root)
    if dry_run or settings_file.read_text(path) is None:
        return _plan_take(piece, path, _recall(environ, path))
    with settings_file.lock_folder(path.parent):
        known = _recall(environ, path)
        change = _plan_take(piece, path, known)
        if change.is_change:
            settings_file.replace_text(path, change.before, change.after)
    if change.is_change:
        _forget(environ, path)
        made = tuple(Path(folder) for folder in known.folders) if known else ()
        inside = tuple(folder for folder in made if path.is_relative_to(folder))
        settings_file.remove_folders(inside)
    return change


def _plan_put(piece: SettingsPiece, path: Path) -> SettingsFileChange:
    before = settings_file.read_text(path)
    with _refuse_misfit(path):
        after = piece.put(before)
        return SettingsFileChange(path, before, after, piece.events(after), piece.others(after))


def _plan_take(piece: SettingsPiece, path: Path, known: StoredOrigin | None) -> SettingsFileChange:
    before = settings_file.read_text(path)
    if before is None:
        return SettingsFileChange(path, None, None, ())
    with _refuse_misfit(path):
        events, after = piece.events(before), piece.take(before, known)
        return SettingsFileChange(path, before, after, events, piece.others(before))


@contextmanager
def _refuse_misfit(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise DoesNotFit(
            f"{path}: {error}; nothing was changed", "fix the file, or edit it by hand"
        ) from None


def _mark_open_ends(lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        bare = line.rstrip("\r\n")
        yield bare
        if number > 1 and not line.startswith("@@") and bare == line:
            yield _NO_NEWLINE


def _remember(environ: Environ, path: Path, origin: Origin, folders: tuple[Path, ...]) -> None:
    names = tuple(utf8_text(folder) for folder in folders)
    document = StoredOrigin(**origin.model_dump(), path=utf8_text(path), folders=names)
    # That this fails does not stop an installation.
    with suppress(GuardError, OSError):
        home = state_home(environ)
        os.makedirs(home / _FOLDER, mode=0o700, exist_ok=True)
        with _open_folder(home) as folder:
            folder.replace(_name(path), document.model_dump_json().encode() + b"\n", locked=False)


def _recall(environ: Environ, path: Path) -> StoredOrigin | None:
    with suppress(GuardError, OSError, ValueError), _open_folder(state_home(environ)) as folder:
        data = folder.read(_name(path))
        return parse_document(StoredOrigin, data) if data and len(data) <= _MOST_BYTES else None
    return None


def _forget(environ: Environ, path: Path) -> None:
    with suppress(GuardError, OSError):
        home = state_home(environ)
        with _open_folder(home) as folder:
            folder.remove(_name(path))
        os.rmdir(home / _FOLDER)


def _open_folder(home: Path) -> Folder:
    folder = Folder.open(home / _FOLDER)
    if folder is None:
        raise FileNotFoundError(home)
    return folder


def _name(path: Path) -> str:
    return f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"
