"""`guard run`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from guard.check.verdict_text import verdict_text
from guard.commands import options
from guard.context.invocation import Invocation
from guard.core.check.report import EXIT_OF


@click.command("run", context_settings={"ignore_unknown_options": False})
@options.max_time_option("Stop the agent after S seconds, and check what it left.")
@click.option(
    "--prompt-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="F",
    help="Pass this file to CMD on stdin, or in place of the word {prompt}.",
)
@options.allowance_options
@options.runs_agent
def command(guard: Invocation, /, words: tuple[str, ...], form: str, **given: Any) -> int:
    """Run the agent for one iteration, and check how it ended.

    Guard takes a baseline, runs CMD and passes its output through (see --show), checks the result, rescues forgotten
    work, and updates the breaker. With --format json the agent's output goes to stderr.

    The exit code is that of the verdict, as in `guard check`; 20 if the breaker is open and guard ran nothing; 130
    after Ctrl-C.
    """
    from guard.iteration.current import describe_after_interrupt
    from guard.run.loop import INTERRUPTED
    from guard.run.order import read_prompt, with_prompt
    from guard.run.run import StoppedByPerson, run_iteration

    max_time, prompt_file = given.pop("max_time"), given.pop("prompt_file")
    allowance = options.take_allowance(given)
    order, report_file = options.run_order(words, form, given)
    if prompt_file is not None:
        order = with_prompt(order, read_prompt(prompt_file))
    try:
        with options.tells_what_is_safe(lambda: describe_after_interrupt(guard)):
            order = replace(order, max_seconds=max_time, allowance=allowance)
            report = run_iteration(guard, order)
        code = EXIT_OF[report.status]
    except StoppedByPerson as stop:
        report, code = stop.report, INTERRUPTED
    options.write_report(report, report_file, guard.output.warn)
    guard.output.verdict(report, form, verdict_text)
    return code
