"""`guard show`."""

import sys
from contextlib import suppress

import click

from guard.context.ids import id_callback
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.show.report import show_text


@click.command("show")
@click.argument("number", metavar="[N]", required=False, type=click.IntRange(min=1))
@click.option(
    "--run",
    "run_id",
    metavar="ID",
    callback=id_callback("a run id"),
    help="The run of that iteration; by default the newest run that has one.",
)
@click.option("--raw", is_flag=True, help="Print what the agent printed, byte for byte.")
@prints_report
def command(
    guard: Invocation, number: int | None, run_id: str | None, raw: bool, form: str
) -> None:
    """Show one iteration: verdict, evidence, commits, what was rescued, cost, prompt and output.

    N is the number of the iteration; without it, the newest. The output reads as messages and tool calls, whatever
    agent CLI printed it. Guard keeps the output of iterations within `run.keep_output_mb`. Exit code 1 if the log has
    no such iteration.
    """
    from guard.show import raw_output, show_iteration

    report = show_iteration(guard, number, run_id)
    if not raw:
        guard.output.document(report, form, show_text)
        return
    with suppress(BrokenPipeError):
        for data in raw_output(guard, report):
            sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
