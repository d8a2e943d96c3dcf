"""`guard plan run`: work the plan off."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from guard.commands import options
from guard.context.invocation import Invocation
from guard.context.output import Output, format_option

if TYPE_CHECKING:
    from guard.plan.display import Display


@click.command("run", context_settings={"ignore_unknown_options": False})
@click.option(
    "--plan", "plan_file", type=options.INPUT_FILE, metavar="FILE", help="Load this plan first."
)
@click.option(
    "--agents",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="How many agents work at once; by default `coordinator.active_developers`.",
)
@click.option(
    "--prompt-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="F",
    help="Put this file before the prompt of each agent.",
)
@click.option(
    "--audit",
    metavar="CMD",
    help="Audit each task by this command, in the task's work tree: exit code 0 passes.",
)
@click.option(
    "--target",
    metavar="BRANCH",
    help="The branch to land on; by default one of the plan's own, guard/plan/<plan>.",
)
@options.max_time_option("Stop after S seconds: agents are stopped, and what they left is checked.")
@options.budget_options
@click.option(
    "--max-cost-per-task",
    type=options.AMOUNT,
    metavar="USD",
    help="Send no more agents to a task whose agents have cost this many dollars; the others go on.",
)
@format_option
@options.words_argument
@click.pass_obj
@options.settles_plan_rollbacks
def run(
    guard: Invocation,
    /,
    words: tuple[str, ...],
    form: str,
    plan_file: Path | None,
    agents: int | None,
    prompt_file: Path | None,
    audit: str | None,
    target: str | None,
    max_time: float | None,
    max_cost_per_task: float | None,
    **budgets: Any,
) -> int:
    """Work the plan off: send agents to its tasks, audit what they commit, and land it.

    Each agent is CMD, run by `guard run` in a work tree and on a branch of its own. It gets its prompt on stdin, or in
    the place of the word {prompt}. What passes its audit lands on the target branch as one commit. The run ends when the
    plan is complete, when nothing can go on without a person, or at a limit. Killed at any moment and started again, it
    goes on.

    A task is audited by --audit, else by the project's own checks (`prove.command`), else by CMD with an auditor's prompt.

    Exit code 0 if the plan is complete; 14 if a person is needed; 12 if the time or the budget is used up and work is
    left; 20 if the breaker of the plan opened; 130 after Ctrl-C.
    """
    from guard.core.coordinator.run_report import run_text
    from guard.plan.run import run_plan
    from guard.plan.run_state import PlanRunTerms

    budget = options.take_budget(guard.users_config.settings, budgets)
    terms = PlanRunTerms(
        words,
        plan_file,
        agents,
        prompt_file,
        audit,
        target,
        max_time,
        budget,
        max_cost_per_task,
    )
    report = run_plan(guard, terms, _open_display(guard.output, form))
    guard.output.verdict(report, form, run_text)
    return report.exit_code


def _open_display(output: Output, form: str) -> "Display":
    """Return a table for a terminal; else, and for JSON, lines on stderr."""
    if form == "json" or not output.is_drawn_on or output.verbosity < 0:
        from guard.plan.display import PrintedRun

        return PrintedRun(output)
    # Only a terminal needs the library that draws.
    from guard.plan.table import RunTable

    return RunTable(output)
