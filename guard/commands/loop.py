"""`guard loop`."""

from pathlib import Path
from typing import Any

import click

from guard.check.verdict_text import summary_lines
from guard.commands import options
from guard.context.invocation import Invocation
from guard.core.base.text import plural
from guard.core.check.report import CheckReport
from guard.core.run.report import LoopReport

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("loop")
@click.option(
    "--max-iterations",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop after N iterations; those that a usage limit or an outage ended do not count.",
)
@options.max_time_option(
    "Stop after S seconds: guard stops the running agent and checks what it left."
)
@click.option(
    "--prompt-file",
    type=_FILE,
    metavar="F",
    help="Pass this file to CMD on stdin, or in place of the word {prompt}; read again each time.",
)
@click.option(
    "--until-tasks-done",
    "tasks",
    type=_FILE,
    metavar="F",
    help="Stop when this markdown file has no open box, not counting boxes in code or under Optional.",
)
@options.runs_agent
def command(guard: Invocation, /, words: tuple[str, ...], form: str, **given: Any) -> int:
    """Run the agent again and again, until the work is done or a person is needed.

    The loop ends when the task file has no open box; without a task file, when there is nothing to do; at its
    limits; when a person is needed (exit code 14); and when the breaker opens (20). Otherwise the exit code is that
    of the last verdict, as in `guard check`. Guard waits out usage limits.
    """
    from guard.core.run.loop import LoopLimits
    from guard.run.loop import Loop, LoopPlan

    limits = LoopLimits(given.pop("max_iterations"), given.pop("max_time"))
    prompt_file, tasks = given.pop("prompt_file"), given.pop("tasks")
    order, report_file = options.run_order(words, form, given)

    def tell(report: CheckReport) -> None:
        if form == "text":
            guard.output.verdict(report, form, summary_lines)

    report, fault = Loop(guard, LoopPlan(order, limits, prompt_file, tasks), tell).run()
    options.write_report(report, report_file, guard.output.warn)
    guard.output.verdict(report, form, _summary)
    if fault is not None:
        raise fault
    return report.exit_code


def _summary(report: LoopReport) -> str:
    done = {
        (iteration.run, iteration.iteration): iteration for iteration in report.iterations
    }.values()
    commits = sum(iteration.new_commits for iteration in done)
    rescued = sum(iteration.rescued_commits for iteration in done)
    return (
        f"{plural(len(done), 'iteration')}, {plural(commits, 'new commit')}, {rescued} rescued, "
        f"{report.elapsed_seconds:.0f} s; ended: {report.reason}"
    )
