"""Take a snapshot: the work tree, what only the index has, and the operation in progress, in one commit of the shadow.

`worktree/` is the work tree byte for byte, `index/<stage>/` what is staged and not committed, `stash/<n>/` what was stashed,
`nested/` the git directories of nested repositories, `modules/` those of submodules, `gitdir/` the small files that say which
operation is in progress; `manifest.json` has what trees cannot say. The project is only read.
"""

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.base.first_use import dataclass
from guard.core.base.text import is_id
from guard.core.rescue.settings import RescueSettings, SnapshotLimits
from guard.core.snapshots.snapshot import Occasion, Snapshot, list_skipped
from guard.errors import RepositoryProblem, StoreUnavailable, WrongUsage
from guard.snapshots.collect import SnapshotDraft
from guard.snapshots.project import Project, Site
from guard.snapshots.rebuilt import read_outside_rules
from guard.snapshots.shadow import REFS, UNPROMOTED, Shadow, open_shadow, recovery_command
from guard.snapshots.stat_cache import (
    CachedFiles,
    RulesMark,
    StatCache,
    note_rules,
    recall,
    recall_rules,
    remember,
)

_USUAL = SnapshotLimits()
_LONGEST_NAME = 100
_REMEMBERED = (b"worktree", b"nested", b"modules")


@dataclass(frozen=True)
class Taken:
    """A snapshot that was read back, with what a rescue has to know of it."""

    snapshot: Snapshot
    kept: CachedFiles
    trouble: Mapping[bytes, str]
    """Why a path is not in it, or not as it was."""
    unread: Mapping[bytes, str]
    """Of these, what is in the work tree; else it is in the git directory."""
    absent: frozenset[bytes]
    """Wanted paths that are not in the work tree."""
    folders: frozenset[bytes]
    """Wanted paths that are folders there."""
    rebuilt: Mapping[bytes, str]
    """Folders, and files beside them, that a tool may rebuild: what git ignores there is not in the snapshot."""


@contextmanager
def _pause_garbage_collector() -> Iterator[None]:
    """With very many files the garbage collector would look through all of them again and again, and find nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_pause_garbage_collector()
def take(
    project: Project,
    shadow: Shadow,
    occasion: Occasion,
    wanted: Sequence[bytes] = (),
    limits: SnapshotLimits = _USUAL,
) -> Taken:
    """Make a snapshot, and read it back; `wanted` are paths that are in it even in a folder that a tool rebuilds.

    It starts from the last one of the same work tree; if that turns out to be damaged, from nothing.
    """
    root = project.repository.root
    memory = recall(shadow.path, root, len(shadow.empty_tree) // 2)
    trees = shadow.trees_of(memory.commit, memory.packs) if memory.commit else None
    if trees is not None:
        base = {name: trees.get(name, shadow.empty_tree) for name in _REMEMBERED}
        identity = _identity(occasion)
        try:
            return _write(project, shadow, occasion, identity, wanted, limits, memory, base)
        except StoreUnavailable:
            if shadow.deadline.has_passed():
                raise
        _withdraw(shadow, identity)
    identity, none = _identity(occasion), dict.fromkeys(_REMEMBERED, shadow.empty_tree)
    return _write(project, shadow, occasion, identity, wanted, limits, StatCache(), none)


def _identity(occasion: Occasion) -> str:
    return f"{occasion.name[:_LONGEST_NAME]}-{os.urandom(4).hex()}"


def _withdraw(shadow: Shadow, identity: str) -> None:
    """Delete the refs of a snapshot that is not what it should be, so that it is not found."""
    for folder in (UNPROMOTED, REFS):
        with suppress(StoreUnavailable):
            shadow.call("update-ref", "-d", f"{folder}/{identity}")


def _write(
    project: Project,
    shadow: Shadow,
    occasion: Occasion,
    identity: str,
    wanted: Sequence[bytes],
    limits: SnapshotLimits,
    before: StatCache,
    base: Mapping[bytes, str],
) -> Taken:
    ref, root = f"{REFS}/{identity}", project.repository.root
    with shadow.import_commit(ref) as stream:
        for name, tree in base.items():
            if tree != shadow.empty_tree:
                stream.start_from(name, tree)
        # At a baseline the rules are the user's; later, the agent may have written some.
        trusts, rules = occasion.kind == "baseline", recall_rules(shadow.path, root)
        taking = SnapshotDraft(project, shadow, stream, before, wanted, limits, rules, trusts)
        taking.collect()
        skipped = taking.find_skipped()
        stream.put(b"manifest.json", b"100644", taking.manifest(identity, occasion, skipped))
        if occasion.kind == "rescue":
            stream.name_too(f"{UNPROMOTED}/{identity}", ref)
        limits.tell("saving the work tree; waiting for the disk")
    limits.tell("reading the snapshot back")
    commit, packs = shadow.verify(ref, stream.changes, base)
    now = StatCache(commit, packs, "", *(table.now for table in taking.tables))
    remember(shadow.path, root, now, before)
    if occasion.kind == "baseline":
        note_rules(shadow.path, root, RulesMark(commit, read_outside_rules(project).digest))
    kept = taking.worktree.files
    return Taken(
        snapshot=Snapshot(
            id=identity,
            ref=ref,
            files=len(kept),
            skipped=list_skipped(skipped),
            whole=taking.whole,
            recover=recovery_command(shadow.path, ref, len(kept)),
        ),
        kept=kept,
        trouble=taking.trouble,
        unread=taking.unread,
        absent=frozenset(taking.absent),
        folders=frozenset(taking.folders),
        rebuilt={**taking.walk.rebuilt, **taking.walk.rebuilt_files},
    )


def promote(shadow: Shadow, snapshot: Snapshot) -> None:
    """Treat a rescue's snapshot like any other from now on, because all of its work is committed."""
    with suppress(StoreUnavailable):
        shadow.call("update-ref", "-d", f"{UNPROMOTED}/{snapshot.id}")


@contextmanager
def open_for_snapshot(project: Project, workspace: Path, occasion: Occasion) -> Iterator[Shadow]:
    """Open the shadow repository, once it is clear that a snapshot of this name can be taken."""
    name = occasion.name
    if not is_id(name[:_LONGEST_NAME]):
        raise WrongUsage(f"{name[:40]!r} cannot name a snapshot", "use letters, digits and hyphens")
    if not project.repository.root.is_dir():
        raise RepositoryProblem(
            f"the work tree {project.repository.root} no longer exists",
            "restore it from an earlier snapshot: `guard snapshots` lists them",
        )
    object_format = project.object_format()
    with open_shadow(workspace, project.environ, project.deadline, object_format) as shadow:
        yield shadow


def prepare_site(guard: Invocation) -> Site:
    """Make the workspace ready, which a snapshot may be the first to write to; return where the work is."""
    guard.prepare_workspace()
    limit = guard.config.settings.rescue.time_limit_seconds
    return Site(guard.repository, guard.workspace.path, guard.environ, limit)


def keep(guard: Invocation, occasion: Occasion, *, tells: bool = True) -> Snapshot:
    """Take a snapshot for a command, and show a live line meanwhile unless `tells` is false."""
    site, live = prepare_site(guard), guard.output.live()
    limits = SnapshotLimits(guard.config.settings.rescue, live.show_progress if tells else None)
    try:
        return take_and_prune(site, occasion, limits=limits)
    finally:
        live.clear()


def take_and_prune(
    site: Site, occasion: Occasion, paths: Sequence[bytes] = (), limits: SnapshotLimits = _USUAL
) -> Snapshot:
    """Take a snapshot and prune old ones; `paths` are kept even where git ignores them in a folder that a tool rebuilds."""
    project = site.project()
    with open_for_snapshot(project, site.workspace, occasion) as shadow:
        taken = take(project, shadow, occasion, paths, limits).snapshot
    prune_old(project, site.workspace, limits.settings, occasion.at)
    return taken


def prune_old(project: Project, workspace: Path, keeping: RescueSettings, now: datetime) -> None:
    from guard.snapshots.prune import may_be_due, prune_if_worth_it

    if not project.deadline.has_passed() and may_be_due(workspace, keeping):
        left = project.deadline.left()
        prune_if_worth_it(workspace, project.environ, keeping, now=now, time_limit=left)
