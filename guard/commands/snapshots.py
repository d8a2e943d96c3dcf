"""`guard snapshots`."""

import os
from typing import TYPE_CHECKING

import click

from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.base.paths import spell
from guard.core.base.text import plural
from guard.core.snapshots.report import SnapshotsReport, size_text, snapshot_table

if TYPE_CHECKING:
    from guard.snapshots.prune import PruneResult


@click.command("snapshots")
@click.option(
    "--all",
    "everywhere",
    is_flag=True,
    help="List the snapshots of all work trees of the workspace.",
)
@click.option(
    "--prune", is_flag=True, help="First delete the snapshots that need not be kept any longer."
)
@click.option(
    "--fetch",
    is_flag=True,
    help="First fetch the snapshots that other machines have pushed to `rescue.remote`.",
)
@click.option(
    "--promoted",
    metavar="ID",
    help="Mark the work in this snapshot as taken over, so that it may be pruned.",
)
@prints_report
def command(
    guard: Invocation,
    everywhere: bool,
    prune: bool,
    fetch: bool,
    promoted: str | None,
    form: str,
) -> None:
    """List the snapshots of the work tree, the newest last.

    A snapshot is unpromoted while it holds rescued work that is not all on the branch; guard never prunes it. Guard
    also keeps the newest snapshot of a work tree, its last baseline, the newest `rescue.keep_snapshots`, and those
    younger than `rescue.keep_days`. `guard restore` restores one.
    """
    from guard.snapshots.inventory import report_places
    from guard.snapshots.last_resort import find_fallbacks
    from guard.snapshots.prune import PruneResult

    if fetch:
        from guard.snapshots.remote import fetch_snapshots

        for identity in fetch_snapshots(guard):
            guard.output.note(f"fetched snapshot {identity}")
    place = guard.workspace
    root = None if everywhere or place.repository is None else place.repository.root
    worktree = None if root is None else spell(os.fsencode(root))
    taken_over = _promote(guard, promoted, worktree) if promoted is not None else None
    gone = _prune(guard) if prune else PruneResult()
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    places = (place.path, *find_fallbacks(guard))
    warn = guard.output.warn
    report = report_places(places, guard.environ, worktree, time_limit=limit, warn=warn)
    done = {"pruned": gone.ids, "freed_bytes": gone.freed_bytes, "promoted": taken_over}
    report = report.model_copy(update=done)
    for damaged in report.damaged:
        guard.output.warn(f"snapshot {damaged.id} is damaged: {damaged.why}")
    guard.output.document(report, form, _text)


def _promote(guard: Invocation, word: str, worktree: str | None) -> str:
    from guard.snapshots.inventory import open_shelf
    from guard.snapshots.prune import promote_by_id

    place, limit = guard.workspace.path, guard.users_config.settings.rescue.time_limit_seconds
    with open_shelf(place, guard.environ, time_limit=limit) as shelf:
        found = shelf.find(word, worktree)
    if found.unpromoted:
        promote_by_id(place, guard.environ, found.id, time_limit=limit)
    return found.id


def _prune(guard: Invocation) -> "PruneResult":
    from guard.snapshots.prune import prune

    settings = guard.users_config.settings.rescue
    gone = prune(
        guard.workspace.path,
        guard.environ,
        settings,
        now=guard.clock.now(),
        time_limit=settings.time_limit_seconds,
    )
    if gone.left:
        guard.output.warn(gone.left)
    return gone


def _text(report: SnapshotsReport) -> str:
    lines = []
    if report.promoted is not None:
        lines.append(f"{report.promoted}: its work is marked as taken over, and guard may prune it")
    if report.pruned:
        freed = size_text(report.freed_bytes)
        lines.append(f"pruned {plural(len(report.pruned), 'snapshot')}, {freed} freed:")
        lines += [f"  {identity}" for identity in report.pruned]
    return "\n".join([*lines, snapshot_table(report)])
