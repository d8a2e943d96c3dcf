"""`guard baseline`."""

import click

from guard.commands.options import settles_rollbacks
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.base.text import escape, plural
from guard.core.iteration.report import BaselineReport


@click.command("baseline")
@prints_report
@settles_rollbacks
def command(guard: Invocation, form: str) -> None:
    """Record the state of the repository; an iteration begins here.

    Later changes count as the agent's work; files that are dirty now stay the user's. Guard pins the commits so
    that git does not delete them. Exit code 4 without a repository or a work tree.
    """
    from guard.iteration.begin import baseline_report, begin

    guard.output.note(f"looking at {guard.repository.root}")
    begun = begin(guard)
    for warning in begun.baseline.warnings:
        guard.output.warn(warning)
    report = baseline_report(begun, guard.worktree_key, guard.config.warnings)
    guard.output.document(report, form, _text)


def _text(report: BaselineReport) -> str:
    place = (report.branch or "detached HEAD").removeprefix("refs/heads/")
    parts = [
        f"iteration {report.iteration} of run {report.run} begins at {report.head} ({place})",
        plural(report.refs, "ref"),
        plural(report.dirty, "dirty file"),
    ]
    if report.left_by_iterations:
        parts[-1] += f", {report.left_by_iterations} left by earlier iterations"
    if report.stashes:
        parts.append(plural(report.stashes, "stashed change"))
    if report.shallow:
        parts.append("a shallow clone")
    parts.append(f"pinned by {report.pin}" if report.pin else "not pinned")
    return escape("; ".join(parts))
