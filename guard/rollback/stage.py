"""Every file that a revert changes, as it is and as it is to be, put ready in a folder of guard's own.

What is to be is checked out there by git itself, so that line ends, links and modes are as git would have them. What is, is
copied byte for byte.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from guard.core.base.fields import parse_document
from guard.core.base.paths import unspell
from guard.core.rollback.journal import RollbackJournal
from guard.core.snapshots.paths import LINK
from guard.core.snapshots.restore import There
from guard.errors import StateProblem, StoreUnavailable
from guard.rescue.select import listed
from guard.snapshots.project import Project
from guard.snapshots.read_file import pieces
from guard.snapshots.safe_writer import PathRefused, SafeFolder
from guard.system.private_files import Folder

_JOURNAL = "journal.json"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST_LINK = 65536
_MOST_BYTES = 256 * 1024**2


@dataclass(frozen=True)
class StagedRollback:
    """A rollback put ready."""

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
        """The journal first: without it the rest means nothing."""
        with suppress(FileNotFoundError):
            os.unlink(self.folder / _JOURNAL)
        shutil.rmtree(self.folder, ignore_errors=True)


def stage(
    project: Project, folder: Path, paths: Sequence[bytes], to_sha: str, target: SafeFolder
) -> None:
    """Put both versions of these paths into the folder."""
    (folder / "before").mkdir(parents=True, mode=0o700)
    with closing(SafeFolder(folder / "before", durable=True)) as aside:
        for path in paths:
            copy_over(target, aside, path, to_sha)
    _check_out(project, folder, paths, to_sha)


def copy_over(source: SafeFolder, target: SafeFolder, path: bytes, like: str) -> None:
    """The same file or link in another folder that has none; nothing if there is none."""
    there = seen(source, path, like)
    if there is not None:
        put(source, target, path, there, None)


def seen(target: SafeFolder, path: bytes, like: str) -> There | None:
    """What stands there; None for what is neither file nor link, which only stands in the way."""
    try:
        return target.look(path, like)
    except PathRefused:
        return None


def put(
    source: SafeFolder, target: SafeFolder, path: bytes, what: There, before: There | None
) -> None:
    """Bring a path from one folder to another, in place of what was there."""
    if what.mode == LINK:
        text = source.read(path, _LONGEST_LINK)
        assert text is not None
        target.link(path, text, before)
        return
    descriptor = os.open(source.root / os.fsdecode(path), _READ)
    with open(descriptor, "rb"):
        size = os.fstat(descriptor).st_size
        target.put(path, what.bits, pieces(descriptor, size), before)


def _check_out(project: Project, folder: Path, paths: Sequence[bytes], to_sha: str) -> None:
    """By git, with the settings of the repository and the attributes of the revert."""
    (folder / "after").mkdir(mode=0o700)
    there = replace(project.repository, root=folder / "after")
    own = replace(project, repository=there).with_variables(
        GIT_INDEX_FILE=os.fspath(folder / "index")
    )
    own.call("read-tree", to_sha)
    names = set(own.call("ls-files", "-z", "--cached").split(b"\0")[:-1])
    wanted = [path for path in paths if path in names]
    if wanted:
        own.call("checkout-index", "-q", "-z", "--stdin", stdin=listed(wanted))
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
    """From here on it is under way."""
    opened = Folder.open(os.fspath(folder))
    assert opened is not None
    with opened:
        opened.replace(_JOURNAL, journal.model_dump_json().encode() + b"\n", durable=True)
    return StagedRollback(folder, journal)


@contextmanager
def both(staged: StagedRollback) -> Iterator[tuple[SafeFolder, SafeFolder]]:
    """The two versions, open."""
    with closing(SafeFolder(staged.before)) as before, closing(SafeFolder(staged.after)) as after:
        yield before, after


def under_way(journals: Path) -> list[StagedRollback]:
    """What was begun and not ended; what never began is deleted."""
    found = []
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
            raise StoreUnavailable(f"{folder}: {error.strerror}", "make it readable") from None
        try:
            found.append(StagedRollback(folder, parse_document(RollbackJournal, data)))
        except ValueError as error:
            raise StateProblem(
                f"{folder / _JOURNAL} is damaged: {error}",
                f"look at the files in {folder}, put right what is half done, and delete the folder",
            ) from None
    return found
