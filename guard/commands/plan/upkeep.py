"""`guard plan outbox`, `usage`, `tick`, `ingest`: deliver messages, and record usage, time limits and signals."""

from datetime import datetime
from pathlib import Path

import click

from guard.commands import options
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.coordinator.decide import record_usage
from guard.errors import WrongUsage


@click.command("outbox")
@click.option("--take", is_flag=True, help="Take the items out of the outbox, as delivered.")
@click.option(
    "--ack",
    "items",
    metavar="ITEM",
    multiple=True,
    help="Take only this item, such as item-7; may be repeated. One that is gone already is no error.",
)
@click.option("--agent", "agent_id", metavar="ID", help="Only items for this agent.")
@options.event_id_option(
    "With --take or --ack: record under this id; the same call with the same id prints the same items."
)
@prints_report
@options.settles_plan_rollbacks
def outbox(
    guard: Invocation,
    take: bool,
    items: tuple[str, ...],
    agent_id: str | None,
    event_id: str | None,
    form: str,
) -> None:
    """List what is to be delivered: agents to start, rework, answers, aborts, results.

    Guard withdraws an item when its cause is gone: the start of an agent that is no longer wanted, the answer for
    one that was lost. `incarnation` says for which life of the agent it is. A caller that delivers item by item takes
    each with --ack.

    A caller that may be killed before it has delivered everything takes the items under an id, and asks again with
    that id.
    """
    from guard.coordinator.record import require_state
    from guard.core.coordinator.report import outbox_text
    from guard.plan.outbox import list_outbox, take_outbox

    if items and (take or agent_id is not None):
        raise WrongUsage("--ack names the items itself", "leave out --take and --agent")
    takes = take or bool(items)
    if event_id is not None and not takes:
        raise WrongUsage("--event-id has no effect without --take or --ack", "leave it out")
    state = require_state(guard)
    report = (
        take_outbox(guard, agent_id, event_id, items) if takes else list_outbox(guard, agent_id)
    )
    guard.output.document(report, form, lambda document: outbox_text(document, state))


@click.command("usage")
@click.option(
    "--utilisation",
    type=click.IntRange(0, 100),
    metavar="PERCENT",
    help="The share used; by default guard runs `coordinator.usage_command`.",
)
@click.option("--remaining", type=click.IntRange(0, 100), metavar="PERCENT", help="The share left.")
@click.option(
    "--resets-at",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z"]),
    metavar="TIME",
    help="The time when the limit resets, in ISO-8601.",
)
@options.records_plan
def usage(
    guard: Invocation,
    utilisation: int | None,
    remaining: int | None,
    resets_at: datetime | None,
    event_id: str | None,
    form: str,
) -> None:
    """Record how much of its limits the session has used."""
    from guard.coordinator.usage import ask_usage

    if utilisation is None:
        request = ask_usage(guard, event_id)
    else:
        request = record_usage(
            session_utilisation=utilisation,
            session_remaining=remaining,
            session_resets_at=resets_at,
        )
    options.record_request(guard, request, event_id, form)


@click.command("tick")
@click.option("--no-fill", is_flag=True, help="Start no agents; only end those whose time is up.")
@options.records_plan
def tick(guard: Invocation, no_fill: bool, event_id: str | None, form: str) -> None:
    """Do what is due: end agents whose time is up, then fill the free places, audits first.

    The time of an agent runs from when it was seen to start, or was taken out of the outbox. An agent that is
    provably at work gets all of it again; one that only reported a checkpoint gets half, at most twice. New
    agents appear in the outbox, for the caller to start. Call it from a loop or a timer: if nothing is due, guard
    records nothing, not even the id, so that a later tick with this id can act.
    """
    from guard.plan.tick import tick_plan

    options.print_change(guard, tick_plan(guard, fills=not no_fill, event_id=event_id), form)


@click.command("ingest")
@click.argument("file", type=options.INPUT_FILE, default="-")
@options.plan_agent_option
@options.repeatable_option
@prints_report
@options.settles_plan_rollbacks
def ingest(guard: Invocation, file: Path, agent_id: str, event_id: str | None, form: str) -> None:
    """Record the signals in an agent's output: ready for audit, a verdict, a question, a checkpoint, its end.

    FILE holds the agent's last message or its event stream; by default guard reads standard input. A signal counts
    only on a line of its own, never in quoted text. For a supporting agent name its run, or the agent itself if it
    has only one. Exit code 1 if guard refused a signal.
    """
    from guard.coordinator.ingest import ingest as taken
    from guard.core.coordinator.report import ingest_text

    report = taken(guard, agent_id, file, event_id)
    guard.output.document(report, form, ingest_text)
    click.get_current_context().exit(1 if report.refused else 0)
