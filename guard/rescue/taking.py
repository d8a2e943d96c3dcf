"""What goes into a snapshot, read from the project into the stream, with a note on everything that does not go in."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from guard.core.paths import spelled
from guard.core.rescuing import Manifest, Occasion, Skipped, cut, is_relative, tree_path
from guard.core.secrets import secrets_in
from guard.errors import RepositoryProblem, StoreUnavailable
from guard.files import close
from guard.rescue.index import GITLINK, Index, Staged
from guard.rescue.project import Project
from guard.rescue.reading import Content, Large, read
from guard.rescue.stream import Stream
from guard.rescue.walker import FOLDER, Entry, Walk, reached

_USUAL_BITS = (0o644, 0o755)
_WALK_SHARE = 0.6
_LARGE_BYTES_PER_SECOND = 40e6
_UNSTEADY = "changed while it was read"
_NOT_THERE = (FileNotFoundError, NotADirectoryError)
_GIT_FILES = (
    *(b"HEAD", b"ORIG_HEAD", b"MERGE_HEAD", b"MERGE_MSG", b"MERGE_MODE", b"AUTO_MERGE"),
    *(b"SQUASH_MSG", b"CHERRY_PICK_HEAD", b"REVERT_HEAD"),
    *(b"BISECT_LOG", b"BISECT_START", b"BISECT_TERMS", b"BISECT_NAMES"),
)
_COMMON_FILES = (b"config", b"info/exclude")
_GIT_FOLDERS = (b"rebase-merge", b"rebase-apply", b"sequencer")


class Kept(NamedTuple):
    """A file of the work tree, as it is in the snapshot."""

    mode: bytes
    oid: str
    size: int


class Taking:
    """One snapshot while it is made."""

    def __init__(
        self, project: Project, stream: Stream, index: Index, wanted: Sequence[bytes]
    ) -> None:
        place = os.stat(index.shadow.path.parent)
        deadline = project.deadline.part(_WALK_SHARE)
        self.walk = Walk(
            project.repository.root, frozenset({(place.st_dev, place.st_ino)}), deadline
        )
        self.kept: dict[bytes, Kept] = {}
        self.absent: set[bytes] = set()
        self.suspects: set[bytes] = set()
        self.trouble: dict[bytes, str] = self.walk.not_read
        self.folders: set[bytes] = set()
        self._project, self._stream, self._index = project, stream, index
        self._wanted = frozenset(path for path in wanted if is_relative(path))
        self._large: list[bytes] = []
        self._modes: dict[str, list[str]] = defaultdict(list)
        self._escaped: dict[str, str] = {}

    def everything(self) -> None:
        """Small files first: should the time run out, the most is saved."""
        for entry in self.walk.entries():
            self._keep(entry)
        staged = self._staged()
        for path in sorted(self._wanted | self._left_out(staged)):
            if path not in self.kept and path not in self.trouble and path not in self._large:
                self._fetch(path)
        self._keep_staged(staged)
        self._keep_operation()
        for path in self._large:
            self._fetch(path)

    def _keep(self, entry: Entry) -> None:
        found = read(entry)
        if isinstance(found, str):
            self.trouble[entry.path] = found
        elif isinstance(found, Large):
            close(found.descriptor)
            self._large.append(entry.path)
        elif found is not None:
            place = self._place(entry.path, found.bits)
            oid = self._stream.put(place, found.mode, found.data)
            self._note(entry.path, Kept(found.mode, oid, len(found.data)), found.steady)
            if self._is_wanted(entry.path) and next(secrets_in(found.data), None) is not None:
                self.suspects.add(entry.path)

    def _is_wanted(self, path: bytes) -> bool:
        wanted = self._wanted
        return path in wanted or any(folder in wanted for folder in above(path))

    def _fetch(self, path: bytes) -> None:
        """One path by itself."""
        with reached(self.walk.root, path) as entry:
            if entry is None:
                self.absent.add(path)
            elif entry == FOLDER:
                self.folders.add(path)
            elif isinstance(entry, str):
                self.trouble[path] = entry
            elif path not in self._large:
                self._keep(entry)
            else:
                self._keep_large(entry)

    def _keep_large(self, entry: Entry) -> None:
        found = read(entry)
        if not isinstance(found, Large):
            self.trouble[entry.path] = found if isinstance(found, str) else _UNSTEADY
            return
        try:
            if found.size > self._project.deadline.left() / 2 * _LARGE_BYTES_PER_SECOND:
                self.trouble[entry.path] = "time limit: too large for what is left of it"
                return
            place = self._place(entry.path, found.bits)
            oid, steady = self._stream.put_large(place, found)
            self._note(entry.path, Kept(found.mode, oid, found.size), steady)
        finally:
            close(found.descriptor)

    def _place(self, path: bytes, bits: int) -> bytes:
        place = tree_path(path)
        if place != path:
            self._escaped[spelled(place)] = spelled(path)
        if bits not in _USUAL_BITS:
            self._modes[f"{bits:o}"].append(spelled(path))
        return b"worktree/" + place

    def _note(self, path: bytes, kept: Kept, steady: bool) -> None:
        self.kept[path] = kept
        if not steady:
            self.trouble[path] = _UNSTEADY

    def _staged(self) -> list[Staged]:
        try:
            return self._index.entries()
        except StoreUnavailable as error:
            if self._project.deadline.passed():
                raise
            self.trouble[b".git/index"] = error.message
            return []

    def _left_out(self, staged: Iterable[Staged]) -> set[bytes]:
        """Tracked files in folders that the walk passed over: they are somebody's work."""
        passed_over = self.walk.not_needed
        tracked = (entry.path for entry in staged if entry.mode != GITLINK)
        return {path for path in tracked if any(folder in passed_over for folder in above(path))}

    def _keep_staged(self, staged: Sequence[Staged]) -> None:
        try:
            own = self._index.only_staged(staged, self._head()) if staged else []
            known = {oid for _mode, oid in self._stream.written.values()}
            for entry in own:
                if entry.oid in known:
                    self._stream.refer(_staged_place(entry), entry.mode, entry.oid)
            rest = [entry for entry in own if entry.oid not in known]
            self._copy_blobs(rest)
        except StoreUnavailable as error:
            if self._project.deadline.passed():
                raise
            self.trouble[b".git/index"] = error.message

    def _head(self) -> str | None:
        try:
            return self._project.briefly().commit_of("HEAD")
        except RepositoryProblem:
            return None

    def _copy_blobs(self, entries: Sequence[Staged]) -> None:
        waiting: dict[str, list[Staged]] = defaultdict(list)
        for entry in entries:
            waiting[entry.oid].append(entry)
        for oid, data in self._index.blobs(list(waiting)):
            for entry in waiting.pop(oid):
                self._stream.put(_staged_place(entry), entry.mode, data)
        for entry in (entry for missing in waiting.values() for entry in missing):
            self.trouble[_staged_place(entry)] = "its object is missing or too large"

    def _keep_operation(self) -> None:
        repository = self._project.repository
        places = [(repository.git_dir, name) for name in _GIT_FILES]
        places += [(repository.common_dir, name) for name in _COMMON_FILES]
        for folder, name in places:
            with suppress(*_NOT_THERE), reached(folder, name) as entry:
                self._keep_git_file(entry, name)
        for name in _GIT_FOLDERS:
            folder = repository.git_dir / os.fsdecode(name)
            with suppress(*_NOT_THERE):
                for entry in Walk(folder, frozenset(), self.walk.deadline).entries():
                    self._keep_git_file(entry, name + b"/" + entry.path)

    def _keep_git_file(self, entry: Entry | str | None, name: bytes) -> None:
        found = read(entry) if isinstance(entry, Entry) else None
        if isinstance(found, Large):
            close(found.descriptor)
        elif isinstance(found, Content):
            self._stream.put(b"gitdir/" + tree_path(name), found.mode, found.data)

    def manifest(self, identity: str, occasion: Occasion, skipped: Sequence[Skipped]) -> bytes:
        """What trees cannot say, as a document."""
        manifest = Manifest(
            id=identity,
            at=occasion.at,
            kind=occasion.kind,
            run=occasion.run,
            iteration=occasion.iteration,
            worktree=spelled(os.fsencode(self._project.repository.root)),
            files=len(self.kept),
            bytes=sum(kept.size for kept in self.kept.values()),
            whole=self.whole,
            skipped=tuple(skipped),
            modes={bits: tuple(paths) for bits, paths in sorted(self._modes.items())},
            empty_folders=tuple(spelled(path) for path in self.walk.empty),
            nested=tuple(spelled(path) for path in self.walk.nested),
            escaped=self._escaped,
        )
        return manifest.model_dump_json(indent=1).encode() + b"\n"

    def skipped(self) -> list[Skipped]:
        """What is not in it, the losses before what is not needed."""
        both = [*sorted(self.trouble.items()), *sorted(self.walk.not_needed.items())]
        return [Skipped(path=spelled(path), why=cut(why)) for path, why in both]

    @property
    def whole(self) -> bool:
        """Whether nothing is missing that somebody could miss."""
        return not self.trouble


def _staged_place(entry: Staged) -> bytes:
    return b"index/%d/%s" % (entry.stage, tree_path(entry.path))


def above(path: bytes) -> Iterator[bytes]:
    """The folders that a path lies in."""
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)
