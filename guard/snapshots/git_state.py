"""Save what only the git directory holds of uncommitted work: staged files, stashes, and the operation in progress.

Index and stash are read through the shadow repository, with objects that the project lends, so that the project's
configuration, broken or hostile, is not in play.
"""

import errno
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from guard.core.base.first_use import dataclass, late_pattern
from guard.core.base.text import escape
from guard.core.snapshots.paths import GITLINK, tree_path
from guard.errors import RepositoryProblem, StoreUnavailable
from guard.git.locate import Repository
from guard.git.obstacles import GitObstacle, refuse_to_lend, refuse_to_read_index
from guard.git.reflogs import read_stash
from guard.snapshots.fast_import import ImportStream, parse_tree, quote_path
from guard.snapshots.objects import read_blobs
from guard.snapshots.project import Project
from guard.snapshots.read_file import Content, git_mode, read_entry
from guard.snapshots.shadow import Shadow
from guard.snapshots.walk import FOLDER, SnapshotWalk, WalkEntry, open_path

MOST_FOLDERS = 200
"""So many are named to git; of more it lists everything."""


class IndexEntry(NamedTuple):
    """One entry of the index, or of a tree (stage 0)."""

    mode: bytes
    oid: str
    stage: int
    path: bytes


@dataclass(frozen=True)
class ProjectIndex:
    """The index of a repository, seen from the shadow."""

    shadow: Shadow
    repository: Repository

    def list_tracked(self, folders: Sequence[bytes]) -> list[IndexEntry]:
        if not folders or not self._is_readable():
            return []
        named = folders if len(folders) <= MOST_FOLDERS else ()
        words = ("ls-files", "--stage", "-z", "--", *map(os.fsdecode, named))
        return list(parse_stages(self._call(*words, GIT_INDEX_FILE=os.fspath(self._path))))

    def list_only_staged(self, head: str | None) -> list[IndexEntry]:
        """List what the last commit does not have; the whole index if that commit cannot be read."""
        if not self._is_readable():
            return []
        own = {"GIT_INDEX_FILE": os.fspath(self._path)}
        with suppress(StoreUnavailable):
            words = ("diff-index", "--cached", "--no-renames", "-z", head or self.shadow.empty_tree)
            listed = self._call(*words, **own)
            found = list(_parse_changes(listed))
            if b" U\0" in listed:
                found += parse_stages(self._call("ls-files", "--unmerged", "--stage", "-z", **own))
            return [entry for entry in found if entry.mode != GITLINK]
        every = parse_stages(self._call("ls-files", "--stage", "-z", **own))
        return [entry for entry in every if entry.mode != GITLINK]

    def changed_between(self, before: str, after: str) -> list[IndexEntry]:
        words = ("diff-tree", "-r", "-z", "--no-renames", before, after)
        return [entry for entry in _parse_changes(self._call(*words)) if entry.mode != GITLINK]

    def parents(self, commit: str) -> list[str]:
        return self._call("rev-list", "--parents", "-n", "1", commit).decode().split()[1:]

    def subject(self, commit: str) -> bytes:
        return self._call("log", "-1", "--format=%s", commit, "--")

    def list_in_commit(self, commit: str) -> list[IndexEntry]:
        listed = parse_tree(self._call("ls-tree", "-r", "-z", "--full-tree", commit))
        return [IndexEntry(mode, oid, 0, path) for path, (mode, oid) in listed.items()]

    def blobs(self, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        return read_blobs(partial(self.shadow.call, extra=self._lent_objects()), oids)

    @property
    def _path(self) -> Path:
        return self.repository.git_dir / "index"

    def _call(self, *words: str, **extra: str) -> bytes:
        return self.shadow.call(*words, extra={**self._lent_objects(), **extra})

    def _is_readable(self) -> bool:
        return os.path.isfile(self._path) and self.why_not_read() is None

    def why_not_read(self) -> str | None:
        """Return why git is not let read the index: it would wait for ever, or write elsewhere."""
        try:
            refuse_to_read_index(self.repository)
        except GitObstacle as error:
            return error.message
        return None

    def why_not_lent(self) -> str | None:
        """Return why the shadow is not lent the project's objects: it would wait for ever to read them."""
        try:
            refuse_to_lend(self.repository)
        except GitObstacle as error:
            return error.message
        return None

    def _lent_objects(self) -> dict[str, str]:
        if self.why_not_lent() is not None:
            return {}
        objects = os.fsencode(self.repository.common_dir / "objects")
        return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quote_path(objects).decode()}


def parse_stages(listed: bytes) -> Iterator[IndexEntry]:
    """Parse what `git ls-files --stage -z` prints."""
    for line in listed.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, oid, stage = about.split()
        yield IndexEntry(mode, oid.decode(), int(stage), path)


def _parse_changes(listed: bytes) -> Iterator[IndexEntry]:
    fields = listed.split(b"\0")[:-1]
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        _old_mode, mode, _old, oid, letter = about.split()
        if letter not in (b"D", b"U"):
            yield IndexEntry(mode, oid.decode(), 0, path)


_GIT_FILES = (
    *(b"HEAD", b"ORIG_HEAD", b"MERGE_HEAD", b"MERGE_MSG", b"MERGE_MODE", b"AUTO_MERGE"),
    *(b"SQUASH_MSG", b"CHERRY_PICK_HEAD", b"REVERT_HEAD", b"COMMIT_EDITMSG", b"REBASE_HEAD"),
    *(b"BISECT_LOG", b"BISECT_START", b"BISECT_TERMS", b"BISECT_NAMES", b"index", b"logs/HEAD"),
    b"MERGE_AUTOSTASH",
)
_COMMON_FILES = (b"config", b"info/exclude", b"packed-refs", b"logs/refs/stash", b"shallow")
_GIT_FOLDERS = (b"rebase-merge", b"rebase-apply", b"sequencer")
_MOST_FILE_BYTES = 1024**2
"""Larger ones, as the index of a large project, say nothing that is not kept otherwise."""
_MOST_STASHED = 50
_AUTOSTASHES = (b"MERGE_AUTOSTASH", b"rebase-merge/autostash", b"rebase-apply/autostash")
_OID = late_pattern(r"[0-9a-f]{40}|[0-9a-f]{64}")


class GitStateSaver:
    """Writes the git state into the snapshot; what cannot be read becomes a note, and the rest goes on."""

    def __init__(
        self, project: Project, shadow: Shadow, stream: ImportStream, trouble: dict[bytes, str]
    ) -> None:
        self.index = ProjectIndex(shadow, project.repository)
        self._project, self._shadow, self._stream = project, shadow, stream
        self._trouble = trouble
        self._written: set[str] = set()

    def keep_staged(self) -> None:
        """Keep what is in the index and not in the last commit, with the sides of conflicts."""
        why = self.index.why_not_lent()
        if why is not None:
            self._trouble[b".git/objects"] = why
        why = self.index.why_not_read()
        if why is not None:
            self._trouble[b".git/index"] = why
        with self._note_failure(b".git/index"):
            own = self.index.list_only_staged(self._commit("HEAD"))
            self._copy(
                [(b"index/%d/%s" % (entry.stage, tree_path(entry.path)), entry) for entry in own]
            )

    def keep_stashes(self) -> None:
        """Keep what each entry of the stash changes: in the work tree, in the index, and the untracked files."""
        if not self._may_have_stash():
            return
        with self._note_failure(b".git/refs/stash"):
            entries = read_stash(self._project.repository, self._commit("refs/stash"))
            for number, commit in islice(enumerate(reversed(entries)), _MOST_STASHED):
                with self._note_failure(b".git/stash@{%d}" % number):
                    self._keep_stashed(b"stash/%d" % number, commit)
            if len(entries) > _MOST_STASHED:
                more = len(entries) - _MOST_STASHED
                self._trouble[b".git/refs/stash"] = f"{more} more entries are not kept"

    def _may_have_stash(self) -> bool:
        """Without a file that could name a stash there is none, and git need not be asked."""
        common = self._project.repository.common_dir
        places = (common / "refs/stash", common / "packed-refs", common / "reftable")
        return any(map(os.path.lexists, places))

    def keep_autostashes(self) -> None:
        """Keep what a merge or a rebase stashed by itself: no ref leads to it."""
        for name in _AUTOSTASHES:
            with open_path(self._project.repository.git_dir, name) as found:
                file = read_entry(found[0], _MOST_FILE_BYTES) if isinstance(found, tuple) else None
            commit = file.data.decode(errors="replace").strip() if isinstance(file, Content) else ""
            if _OID.fullmatch(commit):
                with self._note_failure(b".git/" + name):
                    self._keep_stashed(b"stash/" + name.rpartition(b"/")[2].lower(), commit)

    def _keep_stashed(self, place: bytes, commit: str) -> None:
        base, *others = self.index.parents(commit) or [self._shadow.empty_tree]
        parts = [(b"worktree", self.index.changed_between(base, commit))]
        if others:
            parts.append((b"index", self.index.changed_between(base, others[0])))
        if len(others) > 1:
            parts.append((b"untracked", self.index.list_in_commit(others[1])))
        for name, found in parts:
            self._copy(
                [(b"%s/%s/%s" % (place, name, tree_path(entry.path)), entry) for entry in found]
            )
        subject = self.index.subject(commit).rstrip(b"\n")
        about = b"%s\nstash %s\nbase %s\n" % (subject, commit.encode(), base.encode())
        self._stream.put(place + b"/about.txt", b"100644", about)

    def keep_operation(self) -> None:
        repository = self._project.repository
        for folder in (repository.git_dir, repository.common_dir):
            if os.path.isdir(folder) and not os.access(folder, os.X_OK):
                self._trouble[b".git"] = os.strerror(errno.EACCES)
                return
        places = [(repository.git_dir, name) for name in _GIT_FILES]
        places += [(repository.common_dir, name) for name in _COMMON_FILES]
        for folder, name in places:
            with open_path(folder, name) as found:
                if isinstance(found, tuple):
                    self._keep_file(*found, name)
                elif found not in (None, FOLDER):
                    self._trouble[b".git/" + name] = found
        for name in _GIT_FOLDERS:
            walk = SnapshotWalk(repository.git_dir, frozenset(), self._project.deadline, name)
            for inside in walk.folders():
                for file, status in inside.files.items():
                    self._keep_file(inside.entry(file, status), status, inside.prefix + file)
            self._trouble.update((b".git/" + path, why) for path, why in walk.not_read.items())

    def _keep_file(self, entry: WalkEntry, status: os.stat_result, name: bytes) -> None:
        if status.st_size > _MOST_FILE_BYTES:
            return
        found = read_entry(entry, _MOST_FILE_BYTES)
        if isinstance(found, str):
            self._trouble[b".git/" + name] = found
        if isinstance(found, Content):
            place = b"gitdir/" + tree_path(name)
            self._stream.put(place, git_mode(found.status.st_mode), found.data)

    def _commit(self, name: str) -> str | None:
        try:
            return self._project.with_brief_deadline().commit_of(name)
        except RepositoryProblem:
            return None

    def _copy(self, wanted: Sequence[tuple[bytes, IndexEntry]]) -> None:
        """Copy blobs of the project into these places; those that the shadow has are only named."""
        places: dict[str, list[tuple[bytes, IndexEntry]]] = defaultdict(list)
        for place, entry in wanted:
            places[entry.oid].append((place, entry))
        known = self._find_stored(list(places))
        for oid in known:
            for place, entry in places.pop(oid):
                self._stream.refer(place, entry.mode, oid)
        for oid, data in self.index.blobs(list(places)):
            self._written.add(oid)
            for place, entry in places.pop(oid):
                self._stream.put(place, entry.mode, data)
        for missing in places.values():
            for place, _entry in missing:
                self._trouble[place] = "its object is missing or too large"

    def _find_stored(self, oids: Sequence[str]) -> list[str]:
        if not oids:
            return []
        if not self._written:
            self._written = {oid for _mode, oid in self._stream.written.values()}
        written = self._written
        stdin = "\n".join(oid for oid in oids if oid not in written).encode()
        answers = self._shadow.call("cat-file", "--batch-check", stdin=stdin).splitlines()
        there = {line.split()[0].decode() for line in answers if line.split()[1:2] == [b"blob"]}
        return [oid for oid in oids if oid in written or oid in there]

    @contextmanager
    def _note_failure(self, name: bytes) -> Iterator[None]:
        try:
            yield
        except StoreUnavailable as error:
            if self._project.deadline.has_passed():
                raise
            _, _, why = error.message.partition(f"{escape(os.fspath(self._shadow.path))}: ")
            self._trouble[name] = f"cannot be read: {why or error.message}"
