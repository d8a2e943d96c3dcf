"""`guard plan load`, `show`, `next`, `graph`: load and show the plan."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from guard.commands.options import choice_option, print_change, records_plan, settles_plan_rollbacks
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.errors import GuardError

if TYPE_CHECKING:
    from guard.core.coordinator.state import Coordinator


@click.command("load")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@records_plan
def load(guard: Invocation, file: Path | None, event_id: str | None, form: str) -> None:
    """Load a plan from a file: markdown task lists, or JSON.

    By default guard reads the file named by `coordinator.plan_file`. A changed plan can be loaded again; completed
    tasks stay completed. Exit code 1 if the plan has errors, or lacks a task that is in progress.
    """
    from guard.coordinator.plan import load_file

    print_change(guard, load_file(guard, file, event_id), form)


@click.command("show")
@click.option(
    "--explain", is_flag=True, help="Also print which plan and events the state comes from."
)
@prints_report
@settles_plan_rollbacks
def show(guard: Invocation, explain: bool, form: str) -> None:
    """Show the state of the plan: what is done, in progress, available, blocked and asked.

    With --format json guard prints the document of `state.json`. Exit code 1 if no plan is loaded.
    """
    from guard.coordinator.record import explain_origin, require_state
    from guard.core.coordinator.report import state_text

    state = require_state(guard)
    origin = explain_origin(guard, state) if explain else None
    guard.output.document(
        state,
        form,
        lambda document: "\n".join(
            [state_text(document, guard.clock.now()), *_foreseen_lines(guard, document)]
        ),
    )
    if origin is not None:
        click.echo(origin, err=form == "json")


def _foreseen_lines(guard: Invocation, state: "Coordinator") -> list[str]:
    """Return a line for each conflict that is to come; git may be too old to tell, or the repository damaged."""
    from guard.core.coordinator.report import task_names
    from guard.core.landing.report import foreseen_lines
    from guard.landing.foresee import foresee

    try:
        return foreseen_lines(foresee(guard), task_names(state))
    except GuardError as error:
        guard.output.note(f"conflicts between tasks cannot be foreseen: {error.message}")
        return []


@click.command("next")
@prints_report
@settles_plan_rollbacks
def next_task(guard: Invocation, form: str) -> None:
    """Show which task comes next, without taking it.

    It is the task that unblocks most others, then the one of the highest priority, then the first in the plan.
    """
    from guard.coordinator.plan import next_task as chosen
    from guard.coordinator.record import require_state
    from guard.core.coordinator.decide_support import suggest_support
    from guard.core.coordinator.decide_tasks import tasks_apart
    from guard.core.coordinator.report import PlanNextReport, held_up_by, next_text

    state = require_state(guard)
    task = chosen(state)
    report = PlanNextReport(
        task=task,
        suggested_agents=suggest_support(state, task.id) if task else (),
        next_available_tasks=state.next_available_tasks,
        kept_apart={name: other.task_id for name, other in tasks_apart(state).items()},
        held_up_by=held_up_by(state, guard.users_config.settings.coordinator.hold_on_question),
        plan_complete=state.plan_complete,
    )
    guard.output.document(report, form, next_text)


@click.command("graph")
@choice_option(
    "--as",
    "notation",
    among=["mermaid", "dot"],
    default="mermaid",
    text="The notation of the graph.",
)
@prints_report
@settles_plan_rollbacks
def graph(guard: Invocation, notation: Literal["mermaid", "dot"], form: str) -> None:
    """Print the dependencies of the plan as a graph."""
    from guard.coordinator.record import require_state
    from guard.core.coordinator.report import PlanGraphReport
    from guard.core.coordinator.state import task_statuses
    from guard.core.plan.graph import dot, mermaid
    from guard.core.plan.model import Plan

    state = require_state(guard)
    plan, marks = Plan(tasks=state.tasks), task_statuses(state)
    draw = dot if notation == "dot" else mermaid
    report = PlanGraphReport(notation=notation, text=draw(plan, marks))
    guard.output.document(report, form, lambda document: document.text.rstrip("\n"))
