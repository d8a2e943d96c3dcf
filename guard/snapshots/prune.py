"""Delete old snapshots and free their space; killed at any moment, every snapshot that stays is whole.

First the refs go, in one transaction. Then git copies what the others need into a new pack, and only when that is on the disk
it deletes the old ones. No other guard may write meanwhile: a guard that cannot be alone leaves the space to the next time.
Git itself holds the lock too, because it goes on when guard is killed: a new snapshot would count on what it is about to
delete.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from guard.core.base.first_use import dataclass
from guard.core.base.text import escape, fit_line
from guard.core.rescue.settings import RescueSettings
from guard.core.snapshots.retention import SnapshotFacts, due_ids, slack
from guard.errors import GuardError, StoreUnavailable
from guard.snapshots.inventory import Reference, Shelf, open_shelf
from guard.snapshots.shadow import LOCK, REFS, SHADOW_FOLDER, UNPROMOTED, refuse_untrusted
from guard.system.private_files import Folder, close, try_lock

_OWED = "guard.owed"
"""Stands in the shadow while there may be packs with deleted snapshots in them."""
_MOST_PACKS = 50
_ASIDE_SHARE = 0.5
_REPACK = ("-c", "repack.writeBitmaps=false", "repack", "-d", "-n", "-q", "--window=0")


class PruneResult(NamedTuple):
    """The deleted snapshots, the space that was freed, and why more may follow."""

    ids: tuple[str, ...] = ()
    freed_bytes: int = 0
    left: str | None = None


def may_be_due(workspace: Path, keeping: RescueSettings) -> bool:
    """Tell whether there are more snapshots than are kept in any case, or very many packs."""
    shadow = workspace / SHADOW_FOLDER
    try:
        snapshots, packs = os.listdir(shadow / REFS), os.listdir(shadow / "objects/pack")
    except OSError:
        return True
    return len(snapshots) > keeping.keep_snapshots or len(packs) > 2 * _MOST_PACKS


def prune_if_worth_it(
    workspace: Path,
    environ: Mapping[str, str],
    keeping: RescueSettings,
    *,
    now: datetime,
    time_limit: float,
) -> PruneResult:
    """Prune when enough snapshots are due; for use after a snapshot, which no trouble here may spoil."""
    enough = slack(keeping.keep_snapshots)
    try:
        return prune(workspace, environ, keeping, now=now, time_limit=time_limit, at_least=enough)
    except GuardError as error:
        return PruneResult(left=error.message)


def prune(
    workspace: Path,
    environ: Mapping[str, str],
    keeping: RescueSettings,
    *,
    now: datetime,
    time_limit: float,
    at_least: int = 1,
) -> PruneResult:
    """Delete what is due, if it is at least so many, and free the space of all that is gone."""
    with open_shelf(workspace, environ, time_limit=time_limit) as shelf:
        entries, _damaged = shelf.inventory()
        references = {reference.id: reference for reference in shelf.references()}
    shadow = Folder.open(workspace / SHADOW_FOLDER)
    if shadow is None:
        return PruneResult()
    refuse_untrusted(workspace)
    held = [
        SnapshotFacts(
            entry.id, entry.worktree, entry.at, entry.unpromoted, entry.kind == "baseline"
        )
        for entry in entries
        if entry.id in references
    ]
    kept, days = keeping.keep_snapshots, keeping.keep_days
    ids = due_ids(held, keep_snapshots=kept, keep_days=days, now=now)
    with shadow:
        work = _Pruner(shelf, shadow)
        gone = ids if len(ids) >= at_least else ()
        if gone:
            work.delete([references[identity] for identity in gone])
        freed, left = work.give_back()
    return PruneResult(gone, freed, left)


def promote_by_id(
    workspace: Path, environ: Mapping[str, str], identity: str, *, time_limit: float
) -> None:
    refuse_untrusted(workspace)
    shelf = Shelf(workspace / SHADOW_FOLDER, environ, time_limit)
    _call(shelf, ("update-ref", "--no-deref", "-d", f"{UNPROMOTED}/{identity}"))


@dataclass(frozen=True)
class _Pruner:
    shelf: Shelf
    folder: Folder

    def delete(self, due_now: list[Reference]) -> None:
        """Delete their refs, all or none; none if one of them was marked as unpromoted meanwhile."""
        nothing = "0" * len(due_now[0].commit)
        lines = ["start"]
        for reference in due_now:
            lines += [f"verify {UNPROMOTED}/{reference.id} {nothing}"]
            lines += [f"delete {REFS}/{reference.id} {reference.commit}"]
        lines += ["prepare", "commit", ""]
        self.folder.replace(_OWED, b"", locked=False)
        words = ("update-ref", "--no-deref", "--stdin")
        _call(self.shelf, words, "\n".join(lines).encode())

    def give_back(self) -> tuple[int, str | None]:
        """Repack; return how many bytes were freed, and why no more."""
        owed = self.folder.exists(_OWED)
        if not owed and self._packs() <= _MOST_PACKS:
            return 0, None
        with self._take_lock() as lock:
            if lock is None:
                return 0, "another process uses the snapshots; guard frees their space next time"
            before = self._bytes()
            how = "-a" if owed else "--geometric=2"
            hurried = replace(self.shelf, time_limit=self.shelf.time_limit * _ASIDE_SHARE)
            _call(hurried, (*_REPACK, how), lends=(lock,))
            self.folder.remove(_OWED)
            return max(0, before - self._bytes()), None

    def _packs(self) -> int:
        names = os.listdir(self.shelf.path / "objects/pack")
        return sum(name.endswith(".pack") for name in names)

    def _bytes(self) -> int:
        with os.scandir(self.shelf.path / "objects/pack") as found:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in found)

    @contextmanager
    def _take_lock(self) -> Iterator[int | None]:
        """Take the lock; None if another process has it."""
        descriptor = self.folder.open_file(LOCK, os.O_RDWR | os.O_CREAT)
        try:
            yield descriptor if try_lock(descriptor) else None
        finally:
            close(descriptor)


def _call(
    shelf: Shelf, words: tuple[str, ...], stdin: bytes = b"", lends: tuple[int, ...] = ()
) -> None:
    finished = shelf.run(*words, stdin=stdin, lends=lends)
    if finished.code != 0:
        place = escape(os.fspath(shelf.path))
        raise StoreUnavailable(
            fit_line(f"cannot prune the snapshots in {place}: {finished.message}"),
            "guard deleted none that should stay; `guard snapshots` lists them",
        )
