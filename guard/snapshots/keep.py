"""Keep the work tree as it is: take one snapshot, then prune the old ones."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.events.snapshot import Occasion, Snapshot
from guard.git.locate import Repository
from guard.git.search_path import outside
from guard.snapshots.limits import SnapshotLimits
from guard.snapshots.project import Project
from guard.snapshots.take import ready, take
from guard.system.deadline import Deadline

_USUAL = SnapshotLimits()


def keep(guard: Invocation, occasion: Occasion, *, tells: bool = True) -> Snapshot:
    """Take a snapshot for a command, and show a live line meanwhile unless `tells` is false."""
    # A snapshot may be the first thing that is written to the workspace.
    guard.prepare_workspace()
    settings, live = guard.config.settings.rescue, guard.output.live()
    try:
        return snapshot(
            guard.repository,
            guard.workspace.path,
            guard.environ,
            occasion=occasion,
            time_limit=settings.time_limit_seconds,
            limits=SnapshotLimits.of(settings, live.far if tells else None),
        )
    finally:
        live.clear()


def snapshot(
    repository: Repository,
    workspace_path: Path,
    environ: Mapping[str, str],
    *,
    occasion: Occasion,
    time_limit: float,
    paths: Sequence[bytes] = (),
    limits: SnapshotLimits = _USUAL,
) -> Snapshot:
    """Keep the work tree as it is; `paths` are kept even in folders that are left out as rebuilt anyway."""
    project = Project(repository, outside(environ, repository.root), Deadline(time_limit))
    with ready(project, workspace_path, occasion) as shadow:
        taken = take(project, shadow, occasion, paths, limits).snapshot
    tidy(project, workspace_path, limits, occasion.at)
    return taken


def tidy(project: Project, workspace_path: Path, limits: SnapshotLimits, now: datetime) -> None:
    """Old snapshots go, as far as there is time for it, and only if there may be any to go."""
    from guard.snapshots import prune as retention

    keeping = retention.Keeping(limits.keep_snapshots, limits.keep_days)
    if not project.deadline.passed() and retention.may_be_due(workspace_path, keeping):
        left = project.deadline.left()
        retention.tidy(workspace_path, project.environ, keeping, now=now, time_limit=left)
