"""`guard restore`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from guard.context.invocation import Invocation
from guard.context.output import colour, format_option
from guard.core.base.paths import spell
from guard.core.base.text import escape, plural
from guard.core.snapshots.report import RestoreDiffReport, RestoreReport, snapshot_table
from guard.errors import WrongUsage

if TYPE_CHECKING:
    from guard.snapshots.restore import ChosenSnapshot, SnapshotSource

_DAMAGED = 5
_NOT_ALL = 1


@click.command("restore")
@click.argument("identity", metavar="[ID|latest]", required=False)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write to this folder, which must be new or empty; by default a new one outside the work tree.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="Write to the work tree, over files that differ; guard takes a snapshot of it first.",
)
@click.option("--diff", is_flag=True, help="Print what would change, and write nothing.")
@click.option(
    "--staged",
    is_flag=True,
    help="Restore what was staged (by stage) or stashed, and the files of an operation in progress.",
)
@format_option
@click.pass_context
def command(
    ctx: click.Context,
    identity: str | None,
    paths: tuple[str, ...],
    to: Path | None,
    in_place: bool,
    diff: bool,
    staged: bool,
    form: str,
) -> None:
    """Restore files from a snapshot, or list the snapshots.

    Guard writes the files to a new folder, or with --in-place to the work tree. It never deletes anything there,
    and restores the git directory of a nested repository only if it is gone. Each PATH is a file or a folder,
    relative to the current folder if that lies in the work tree, else to the root of the work tree; without a PATH,
    guard restores everything.

    Exit code 1 if a path could not be written, 5 if the snapshot is damaged; guard restores what it can.
    """
    if in_place and (to is not None or staged):
        raise WrongUsage(
            "--in-place cannot be combined with --to or --staged", "leave one of them out"
        )
    if staged and diff:
        raise WrongUsage("--diff cannot be combined with --staged", "leave one of them out")
    guard = ctx.find_object(Invocation)
    assert guard is not None
    if identity is None:
        ctx.exit(_list(guard, form))
    from guard.snapshots.restore import choose

    with choose(_source(guard), identity, staged=staged) as snapshot:
        wanted = snapshot.resolve_paths(paths, None if staged else _here())
        if diff:
            ctx.exit(_diff(guard, snapshot, wanted, to, form))
        ctx.exit(_restore(guard, snapshot, wanted, to, in_place, form))


def _source(guard: Invocation) -> "SnapshotSource":
    from guard.core.rescue.settings import SnapshotLimits
    from guard.snapshots.last_resort import find_fallbacks
    from guard.snapshots.restore import SnapshotSource

    place, settings = guard.workspace, guard.users_config.settings.rescue
    limit, limits = settings.time_limit_seconds, SnapshotLimits(settings)
    others = find_fallbacks(guard)
    return SnapshotSource(place.path, place.repository, guard.environ, limit, limits, others)


def _here() -> Path | None:
    try:
        return Path(os.path.realpath(Path.cwd()))
    except FileNotFoundError:
        return None


def _list(guard: Invocation, form: str) -> int:
    from guard.snapshots.inventory import report_places

    source = _source(guard)
    report = report_places(
        (source.workspace, *source.fallbacks),
        source.environ,
        source.worktree,
        time_limit=source.time_limit,
        warn=guard.output.warn,
    )
    for damaged in report.damaged:
        guard.output.warn(f"snapshot {damaged.id} is damaged: {damaged.why}")
    guard.output.document(report, form, snapshot_table)
    return 0


def _restore(
    guard: Invocation,
    snapshot: "ChosenSnapshot",
    wanted: list[bytes],
    to: Path | None,
    in_place: bool,
    form: str,
) -> int:
    live = guard.output.live()

    def progress(done: int, of: int) -> None:
        live.say(f"restoring {snapshot.reference.id}; {done} of {plural(of, 'file')}")

    try:
        if in_place:
            place, found = snapshot.in_place(wanted, guard.clock.now(), progress)
        else:
            place, found = snapshot.to_folder(to, _here(), wanted, progress)
    finally:
        live.clear()
    report = RestoreReport(
        id=snapshot.reference.id,
        to=spell(os.fsencode(place)),
        in_place=in_place,
        files=found.written,
        unchanged=found.unchanged,
        not_restored=found.list_failures(),
        left=found.left_lines(),
        snapshot=found.snapshot,
    )
    guard.output.verdict(report, form, _text)
    return _DAMAGED if found.trouble else _NOT_ALL if found.refused else 0


def _text(report: RestoreReport) -> str:
    lines = []
    if report.snapshot is not None:
        lines.append(f"snapshot {report.snapshot.id} has the work tree as it was before")
    summary = f"restored {plural(report.files, 'file')} from {report.id} to {escape(report.to)}"
    lines.append(summary + (f", {report.unchanged} unchanged" if report.unchanged else ""))
    lines += [
        f"{colour('not restored', 'problem')} {escape(entry.path)}: {escape(entry.why)}"
        for entry in report.not_restored
    ]
    if report.left:
        lines.append("left alone, because the snapshot does not have them:")
        lines += [f"  {escape(path)}" for path in report.left]
    return "\n".join(lines)


def _diff(
    guard: Invocation, snapshot: "ChosenSnapshot", wanted: list[bytes], to: Path | None, form: str
) -> int:
    from guard.snapshots.write_files import list_not_restored

    place, found = snapshot.compare(to, wanted)
    report = RestoreDiffReport(
        id=snapshot.reference.id,
        against=spell(os.fsencode(place)),
        changes=tuple(found.changes),
        unchanged=found.unchanged,
        not_read=list_not_restored(found.not_read),
    )
    guard.output.verdict(report, form, _diff_text)
    return _DAMAGED if found.damaged else _NOT_ALL if found.not_read else 0


def _diff_text(report: RestoreDiffReport) -> str:
    if not report.changes and not report.not_read:
        return f"{escape(report.against)} is as snapshot {report.id} has it"
    lines = []
    for change in report.changes:
        note = f" ({escape(change.note)})" if change.note else ""
        lines.append(f"{colour(change.letter, 'bold')} {escape(change.path)}{note}")
    lines += [f"? {escape(entry.path)}: {escape(entry.why)}" for entry in report.not_read]
    for change in report.changes:
        if change.diff is not None:
            lines += ["", *(escape(line) for line in change.diff.split("\n"))]
    return "\n".join(lines)
