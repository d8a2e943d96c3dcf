"""Write the files of a snapshot into a new folder, or over what differs in the work tree and is safe in a snapshot."""

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeVar

from guard.core.base.paths import path_line
from guard.core.base.text import fit_line, plural
from guard.core.snapshots.paths import LINK
from guard.core.snapshots.report import NotRestored
from guard.core.snapshots.restore import (
    CurrentFile,
    SnapshotFile,
    git_folder,
    is_asked_for,
    is_same,
)
from guard.core.snapshots.snapshot import MOST_NAMED, Snapshot
from guard.errors import StoreUnavailable
from guard.snapshots.contents import SnapshotContents
from guard.snapshots.objects import Objects, ObjectUnreadable
from guard.snapshots.safe_writer import PathRefused, SafeFolder, refusal

_NEEDED_BY_GIT = (b"/refs", b"/objects")
"""Without these folders, empty or not, git takes a directory for no repository."""
_LONGEST_LINK = 65536
_SAY_EVERY = 0.1
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_NOT_SAVED = "it is not in the snapshot that was taken first"

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called now and then with how many files are done, of how many."""


@dataclass
class RestoreResult:
    """What came back, and what did not."""

    written: int = 0
    unchanged: int = 0
    trouble: dict[bytes, str] = field(default_factory=dict)
    """What the snapshot should have and cannot give."""
    refused: dict[bytes, str] = field(default_factory=dict)
    """What may not or could not be written."""
    left: list[bytes] = field(default_factory=list)
    snapshot: Snapshot | None = None

    def list_failures(self) -> tuple[NotRestored, ...]:
        return list_not_restored({**self.trouble, **self.refused})

    def left_lines(self) -> tuple[str, ...]:
        lines = [path_line(path) for path in sorted(self.left)[:MOST_NAMED]]
        more = len(self.left) - len(lines)
        return (*lines, f"and {plural(more, 'more path')}") if more else tuple(lines)


def list_not_restored(found: Mapping[bytes, str]) -> tuple[NotRestored, ...]:
    lines = [
        NotRestored(path=path_line(path), why=fit_line(why))
        for path, why in sorted(found.items())[:MOST_NAMED]
    ]
    more = len(found) - len(lines)
    rest = [NotRestored(path="…", why=f"and {plural(more, 'more path')}")] if more else []
    return (*lines, *rest)


@dataclass(frozen=True)
class SnapshotWriter:
    """One restore: from where, to where, and how progress is shown."""

    objects: Objects
    target: SafeFolder
    progress: Progress

    def write_all_new(self, contents: SnapshotContents, wanted: Sequence[bytes]) -> RestoreResult:
        result = _new_result(contents, wanted)
        for file in self._with_progress(
            [file for file in contents.files if is_asked_for(file.path, wanted)]
        ):
            self._write(file, None, result)
        self._write_rest(contents, wanted, result)
        return result

    def in_place(
        self,
        contents: SnapshotContents,
        wanted: Sequence[bytes],
        save: Callable[[list[bytes]], tuple[Snapshot, SnapshotContents]],
    ) -> RestoreResult:
        """Write over what differs; `save` takes a snapshot first, and says what is in it."""
        result = _new_result(contents, wanted)
        differing = self._list_differing(contents, wanted, result)
        if differing:
            result.snapshot, safe = save([file.path for file, _ in differing])
            self._replace(differing, safe, result)
            known = {file.path for file in contents.files}
            rest = (file.path for file in safe.files if file.path not in known)
            result.left = [path for path in rest if is_asked_for(path, wanted)]
        self._write_rest(contents, wanted, result)
        return result

    def _write_rest(
        self, contents: SnapshotContents, wanted: Sequence[bytes], result: RestoreResult
    ) -> None:
        """Restore git directories of nested repositories, but none that is there, and the empty folders."""
        nested = [file for file in contents.nested if is_asked_for(file.path, wanted)]
        folders = {git_folder(file.path) for file in nested}
        gone = {folder for folder in folders if not self.target.has(folder)}
        for file in self._with_progress([file for file in nested if git_folder(file.path) in gone]):
            self._write(file, None, result)
        for folder in gone:
            self._make([folder + name for name in _NEEDED_BY_GIT], result)
        self._make([path for path in contents.empty_folders if is_asked_for(path, wanted)], result)

    def _replace(
        self,
        differing: list[tuple[SnapshotFile, CurrentFile | None]],
        safe: SnapshotContents,
        result: RestoreResult,
    ) -> None:
        kept = {file.path: file.oid for file in safe.files}
        for file, before in self._with_progress(differing):
            if before is not None and kept.get(file.path) != before.oid:
                result.refused[file.path] = _NOT_SAVED
            else:
                self._write(file, before, result)

    def _list_differing(
        self, contents: SnapshotContents, wanted: Sequence[bytes], result: RestoreResult
    ) -> list[tuple[SnapshotFile, CurrentFile | None]]:
        found = []
        for file in contents.files:
            if not is_asked_for(file.path, wanted):
                continue
            try:
                there = self.target.look(file.path, file.oid)
            except (PathRefused, OSError) as error:
                result.refused[file.path] = refusal(error)
            else:
                if is_same(file, there):
                    result.unchanged += 1
                else:
                    found.append((file, there))
        return found

    def _write(self, file: SnapshotFile, before: CurrentFile | None, result: RestoreResult) -> None:
        try:
            if file.mode == LINK:
                text = self.objects.read(file.oid, most=_LONGEST_LINK)
                self.target.link(file.path, text, before)
            elif before is not None and before[:2] == file[1:3]:
                self.target.set_bits(file.path, file.bits)
            else:
                with closing(self.objects.pieces(file.oid)) as content:
                    self.target.put(file.path, file.bits, content, before)
            result.written += 1
        except ObjectUnreadable as error:
            result.trouble[file.path] = str(error)
        except (PathRefused, OSError) as error:
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                done = plural(result.written, "file")
                raise StoreUnavailable(
                    f"guard wrote {done} to {self.target.root}, and no more: {error.strerror}",
                    "name another folder with --to",
                ) from None
            result.refused[file.path] = refusal(error)

    def _make(self, folders: Sequence[bytes], result: RestoreResult) -> None:
        for path in folders:
            try:
                self.target.make_folder(path)
            except (PathRefused, OSError) as error:
                result.refused[path] = refusal(error)

    def _with_progress(self, files: Sequence[T]) -> Iterator[T]:
        last = monotonic()
        for done, file in enumerate(files, 1):
            yield file
            if done < len(files) and monotonic() - last >= _SAY_EVERY:
                self.progress(done, len(files))
                last = monotonic()


def _new_result(contents: SnapshotContents, wanted: Sequence[bytes]) -> RestoreResult:
    refused = {path: why for path, why in contents.refused.items() if is_asked_for(path, wanted)}
    return RestoreResult(trouble=contents.find_lost(wanted), refused=refused)
