"""`guard plan land`."""

import click

from guard.commands.options import settles_plan_rollbacks
from guard.context.invocation import Invocation
from guard.context.output import prints_report


@click.command("land")
@click.argument("tasks", metavar="[TASK...]", nargs=-1)
@click.option(
    "--target",
    metavar="BRANCH",
    help="Land on this branch; by default where the plan's tasks landed before, else guard/plan/NAME.",
)
@click.option(
    "--dry-run", is_flag=True, help="Print what would land or conflict, and change nothing."
)
@prints_report
@settles_plan_rollbacks
def land(
    guard: Invocation, tasks: tuple[str, ...], target: str | None, dry_run: bool, form: str
) -> int:
    """Land tasks that passed their audit on the target branch, by default all of them.

    Each task becomes one commit there, or a merge (`landing.mode`). Guard merges without a work tree, and runs no hook,
    filter or merge driver of the repository. With `prove.command` the merged tree must pass first. A branch that is
    checked out must be named with --target; guard then moves it together with its files, if no file that changes differs
    from HEAD and nothing untracked is in the way.

    A task that conflicts, or whose merge is refuted, becomes available again, and its next agent is told why.

    Exit code 0 if all landed; 14 if a person is needed; 17 if work is refuted on the target; 1 if a task did not land
    for another reason.
    """
    from guard.coordinator.record import require_state
    from guard.core.coordinator.report import task_names
    from guard.core.landing.report import landing_text
    from guard.landing.land import land as land_tasks
    from guard.snapshots.last_resort import save_before_abort

    with save_before_abort(guard):
        report = land_tasks(guard, tasks or None, target, dry=dry_run)
    names = dict(task_names(require_state(guard)))
    guard.output.verdict(report, form, lambda found: landing_text(found, names))
    return report.exit_code
