"""`guard agent import`: take over a registry that guard did not write."""

from pathlib import Path

import click

from guard.context.ids import given_id
from guard.context.invocation import Invocation
from guard.context.output import format_option
from guard.core.agents.report import ImportReport
from guard.core.base.text import plural


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--task",
    "task_id",
    metavar="ID",
    callback=given_id("a task id"),
    help="The task of agents that name none.",
)
@format_option
@click.pass_obj
def import_agents(guard: Invocation, file: Path, task_id: str | None, form: str) -> None:
    """Take over the agents of a registry file that was written by hand or by another tool.

    Agents that are registered here already are left as they are, so that a second import changes nothing. A file with
    anything wrong in it is refused whole.
    """
    from guard.agents.import_registry import take_over

    report = take_over(guard, file, task_id)
    for warning in report.warnings:
        guard.output.warn(warning)
    guard.output.document(report, form, _text)


def _text(report: ImportReport) -> str:
    lines = [f"{plural(len(report.imported), 'agent')} imported, {len(report.known)} known before"]
    lines += [f"  {one.task_id}/{one.agent_id}" for one in report.imported]
    return "\n".join(lines)
