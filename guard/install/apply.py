"""Guard's part put into files, or taken out of them: each as it is then, under a lock, at once."""

from dataclasses import dataclass
from pathlib import Path

from guard.core.base.text import valid
from guard.errors import ConfigProblem, GuardError
from guard.install import originals as remembered
from guard.install import settings_file as writing
from guard.install.base import Environ
from guard.install.diff import difference
from guard.install.files import SettingsPiece


class DoesNotFit(ConfigProblem):
    """A settings file is not what it should be, so that nothing was changed in it."""


@dataclass(frozen=True)
class SettingsFileChange:
    """What became of one file, or would become of it."""

    path: Path
    before: str | None
    after: str | None
    events: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What to say of hooks in it that are not guard's."""

    @property
    def is_one(self) -> bool:
        return self.before != self.after

    @property
    def diff(self) -> str:
        return difference(valid(self.path), self.before, self.after)


def put(
    piece: SettingsPiece, root: Path | None, environ: Environ, *, dry_run: bool
) -> SettingsFileChange:
    """Guard's part put into a file; `root` is the repository that it has to stay in."""
    path = writing.real(piece.path, root)
    planned = _planned_put(piece, path)
    if dry_run or not planned.is_one:
        return planned
    folders = writing.folders_to_make(path)
    try:
        writing.make_folders(folders)
        with writing.alone(path.parent):
            change = _planned_put(piece, path)
            if change.is_one:
                if change.before is None or not _events(piece, path, change.before):
                    remembered.remember(environ, path, piece.origin(change.before), folders)
                writing.replace(path, change.before, change.after)
            return change
    except GuardError:
        writing.remove_folders(folders)
        raise


def take(
    piece: SettingsPiece, root: Path | None, environ: Environ, *, dry_run: bool
) -> SettingsFileChange:
    """Guard's part taken out of a file."""
    path = writing.real(piece.path, root)
    if dry_run or writing.read(path) is None:
        return _planned_take(piece, path, remembered.recall(environ, path))
    with writing.alone(path.parent):
        known = remembered.recall(environ, path)
        change = _planned_take(piece, path, known)
        if change.is_one:
            writing.replace(path, change.before, change.after)
    if change.is_one:
        remembered.forget(environ, path)
        made = tuple(Path(folder) for folder in known.folders) if known else ()
        writing.remove_folders(tuple(folder for folder in made if path.is_relative_to(folder)))
    return change


def _planned_put(piece: SettingsPiece, path: Path) -> SettingsFileChange:
    before = writing.read(path)
    try:
        after = piece.put(before)
        return SettingsFileChange(path, before, after, piece.events(after), piece.others(after))
    except ValueError as error:
        raise _does_not_fit(path, error) from None


def _planned_take(
    piece: SettingsPiece, path: Path, known: remembered.Remembered | None
) -> SettingsFileChange:
    before = writing.read(path)
    if before is None:
        return SettingsFileChange(path, None, None, ())
    events = _events(piece, path, before)
    try:
        after = piece.take(before, known.origin() if known else None)
        notes = piece.others(before)
    except ValueError as error:
        raise _does_not_fit(path, error) from None
    return SettingsFileChange(path, before, after, events, notes)


def _events(piece: SettingsPiece, path: Path, text: str) -> tuple[str, ...]:
    try:
        return piece.events(text)
    except ValueError as error:
        raise _does_not_fit(path, error) from None


def _does_not_fit(path: Path, error: ValueError) -> DoesNotFit:
    return DoesNotFit(f"{path}: {error}; nothing was changed", "mend the file, or edit it by hand")
