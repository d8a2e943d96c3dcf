"""What the git directory holds of uncommitted work: what is staged, what is stashed, and the operation in progress."""

import errno
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from guard.core.base.text import visible
from guard.core.snapshots.paths import tree_path
from guard.errors import RepositoryProblem, StoreUnavailable
from guard.git.reflogs import stash
from guard.snapshots.fast_import import Stream
from guard.snapshots.project import Project
from guard.snapshots.read_file import Content, mode_of, read
from guard.snapshots.shadow import Shadow
from guard.snapshots.staged import IndexEntry, ProjectIndex
from guard.snapshots.walk import FOLDER, SnapshotWalk, WalkEntry, reached

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
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class PutAside:
    """Writes it into the snapshot; what cannot be read becomes a note, and the rest goes on."""

    def __init__(
        self, project: Project, shadow: Shadow, stream: Stream, trouble: dict[bytes, str]
    ) -> None:
        self.index = ProjectIndex(shadow, project.repository)
        self._project, self._shadow, self._stream = project, shadow, stream
        self._trouble = trouble
        self._written: set[str] = set()

    def staged(self) -> None:
        """What is in the index and not in the last commit, with the sides of conflicts."""
        with self._noted(b".git/index"):
            own = self.index.only_staged(self._commit("HEAD"))
            self._copy([(b"index/%d/%s" % (one.stage, tree_path(one.path)), one) for one in own])

    def stashed(self) -> None:
        """What each entry of the stash changes: in the work tree, in the index, and the files that were untracked."""
        if not self._may_have_stash():
            return
        with self._noted(b".git/refs/stash"):
            entries = stash(self._project.repository, self._commit("refs/stash"))
            for number, commit in islice(enumerate(reversed(entries)), _MOST_STASHED):
                with self._noted(b".git/stash@{%d}" % number):
                    self._keep_stashed(b"stash/%d" % number, commit)
            if len(entries) > _MOST_STASHED:
                more = len(entries) - _MOST_STASHED
                self._trouble[b".git/refs/stash"] = f"{more} more entries are not kept"

    def _may_have_stash(self) -> bool:
        """Without a file that could name it there is none, and nobody has to be asked."""
        common = self._project.repository.common_dir
        places = (common / "refs/stash", common / "packed-refs", common / "reftable")
        return any(map(os.path.lexists, places))

    def set_aside(self) -> None:
        """What a merge or a rebase stashed by itself: no ref leads to it."""
        for name in _AUTOSTASHES:
            with reached(self._project.repository.git_dir, name) as found:
                told = read(found[0], _MOST_FILE_BYTES) if isinstance(found, tuple) else None
            commit = told.data.decode(errors="replace").strip() if isinstance(told, Content) else ""
            if _OID.fullmatch(commit):
                with self._noted(b".git/" + name):
                    self._keep_stashed(b"stash/" + name.rpartition(b"/")[2].lower(), commit)

    def _keep_stashed(self, place: bytes, commit: str) -> None:
        base, *others = self.index.parents(commit) or [self._shadow.empty_tree]
        parts = [(b"worktree", self.index.changed_between(base, commit))]
        if others:
            parts.append((b"index", self.index.changed_between(base, others[0])))
        if len(others) > 1:
            parts.append((b"untracked", self.index.in_commit(others[1])))
        for name, found in parts:
            self._copy([(b"%s/%s/%s" % (place, name, tree_path(one.path)), one) for one in found])
        about = b"%s\nstash %s\nbase %s\n"
        said = about % (
            self.index.subject(commit).rstrip(b"\n"),
            commit.encode(),
            base.encode(),
        )
        self._stream.put(place + b"/about.txt", b"100644", said)

    def operation(self) -> None:
        """The small files that say what git is in the middle of."""
        repository = self._project.repository
        for folder in (repository.git_dir, repository.common_dir):
            if os.path.isdir(folder) and not os.access(folder, os.X_OK):
                self._trouble[b".git"] = os.strerror(errno.EACCES)
                return
        places = [(repository.git_dir, name) for name in _GIT_FILES]
        places += [(repository.common_dir, name) for name in _COMMON_FILES]
        for folder, name in places:
            with reached(folder, name) as found:
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
        found = read(entry, _MOST_FILE_BYTES)
        if isinstance(found, str):
            self._trouble[b".git/" + name] = found
        if isinstance(found, Content):
            place = b"gitdir/" + tree_path(name)
            self._stream.put(place, mode_of(found.status.st_mode), found.data)

    def _commit(self, name: str) -> str | None:
        try:
            return self._project.briefly().commit_of(name)
        except RepositoryProblem:
            return None

    def _copy(self, wanted: Sequence[tuple[bytes, IndexEntry]]) -> None:
        """Blobs of the project into these places; those that the shadow has are only named."""
        places: dict[str, list[tuple[bytes, IndexEntry]]] = defaultdict(list)
        for place, one in wanted:
            places[one.oid].append((place, one))
        known = self._known(list(places))
        for oid in known:
            for place, one in places.pop(oid):
                self._stream.refer(place, one.mode, oid)
        for oid, data in self.index.blobs(list(places)):
            self._written.add(oid)
            for place, one in places.pop(oid):
                self._stream.put(place, one.mode, data)
        for missing in places.values():
            for place, _one in missing:
                self._trouble[place] = "its object is missing or too large"

    def _known(self, oids: Sequence[str]) -> list[str]:
        if not oids:
            return []
        if not self._written:
            self._written = {oid for _mode, oid in self._stream.written.values()}
        written = self._written
        asked = "\n".join(oid for oid in oids if oid not in written).encode()
        answers = self._shadow.call("cat-file", "--batch-check", stdin=asked).splitlines()
        there = {line.split()[0].decode() for line in answers if line.split()[1:2] == [b"blob"]}
        return [oid for oid in oids if oid in written or oid in there]

    @contextmanager
    def _noted(self, name: bytes) -> Iterator[None]:
        try:
            yield
        except StoreUnavailable as error:
            if self._project.deadline.passed():
                raise
            _, _, why = error.message.partition(f"{visible(os.fspath(self._shadow.path))}: ")
            self._trouble[name] = f"cannot be read: {why or error.message}"
