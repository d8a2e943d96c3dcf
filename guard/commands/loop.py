"""`guard loop`."""

from pathlib import Path
from typing import Any

import click

from guard.check.verdict_text import HOW_TO_PROVE, lacks_command, summary_lines
from guard.commands import options
from guard.context.invocation import Invocation
from guard.core.base.text import duration, escape, plural
from guard.core.check.report import CheckReport
from guard.core.cost.text import usage_line
from guard.core.run.report import LoopReport
from guard.errors import Interrupted

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
@options.budget_options
@click.option(
    "--report-html",
    "page",
    type=_FILE,
    metavar="FILE",
    help="Keep a page of HTML about the run in this file, written anew after every iteration.",
)
@options.runs_agent
def command(guard: Invocation, /, words: tuple[str, ...], form: str, **given: Any) -> int:
    """Run the agent again and again, until the work is done or a person is needed.

    The loop ends when the task file has no open box; without a task file, when there is nothing to do; at its
    limits and budgets; when a person is needed (exit code 14); and when the breaker opens (20). Otherwise the exit code is that
    of the last verdict, as in `guard check`. Guard waits out usage limits.
    """
    from guard.core.run.loop import LoopLimits
    from guard.iteration.current import describe_after_interrupt
    from guard.run.loop import Loop, LoopPlan

    limits = LoopLimits(given.pop("max_iterations"), given.pop("max_time"))
    budget = options.take_budget(guard.config.settings, given)
    prompt_file, tasks = given.pop("prompt_file"), given.pop("tasks")
    page = options.fixed_path("--report-html", given.pop("page"))
    order, report_file = options.run_order(words, form, given)

    def tell(report: CheckReport) -> None:
        if form == "text":
            guard.output.verdict(report, form, summary_lines)

    def keep(so_far: LoopReport) -> None:
        if report_file is not None and (report_file.is_file() or not report_file.exists()):
            options.write_report(so_far, report_file, guard.output.warn)
        _draw(guard, page, so_far)

    plan = LoopPlan(order, limits, prompt_file, tasks, budget)
    report, fault = Loop(guard, plan, tell, keep).run()
    options.write_report(report, report_file, guard.output.warn)
    _draw(guard, page, report)
    guard.output.verdict(report, form, _summary)
    if fault is not None:
        raise fault
    if report.reason == "stopped":
        raise Interrupted("interrupted", describe_after_interrupt(guard))
    return report.exit_code


def _draw(guard: Invocation, page: Path | None, so_far: LoopReport) -> None:
    # A pipe or a device gets the page when the loop has ended.
    is_file = page is not None and (page.is_file() or not page.exists())
    if page is None or not so_far.iterations or not (is_file or so_far.ended):
        return
    from guard.report.page import keep_page

    keep_page(guard, page, so_far.iterations[-1].run)


def _summary(report: LoopReport) -> str:
    done = {
        (iteration.run, iteration.iteration): iteration for iteration in report.iterations
    }.values()
    commits = sum(iteration.new_commits for iteration in done)
    rescued = sum(iteration.rescued_commits for iteration in done)
    proof = report.proof
    ends = f"at the end {proof.result}: {escape(proof.detail)}\n" if proof is not None else ""
    used = usage_line(report.usage)
    lines = [f"used: {used}"] if used is not None else []
    if report.budget is not None:
        lines.append(f"budget: {report.budget.detail}")
    spent = "".join(f"{line}\n" for line in lines)
    hint = f"\n{HOW_TO_PROVE}" if any(map(lacks_command, done)) else ""
    return (
        f"{ends}{spent}{plural(len(done), 'iteration')}, {plural(commits, 'new commit')}, {rescued} rescued, "
        f"{duration(report.elapsed_seconds)}; ended: {report.reason}{hint}"
    )
