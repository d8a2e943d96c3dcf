"""Restore one snapshot to a new folder or in place, or compare it with a folder."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from guard.core.base.paths import spell, unspell
from guard.core.rescue.settings import SnapshotLimits
from guard.core.snapshots.restore import UnknownPath, resolve_path
from guard.core.snapshots.snapshot import Occasion, Snapshot
from guard.errors import GuardError, RepositoryProblem, WrongUsage
from guard.git.locate import Repository
from guard.snapshots.contents import SnapshotContents, read_index, read_work_tree
from guard.snapshots.diff import Comparison, FolderComparer
from guard.snapshots.inventory import Reference, Shelf, open_shelf
from guard.snapshots.objects import Objects
from guard.snapshots.project import Site
from guard.snapshots.safe_writer import SafeFolder
from guard.snapshots.take import take_and_prune
from guard.snapshots.write_files import Progress, RestoreResult, SnapshotWriter
from guard.system.clock import Deadline

_MOST_TRIES = 1000
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def new_folder_path(identity: str, here: Path | None, root: Path | None) -> Path:
    """Choose a folder that does not exist, in no work tree: here, beside the work tree, or with the temporary files."""
    for base in _bases(here, root):
        for number in range(1, _MOST_TRIES):
            suffix = f"-{number}" if number > 1 else ""
            path = base / f"guard-restore-{identity}{suffix}"
            if not os.path.lexists(path):
                return path
    raise WrongUsage("guard found no place for a new folder", "name one with --to")


def _bases(here: Path | None, root: Path | None) -> Iterator[Path]:
    candidates = [here, root.parent if root else None, Path(tempfile.gettempdir())]
    for base in candidates:
        if base is None or not os.access(base, os.W_OK | os.X_OK):
            continue
        around = [base, *base.parents]
        if root not in around and not any(os.path.lexists(folder / ".git") for folder in around):
            yield base


def make_empty_folder(path: Path, forbidden: frozenset[tuple[int, int]]) -> Path:
    """Make an empty folder if need be; wrong usage if there is something in it or in its place."""
    refuse_full_folder(path)
    real = Path(os.path.realpath(path))
    for folder in (real, *real.parents):
        with suppress(OSError):
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in forbidden:
                raise WrongUsage(
                    f"{path} lies in {folder}, which belongs to git or guard", "name another folder"
                )
    try:
        real.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise WrongUsage(
            f"cannot create {path}: {error.strerror}", "name another folder with --to"
        ) from None
    return real


def refuse_full_folder(path: Path) -> None:
    try:
        with os.scandir(path) as entries:
            full = next(entries, None) is not None
    except FileNotFoundError:
        return
    except OSError as error:
        raise WrongUsage(
            f"cannot open {path}: {error.strerror}", "name a new or an empty folder"
        ) from None
    if full:
        raise WrongUsage(f"{path} is not empty", "name a new or an empty folder, or use --in-place")


_USUAL = SnapshotLimits()


@dataclass(frozen=True)
class SnapshotSource:
    """Where snapshots are, and which work tree is meant; there may be none."""

    workspace: Path
    repository: Repository | None
    environ: Mapping[str, str]
    time_limit: float
    """How long git may say nothing, and how long a snapshot or a comparison may take."""
    limits: SnapshotLimits = _USUAL
    fallbacks: tuple[Path, ...] = ()
    """Where else snapshots of this work tree are, because the workspace could not be written."""

    @property
    def worktree(self) -> str | None:
        return spell(os.fsencode(self.repository.root)) if self.repository else None

    def forbidden_folders(self) -> frozenset[tuple[int, int]]:
        """Folders that nothing is written to, by device and inode."""
        places = [self.workspace]
        if self.repository:
            places += [self.repository.git_dir, self.repository.common_dir]
        return folder_identities(places)


@dataclass(frozen=True)
class ChosenSnapshot:
    """A snapshot, open for reading."""

    source: SnapshotSource
    shelf: Shelf
    reference: Reference
    objects: Objects
    contents: SnapshotContents

    def resolve_paths(self, words: Sequence[str], here: Path | None) -> list[bytes]:
        """Resolve the paths that the user typed, as they are or in guard's spelling; refuse one that is not in the snapshot."""
        repository = self.source.repository
        root = os.fspath(repository.root) if repository else os.sep
        base = os.fspath(here) if here and repository else root
        return [self._resolve_word(root, base, word) for word in words]

    def _resolve_word(self, root: str, base: str, word: str) -> bytes:
        other = os.fsdecode(unspell(word)) if "\\" in word and word.isprintable() else word
        try:
            path = resolve_path(root, base, word)
            try:
                self.contents.check([path])
            except UnknownPath:
                if other == word:
                    raise
                path = resolve_path(root, base, other)
                self.contents.check([path])
        except UnknownPath as error:
            raise WrongUsage(
                str(error), f"`guard restore {self.reference.id} --diff` lists what differs"
            ) from None
        return path

    def to_folder(
        self, to: Path | None, here: Path | None, wanted: Sequence[bytes], progress: Progress
    ) -> tuple[Path, RestoreResult]:
        """Restore into a new or an empty folder; return where that is, and what came back."""
        repository = self.source.repository
        root = repository.root if repository else None
        place = to or new_folder_path(self.reference.id, here, root)
        real = make_empty_folder(place, self.source.forbidden_folders())
        with closing(SafeFolder(real)) as target:
            writer = SnapshotWriter(self.objects, target, progress)
            return real, writer.write_all_new(self.contents, wanted)

    def in_place(
        self, wanted: Sequence[bytes], now: datetime, progress: Progress
    ) -> tuple[Path, RestoreResult]:
        """Restore into the work tree, after a snapshot of it."""
        repository = self._repository()

        def save(paths: list[bytes]) -> tuple[Snapshot, SnapshotContents]:
            source = self.source
            site = Site(repository, source.workspace, source.environ, source.time_limit)
            taken = take_and_prune(site, Occasion("restore", now), paths, source.limits)
            with self.shelf.objects() as objects:
                return taken, read_work_tree(objects, self.shelf.find(taken.id, None))

        forbidden = self.source.forbidden_folders()
        with closing(SafeFolder(repository.root, forbidden=forbidden, durable=True)) as target:
            writing = SnapshotWriter(self.objects, target, progress)
            return repository.root, writing.in_place(self.contents, wanted, save)

    def compare(self, to: Path | None, wanted: Sequence[bytes]) -> tuple[Path, Comparison]:
        place = Path(os.path.realpath(to)) if to else self._repository().root
        target = SafeFolder(place) if place.is_dir() else None
        own, deadline = folder_identities([self.source.workspace]), Deadline(self.source.time_limit)
        with closing(target) if target is not None else nullcontext():
            comparer = FolderComparer(self.objects, target)
            return place, comparer.compare(self.contents, wanted, own, deadline)

    def _repository(self) -> Repository:
        if self.source.repository is None:
            raise RepositoryProblem(
                "there is no work tree here", "change to one, name one with --repo, or use --to"
            )
        return self.source.repository


@contextmanager
def choose(source: SnapshotSource, word: str, *, staged: bool) -> Iterator[ChosenSnapshot]:
    """Open the snapshot that the user named; `staged` for what its index had instead of the work tree."""
    limit = source.time_limit
    if source.fallbacks:
        source = replace(source, workspace=_find_place(source, word))
    with open_shelf(source.workspace, source.environ, time_limit=limit) as shelf:
        reference = shelf.find(word, source.worktree)
        with shelf.objects() as objects:
            contents = (read_index if staged else read_work_tree)(objects, reference)
            yield ChosenSnapshot(source, shelf, reference, objects, contents)


def _find_place(source: SnapshotSource, word: str) -> Path:
    """Return the place that has the snapshot; of several with a latest one, that with the newest; else the workspace."""
    found: dict[Path, datetime] = {}
    for place in (source.workspace, *source.fallbacks):
        with (
            suppress(GuardError, OSError),
            open_shelf(place, source.environ, time_limit=source.time_limit) as shelf,
        ):
            identity = shelf.find(word, source.worktree).id
            entries = shelf.inventory().entries
            found[place] = next((entry.at for entry in entries if entry.id == identity), _LONG_AGO)
    return max(found, key=lambda place: found[place], default=source.workspace)


def folder_identities(places: Sequence[Path]) -> frozenset[tuple[int, int]]:
    found = [os.stat(place) for place in places if place.is_dir()]
    return frozenset((status.st_dev, status.st_ino) for status in found)
