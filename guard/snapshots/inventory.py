"""List and find snapshots, without writing anything: on a full or read-only disk, and while another guard writes."""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from guard.core.base.fields import parse_document
from guard.core.base.first_use import dataclass, late_pattern
from guard.core.base.paths import unspell
from guard.core.base.text import escape, fit_line, is_id
from guard.core.snapshots.paths import CACHE, ENVIRONMENT, PACKAGES, tree_path
from guard.core.snapshots.snapshot import Anchor, Manifest, list_skipped
from guard.errors import GuardError, StateProblem, WrongUsage
from guard.git.run import run_git
from guard.snapshots.objects import Objects, ObjectUnreadable
from guard.snapshots.shadow import (
    LOCK,
    OPTIONS,
    REFS,
    SHADOW_FOLDER,
    UNPROMOTED,
    recovery_command,
    refuse_pipes,
)
from guard.system.private_files import Folder, close
from guard.system.processes import Finished

if TYPE_CHECKING:
    from guard.core.snapshots.report import DamagedSnapshot, SnapshotEntry, SnapshotsReport

LATEST = "latest"
_BROKEN = late_pattern(rb"broken ref (\S+)")
_MOST_NEAR = 5
_MOST_ASKED = 500


class Reference(NamedTuple):
    """A snapshot by its name; `commit` is empty if even that cannot be read."""

    id: str
    commit: str
    written_ns: int
    unpromoted: bool


class Inventory(NamedTuple):
    """All snapshots, the oldest first, and those that cannot be read."""

    entries: "tuple[SnapshotEntry, ...]"
    damaged: "tuple[DamagedSnapshot, ...]"


@dataclass(frozen=True)
class Shelf:
    """The shadow repository, open for reading."""

    path: Path
    environ: Mapping[str, str]
    time_limit: float

    def run(self, *words: str, stdin: bytes = b"", lends: Sequence[int] = ()) -> Finished:
        return run_git(
            *OPTIONS,
            *words,
            environ=self.environ,
            git_dir=self.path,
            time_limit=self.time_limit,
            stdin=stdin,
            lends=lends,
        )

    def objects(self) -> Objects:
        return Objects(self.path, self.environ, self.time_limit)

    def references(self) -> list[Reference]:
        if not self.path.is_dir():
            return []
        answer = self.run("for-each-ref", "--format=%(objectname) %(refname)", REFS, UNPROMOTED)
        if answer.code != 0:
            place = escape(os.fspath(self.path))
            raise StateProblem(
                fit_line(f"cannot read the snapshots in {place}: {answer.message}"),
                f"run `git --git-dir={self.path} fsck`; guard changed nothing",
            )
        named = {ref.decode(): "" for ref in _BROKEN.findall(answer.stderr)}
        for line in answer.stdout.decode(errors="replace").splitlines():
            commit, _, ref = line.partition(" ")
            named[ref] = commit
        return sorted(self._parse_refs(named), key=lambda reference: reference.id)

    def _parse_refs(self, named: Mapping[str, str]) -> Iterator[Reference]:
        for ref, commit in named.items():
            folder, _, identity = ref.rpartition("/")
            if folder == REFS and is_id(identity):
                unpromoted = f"{UNPROMOTED}/{identity}" in named
                yield Reference(identity, commit, _ref_time(self.path / ref), unpromoted)

    def inventory(self) -> Inventory:
        from guard.core.snapshots.report import DamagedSnapshot

        entries, damaged = [], []
        with self.objects() as objects:
            for reference in self.references():
                try:
                    manifest = read_manifest(objects, reference.commit)
                except ObjectUnreadable as error:
                    damaged.append(DamagedSnapshot(id=reference.id, why=fit_line(str(error))))
                else:
                    entries.append(
                        (manifest.at, reference.written_ns, self._entry(reference, manifest))
                    )
        entries.sort(key=lambda entry: (*entry[:2], entry[2].id))
        return Inventory(tuple(entry for *_, entry in entries), tuple(damaged))

    def anchors(self) -> list[Anchor]:
        """List what the snapshots remember of the log, as far as they can be read."""
        found = []
        with self.objects() as objects:
            for reference in self.references():
                with suppress(ObjectUnreadable):
                    manifest = read_manifest(objects, reference.commit)
                    if manifest.log is not None:
                        log = manifest.log
                        found.append(Anchor(reference.id, manifest.at, log.seq, log.hash))
        return found

    def report(self, worktree: str | None) -> "SnapshotsReport":
        from guard.core.snapshots.report import SnapshotsReport

        entries, damaged = self.inventory()
        return SnapshotsReport(
            worktree=worktree,
            snapshots=tuple(entry for entry in entries if worktree in (None, entry.worktree)),
            damaged=damaged,
            pruned=(),
            freed_bytes=0,
            promoted=None,
        )

    def _entry(self, reference: Reference, manifest: Manifest) -> "SnapshotEntry":
        from guard.core.snapshots.report import SnapshotEntry

        return SnapshotEntry(
            id=reference.id,
            at=manifest.at,
            kind=manifest.kind,
            run=manifest.run,
            iteration=manifest.iteration,
            worktree=manifest.worktree,
            files=manifest.files,
            bytes=manifest.bytes,
            whole=manifest.whole,
            skipped=list_skipped(manifest.skipped),
            unpromoted=reference.unpromoted,
            recover=recovery_command(self.path, f"{REFS}/{reference.id}", manifest.files),
        )

    def find_kept(self, ref: str, paths: Iterable[bytes]) -> set[bytes]:
        """Return which of these paths, files or folders, the work tree of a snapshot has."""
        bare = {path.rstrip(b"/") for path in paths}
        places = {b"worktree/" + tree_path(path): path for path in bare - {b"."}}
        places |= {b"worktree": b"."} if b"." in bare else {}
        found: set[bytes] = set()
        names = iter(places)
        while part := list(islice(names, _MOST_ASKED)):
            words = ("ls-tree", "-z", "--name-only", "--full-tree", ref, "--")
            answer = self.run(*words, *map(os.fsdecode, part))
            if answer.code == 0:
                found.update(places[name] for name in answer.stdout.split(b"\0") if name in places)
        return found

    def list_lost(self, ref: str) -> list[bytes]:
        """List what a snapshot should have and has not: not what a tool rebuilds."""
        identity = ref.rpartition("/")[2]
        commit = next((one.commit for one in self.references() if one.id == identity), "")
        try:
            with self.objects() as objects:
                manifest = read_manifest(objects, commit)
        except ObjectUnreadable:
            return []
        rebuilt = (PACKAGES, CACHE, ENVIRONMENT)
        return [unspell(left.path) for left in manifest.skipped if left.why not in rebuilt]

    def find(self, word: str, worktree: str | None) -> Reference:
        """Find the snapshot with this id, or with the only id that begins so; `latest` is the newest of this work tree."""
        known = {reference.id: reference for reference in self.references()}
        if not known:
            raise WrongUsage(
                f"there are no snapshots in {self.path.parent}", "take one with `guard snapshot`"
            )
        if word == LATEST:
            return known[self._latest_id(worktree)]
        fitting = [word] if word in known else [name for name in known if name.startswith(word)]
        if not word or not fitting:
            raise _unknown_id(word, list(known))
        if len(fitting) > 1:
            raise WrongUsage(
                f"more than one snapshot begins with {word!r}: {_join_some(fitting)}",
                "type more of the id",
            )
        return known[fitting[0]]

    def _latest_id(self, worktree: str | None) -> str:

        entries, damaged = self.inventory()
        worktrees = {entry.worktree for entry in entries}
        own = [entry for entry in entries if worktree in (None, entry.worktree)]
        if worktree is None and len(worktrees) > 1:
            raise WrongUsage(
                f"{self.path.parent} has snapshots of {len(worktrees)} work trees",
                "name a snapshot by its id; `guard snapshots --all` lists them",
            )
        if not own:
            broken = f"; guard cannot read {len(damaged)}" if damaged else ""
            raise WrongUsage(
                f"there is no snapshot of this work tree{broken}",
                "`guard snapshots --all` lists those of all work trees",
            )
        return own[-1].id


def report_places(
    places: Sequence[Path],
    environ: Mapping[str, str],
    worktree: str | None,
    *,
    time_limit: float,
    warn: Callable[[str], None],
) -> "SnapshotsReport":
    """Report the snapshots in several places; warn of a place that cannot be read, unless it is the only one."""
    from guard.core.snapshots.report import SnapshotsReport

    reports = []
    for place in places:
        try:
            with open_shelf(place, environ, time_limit=time_limit) as shelf:
                reports.append(shelf.report(worktree))
        except GuardError as error:
            if len(places) == 1:
                raise
            warn(error.message)
    entries = [entry for report in reports for entry in report.snapshots]
    return SnapshotsReport(
        worktree=worktree,
        snapshots=tuple(sorted(entries, key=lambda entry: entry.at)),
        damaged=tuple(damaged for report in reports for damaged in report.damaged),
        pruned=(),
        freed_bytes=0,
        promoted=None,
    )


def read_manifest(objects: Objects, commit: str) -> Manifest:
    """Read the manifest of a snapshot; `ObjectUnreadable` if it is missing or cannot be understood."""
    if not commit:
        raise ObjectUnreadable("its ref is broken")
    try:
        return parse_document(Manifest, objects.manifest(commit))
    except ValueError as error:
        raise ObjectUnreadable(f"manifest.json is not valid: {error}") from None
    except ObjectUnreadable as error:
        raise ObjectUnreadable(f"manifest.json: {error}") from None


@contextmanager
def open_shelf(
    workspace: Path, environ: Mapping[str, str], *, time_limit: float
) -> Iterator[Shelf]:
    """Open the snapshots of a workspace; while they are read, no guard repacks the space of deleted ones."""
    refuse_pipes(workspace)
    place = Folder.open(workspace)
    descriptor = -1
    if place is not None:
        with place:
            descriptor = _lock_shared(place)
    try:
        yield Shelf(workspace / SHADOW_FOLDER, environ, time_limit)
    finally:
        if descriptor >= 0:
            close(descriptor)


def _lock_shared(workspace: Folder) -> int:
    """Take the shared lock; a reader that cannot have it at once goes on without."""
    with workspace.walk(f"{SHADOW_FOLDER}/{LOCK}") as (shadow, name):
        if shadow is None or not shadow.exists(name):
            return -1
        descriptor = shadow.open_file(name)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        close(descriptor)
        return -1
    return descriptor


def _ref_time(ref: Path) -> int:
    """When a ref was made: this tells two snapshots of the same moment apart."""
    try:
        return os.lstat(ref).st_mtime_ns
    except OSError:
        return 0


def _unknown_id(word: str, known: list[str]) -> WrongUsage:
    near = get_close_matches(word, known, n=_MOST_NEAR, cutoff=0.5)
    meant = f"did you mean {_join_some(near)}? " if near else ""
    return WrongUsage(
        fit_line(f"there is no snapshot {word!r}"),
        f"{meant}`guard snapshots --all` lists them; for one path: `guard restore latest PATH`",
    )


def _join_some(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NEAR]) + (" …" if len(names) > _MOST_NEAR else "")
