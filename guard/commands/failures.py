"""`guard failures`: record failed audits, and warn later tasks of them."""

from pathlib import Path

import click

from guard.commands.options import INPUT_FILE, event_id_option, print_change, repeatable_option
from guard.context.ids import id_callback
from guard.context.invocation import Invocation
from guard.context.output import format_option, prints_report
from guard.errors import WrongUsage


@click.group("failures", invoke_without_command=True)
@format_option
@click.pass_context
def command(ctx: click.Context, form: str) -> None:
    """Show why audits failed, by kind and cause, and warn the tasks concerned."""
    if ctx.invoked_subcommand is not None:
        return
    from guard.coordinator.record import find_state
    from guard.core.coordinator.report import task_names
    from guard.core.failures.report import FailuresReport, failures_text

    guard: Invocation = ctx.obj
    state = find_state(guard)
    report = FailuresReport(failure_patterns=state.failure_patterns if state else {})
    names = task_names(state) if state is not None else {}
    guard.output.document(report, form, lambda found: failures_text(found, names))


@command.command("record")
@click.argument("task")
@click.argument("file", type=INPUT_FILE, default="-")
@click.option(
    "--type",
    "kind",
    metavar="TYPE",
    callback=id_callback("a type of failure"),
    help="The kind of failure; by default guard reads it from the output.",
)
@repeatable_option
@prints_report
def record(
    guard: Invocation, task: str, file: Path, kind: str | None, event_id: str | None, form: str
) -> None:
    """Record a failure of a task from the output of a compiler, a linter or a test runner.

    FILE holds the output; by default guard reads standard input. `guard plan audit` with a failing verdict and a
    message does the same.
    """
    from guard.coordinator.failures import record_failure
    from guard.coordinator.plan import find_task_id

    with click.open_file(str(file), "rb") as stream:
        details = stream.read(1 << 22).decode(errors="replace")
    done = record_failure(guard, find_task_id(guard, task), details, kind, event_id)
    print_change(guard, done, form)


@command.command("prevent")
@click.argument("kind", metavar="TYPE", callback=id_callback("a type of failure"))
@click.argument("text")
@repeatable_option
@prints_report
def prevent(guard: Invocation, kind: str, text: str, event_id: str | None, form: str) -> None:
    """Record what helps against a kind of failure; later warnings say it."""
    from guard.coordinator.failures import add_prevention

    done = add_prevention(guard, kind, text, event_id)
    print_change(guard, done, form)


@command.command("warn")
@click.argument("task")
@click.option(
    "--preview", is_flag=True, help="Print the warnings without recording that they were issued."
)
@event_id_option("Record under this id; the same call with the same id prints the same warnings.")
@prints_report
def warn(guard: Invocation, task: str, preview: bool, event_id: str | None, form: str) -> None:
    """Print the warnings for a task's prompt: kinds of failure that happened three times or more.

    If there is nothing to warn of, guard records nothing and the id stays free.
    """
    from guard.coordinator.failures import warn_task
    from guard.coordinator.plan import find_task_id

    if preview and event_id is not None:
        raise WrongUsage("--event-id has no effect with --preview", "leave out --event-id")
    named = find_task_id(guard, task)
    report = warn_task(guard, named, issues=not preview, event_id=event_id)
    guard.output.document(report, form, lambda document: document.text or "nothing to warn of")
