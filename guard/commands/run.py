"""`guard run`."""

from dataclasses import replace
from typing import Any

import click

from guard.check.verdict_text import verdict_text
from guard.commands import options
from guard.context.invocation import Invocation
from guard.core.check.report import EXIT_OF


@click.command("run", context_settings={"ignore_unknown_options": False})
@options.max_time_option("Stop the agent after S seconds, and check what it left.")
@options.runs_agent
def command(
    guard: Invocation, /, words: tuple[str, ...], max_time: float | None, form: str, **given: Any
) -> int:
    """Run the agent for one iteration, and check how it ended.

    Guard takes a baseline, runs CMD and passes its output through unchanged, checks the result, rescues forgotten
    work, and updates the breaker. With --format json the agent's output goes to stderr.

    The exit code is that of the verdict, as in `guard check`; 20 if the breaker is open and guard ran nothing; 130
    after Ctrl-C.
    """
    from guard.run.loop import INTERRUPTED
    from guard.run.run import StoppedByPerson, run_iteration

    order, report_file = options.run_order(words, form, given)
    try:
        report = run_iteration(guard, replace(order, max_seconds=max_time))
        code = EXIT_OF[report.status]
    except StoppedByPerson as stop:
        report, code = stop.report, INTERRUPTED
    options.write_report(report, report_file, guard.output.warn)
    guard.output.verdict(report, form, verdict_text)
    return code
