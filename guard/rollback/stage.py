"""Stage every file that a revert changes, as it is and as it is to be, and exchange them with the work tree.

Git itself checks out what is to be, so that line ends, links and modes are as git would have them. What is, is copied byte
for byte. Each file comes in whole, and none that changed since it was staged.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from guard.core.base.fields import parse_document
from guard.core.base.paths import path_line, unspell
from guard.core.rollback.journal import RollbackJournal
from guard.core.snapshots.paths import LINK
from guard.core.snapshots.restore import CurrentFile
from guard.errors import StateProblem, StoreUnavailable
from guard.rescue.select import join_paths
from guard.rollback.journals import refuse_link
from guard.snapshots.project import Project
from guard.snapshots.read_file import read_pieces
from guard.snapshots.safe_writer import PathRefused, SafeFolder
from guard.system.private_files import Folder

_JOURNAL = "journal.json"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST_LINK = 65536
_MOST_BYTES = 256 * 1024**2


@dataclass(frozen=True)
class StagedRollback:
    """A rollback whose files are ready."""

    folder: Path
    journal: RollbackJournal

    @property
    def paths(self) -> list[bytes]:
        return [unspell(path) for path in self.journal.paths]

    @property
    def before(self) -> Path:
        return self.folder / "before"

    @property
    def after(self) -> Path:
        return self.folder / "after"

    def forget(self) -> None:
        """Remove the folder, the journal first: without it the rest means nothing."""
        with suppress(FileNotFoundError):
            os.unlink(self.folder / _JOURNAL)
        shutil.rmtree(self.folder, ignore_errors=True)


def stage(
    project: Project, folder: Path, paths: Sequence[bytes], to_sha: str, target: SafeFolder
) -> None:
    (folder / "before").mkdir(parents=True, mode=0o700)
    with closing(SafeFolder(folder / "before", durable=True)) as aside:
        for path in paths:
            copy_over(target, aside, path, to_sha)
    _check_out(project, folder, paths, to_sha)


def copy_over(source: SafeFolder, target: SafeFolder, path: bytes, like: str) -> None:
    """Copy a file or link to another folder that has none; nothing if there is none."""
    there = look_at(source, path, like)
    if there is not None:
        copy_path(source, target, path, there, None)


def look_at(target: SafeFolder, path: bytes, like: str) -> CurrentFile | None:
    """What stands at a path; None for what is neither file nor link, which only stands in the way."""
    try:
        return target.look(path, like)
    except PathRefused:
        return None


def copy_path(
    source: SafeFolder,
    target: SafeFolder,
    path: bytes,
    what: CurrentFile,
    before: CurrentFile | None,
) -> None:
    if what.mode == LINK:
        text = source.read(path, _LONGEST_LINK)
        assert text is not None
        target.link(path, text, before)
        return
    descriptor = os.open(source.root / os.fsdecode(path), _READ)
    with open(descriptor, "rb"):
        size = os.fstat(descriptor).st_size
        target.put(path, what.bits, read_pieces(descriptor, size), before)


def _check_out(project: Project, folder: Path, paths: Sequence[bytes], to_sha: str) -> None:
    """Check out the revert with the settings of the repository and the attributes of the revert."""
    (folder / "after").mkdir(mode=0o700)
    there = replace(project.repository, root=folder / "after")
    own = replace(project, repository=there).with_variables(
        GIT_INDEX_FILE=os.fspath(folder / "index")
    )
    own.call("read-tree", to_sha)
    names = set(own.call("ls-files", "-z", "--cached").split(b"\0")[:-1])
    wanted = [path for path in paths if path in names]
    if wanted:
        own.call("checkout-index", "-q", "-z", "--stdin", stdin=join_paths(wanted))
    os.unlink(folder / "index")
    _sync(folder / "after")


def _sync(folder: Path) -> None:
    for here, _folders, files in os.walk(os.fsencode(folder)):
        for name in files:
            with suppress(OSError):
                descriptor = os.open(os.path.join(here, name), _READ)
                with open(descriptor, "rb"):
                    os.fsync(descriptor)


def begin(folder: Path, journal: RollbackJournal) -> StagedRollback:
    """Write the journal: from here on the rollback is under way."""
    with Folder.make(folder) as opened:
        opened.replace(_JOURNAL, journal.model_dump_json().encode() + b"\n", durable=True)
    return StagedRollback(folder, journal)


@contextmanager
def open_both(staged: StagedRollback) -> Iterator[tuple[SafeFolder, SafeFolder]]:
    with closing(SafeFolder(staged.before)) as before, closing(SafeFolder(staged.after)) as after:
        yield before, after


def list_under_way(journals: Path) -> list[StagedRollback]:
    """List rollbacks that were begun and not ended; folders of those that never began are deleted."""
    found = []
    refuse_link(journals)
    try:
        folders = sorted(journals.iterdir())
    except OSError:
        return []
    for folder in folders:
        try:
            data = (folder / _JOURNAL).read_bytes()[:_MOST_BYTES]
        except FileNotFoundError:
            shutil.rmtree(folder, ignore_errors=True)
            continue
        except OSError as error:
            raise StoreUnavailable(
                f"cannot read {folder / _JOURNAL}: {error.strerror}", "make it readable"
            ) from None
        try:
            found.append(StagedRollback(folder, parse_document(RollbackJournal, data)))
        except ValueError as error:
            raise StateProblem(
                f"{folder / _JOURNAL} is damaged: {error}",
                f"compare the work tree with the files in {folder}, fix it by hand, then delete the folder",
            ) from None
    return found


class ChangedMeanwhile(Exception):
    """A file is not what it was any more."""


class _Write(NamedTuple):
    path: bytes
    there: CurrentFile | None
    wanted: CurrentFile


def bring_in(staged: StagedRollback, target: SafeFolder) -> None:
    """Make the work tree what the revert has; `Meanwhile` for the first file that changed since it was staged."""

    def report_change(path: bytes, why: str) -> None:
        raise ChangedMeanwhile(f"{path_line(path)}: {why}")

    with open_both(staged) as (before, after):
        _exchange(staged, target, after, before, staged.paths, report_change)


def take_back(staged: StagedRollback, target: SafeFolder, keep: frozenset[bytes]) -> list[str]:
    """Make the work tree what it was; return the files left as they are: changed since, or among those to `keep`."""
    left: list[str] = []

    def report_change(path: bytes, why: str) -> None:
        left.append(f"{path_line(path)}: {why}")

    paths = [path for path in staged.paths if path not in keep]
    left += [f"{path_line(path)}: committed meanwhile" for path in staged.paths if path in keep]
    with open_both(staged) as (before, after):
        _exchange(staged, target, before, after, paths, report_change)
    for path in staged.paths:
        target.sweep(path)
    for folder in reversed(staged.journal.new_folders):
        target.remove_folder(unspell(folder))
    return left


def remove_empty_folders(staged: StagedRollback, target: SafeFolder) -> None:
    """Remove folders that the revert has left empty, as git would."""
    with open_both(staged) as (_before, after):
        gone = [path for path in staged.paths if look_at(after, path, staged.journal.head) is None]
    for path in staged.paths:
        target.sweep(path)
    for path in gone:
        _remove_folders(target, path, b"")


def _exchange(
    staged: StagedRollback,
    target: SafeFolder,
    source: SafeFolder,
    other: SafeFolder,
    paths: Sequence[bytes],
    report_change: Callable[[bytes, str], None],
) -> None:
    """Change files from one version to the other; those that are there already stay, as do those that are neither."""
    like, gone, written = staged.journal.head, dict[bytes, CurrentFile](), list[_Write]()
    for path in paths:
        now, wanted = look_at(target, path, like), look_at(source, path, like)
        if now == wanted:
            continue
        if now != look_at(other, path, like):
            report_change(path, "another process changed it meanwhile")
        elif wanted is not None:
            written.append(_Write(path, now, wanted))
        elif now is not None:
            gone[path] = now
    for path, now in gone.items():
        with _report_refusal(path, report_change):
            target.remove(path, now)
    for write in written:
        with _report_refusal(write.path, report_change):
            for path in gone:
                if path.startswith(write.path + b"/"):
                    _remove_folders(target, path, write.path)
            copy_path(source, target, write.path, write.wanted, write.there)


@contextmanager
def _report_refusal(path: bytes, report_change: Callable[[bytes, str], None]) -> Iterator[None]:
    try:
        yield
    except (PathRefused, OSError) as error:
        report_change(path, str(error))


def _remove_folders(target: SafeFolder, path: bytes, top: bytes) -> None:
    """Remove the folders above a path that are empty, up to and including `top`."""
    while b"/" in path and path != top:
        path = path.rpartition(b"/")[0]
        if not target.remove_folder(path):
            return
