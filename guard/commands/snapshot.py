"""`guard snapshot`."""

import click

from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.base.text import escape, plural
from guard.core.snapshots.report import SnapshotReport
from guard.core.snapshots.snapshot import Occasion
from guard.snapshots.last_resort import save_before_abort
from guard.snapshots.remote import push_snapshots
from guard.snapshots.take import keep

_MOST_LINES = 20


@click.command("snapshot")
@prints_report
def command(guard: Invocation, form: str) -> int:
    """Save the work tree byte for byte, without changing it.

    The snapshot includes ignored, staged and stashed files and the state of a git operation in progress. It works
    in any state of the repository, even without `.git`. Guard reads it back before it counts as saved. `guard
    restore` restores it.

    Exit code 1 if something could not be saved; guard prints what.
    """
    with save_before_abort(guard):
        taken = keep(guard, Occasion("by_hand", guard.clock.now()), tells=form == "text")
    push_snapshots(guard)
    report = SnapshotReport(**dict(taken))
    guard.output.document(report, form, _text)
    return 0 if report.whole else 1


def _text(report: SnapshotReport) -> str:
    saved = "saved" if report.whole else "saved, but not all of it"
    lines = [
        f"guard restore {report.id} --to DIR",
        f"  {saved}: {plural(report.files, 'file')} in snapshot {report.id}",
        f"  by git alone: {report.recover}",
    ]
    lines += [f"  not in it: {line}" for line in report.skipped[:_MOST_LINES]]
    more = len(report.skipped) - _MOST_LINES
    lines += [f"  and {plural(more, 'more line')}"] if more > 0 else []
    return "\n".join(escape(line) for line in lines)
