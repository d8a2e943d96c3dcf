"""`guard plan ingest`."""

from pathlib import Path

import click

from guard.commands.options import event_id_option, settles_plan_rollbacks
from guard.commands.plan.options import agent_option
from guard.context.invocation import Invocation
from guard.context.output import format_option

_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.command("ingest")
@click.argument("file", type=_FILE, default="-")
@agent_option
@event_id_option
@format_option
@click.pass_obj
@settles_plan_rollbacks
def ingest(guard: Invocation, file: Path, agent_id: str, event_id: str | None, form: str) -> None:
    """Take what an agent printed for what it tells: ready for audit, a verdict, a question, a checkpoint, its end.

    FILE has the agent's last message or its event stream; by default it is read from standard input. Signals count only where
    they stand on a line of their own, never in quoted text. For a supporting agent name its run, or the agent itself where it
    has only one. Exit code 1 if a signal was refused.
    """
    from guard.coordinator.ingest import ingest as taken
    from guard.core.coordinator.report import ingest_text

    report = taken(guard, agent_id, file, event_id)
    guard.output.document(report, form, ingest_text)
    click.get_current_context().exit(1 if report.refused else 0)
