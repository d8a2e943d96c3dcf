"""`guard rollback`."""

from collections.abc import Mapping
from contextlib import suppress

import click

from guard.commands.options import repeatable_option
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.base.text import escape, plural
from guard.core.rollback.report import RollbackReport, RolledBackTask
from guard.errors import ReaderGone

_MOST_LINES = 20


@click.command("rollback")
@click.argument("task")
@click.option("--reason", metavar="TEXT", default="", help="The reason, for the log.")
@click.option(
    "--cascade",
    is_flag=True,
    help="First roll back completed tasks that depend on this task, the latest first.",
)
@click.option("--dry-run", is_flag=True, help="Print what guard would revert, and change nothing.")
@repeatable_option
@prints_report
def command(
    guard: Invocation,
    task: str,
    reason: str,
    cascade: bool,
    dry_run: bool,
    event_id: str | None,
    form: str,
) -> int:
    """Revert the commits of a completed task, and make the task available again.

    Guard takes a snapshot first. The revert is one new commit; guard does not rewrite history. A conflict, or a
    changed file that the revert would touch, leaves everything as it was. Guard aborts tasks in progress that
    depend on this task. If guard is killed meanwhile, the next command finishes or undoes the rollback; repeating a
    rollback that is then finished changes nothing more.

    Exit code 1, with the reason, if guard refuses the rollback.
    """
    from guard.coordinator.record import require_state
    from guard.core.coordinator.report import task_names
    from guard.landing import settle_landing
    from guard.rollback.rollback import rollback

    require_state(guard)
    settle_landing(guard)
    names = task_names(require_state(guard))

    def tell(rolled_back: RolledBackTask) -> None:
        if form == "text":
            with suppress(ReaderGone):
                guard.output.result(_signal(rolled_back, names, reason, dry=dry_run))

    report = rollback(
        guard, task, reason, cascade=cascade, dry=dry_run, tell=tell, event_id=event_id
    )
    guard.output.verdict(report, form, lambda document: _text(document, names))
    return 0 if report.done or report.reason == "planned" else 1


def _signal(task: RolledBackTask, names: Mapping[str, str], reason: str, *, dry: bool) -> str:
    files = ", ".join(task.files[:_MOST_LINES]) or "none"
    more = len(task.files) - _MOST_LINES
    lines = [
        f"ROLLBACK REQUIRED: {names.get(task.task_id, task.task_id)}",
        "",
        f"Reason: {reason or 'none given'}",
        f"Commit: {task.commit}",
        f"Files Affected: {files}" + (f" and {plural(more, 'more')}" if more > 0 else ""),
        "",
        "Nothing is changed: this is a dry run." if dry else "Proceeding with rollback...",
    ]
    return "\n".join(escape(line) for line in lines)


def _text(report: RollbackReport, names: Mapping[str, str]) -> str:
    own = names.get(report.task_id, report.task_id)
    if report.reason == "planned":
        return (
            f"{len(report.paths)} or more files would change"
            if report.paths
            else "nothing to revert"
        )
    if not report.done:
        done = [
            f"{names.get(task.task_id, task.task_id)} was rolled back before that"
            for task in report.tasks
        ]
        lines = [f"Cannot roll back {own}: {report.detail}", *done]
        return "\n".join(escape(line) for line in lines)
    if report.reason == "repeated":
        return f"{escape(own)} was {report.detail}; nothing changed"
    lines = []
    for task in report.tasks:
        made = task.to_sha if task.reverted else None
        what = f"revert {made[:10]}" if made else "nothing to revert"
        lines.append(
            f"{names.get(task.task_id, task.task_id)} returned to available queue ({what})"
        )
        lines += [f"  guard restore {task.snapshot} --to DIR"] if task.snapshot else []
    lines += [
        f"{names.get(task_id, task_id)} was aborted: it depends on what is gone"
        for task_id in report.aborted
    ]
    first = "Rollback complete."
    if report.reason == "finished":
        first = f"The rollback of {own} that was killed is finished now."
    return "\n".join(escape(line) for line in [first, *lines])
