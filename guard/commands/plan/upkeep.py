"""`guard plan outbox`, `usage`, `tick`, `ingest`: deliver messages, and record usage, time limits and signals."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from guard.commands import options
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.coordinator.decide import record_usage
from guard.errors import GuardError, WrongUsage

if TYPE_CHECKING:
    from guard.core.coordinator.entries import ActiveAgent


@click.command("outbox")
@click.option("--take", is_flag=True, help="Take the items out of the outbox, as delivered.")
@click.option("--agent", "agent_id", metavar="ID", help="Only items for this agent.")
@options.event_id_option(
    "With --take: record under this id; the same call with the same id prints the same items."
)
@prints_report
@options.settles_plan_rollbacks
def outbox(
    guard: Invocation, take: bool, agent_id: str | None, event_id: str | None, form: str
) -> None:
    """List what is to be delivered: agents to start, rework, answers, aborts, results.

    A caller that may be killed before it has delivered everything takes the items under an id, and asks again with
    that id.
    """
    from guard.coordinator.outbox import parcels_for
    from guard.coordinator.outbox import take_parcels as taken
    from guard.coordinator.record import require_state
    from guard.core.coordinator.report import PlanOutboxReport, outbox_text

    if event_id is not None and not take:
        raise WrongUsage("--event-id has no effect without --take", "leave out --event-id")
    found = (
        taken(guard, agent_id, event_id) if take else parcels_for(require_state(guard), agent_id)
    )
    report = PlanOutboxReport(taken=take, items=found)
    state = require_state(guard)
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

    An agent that reported a checkpoint, or is provably at work, gets half of its time again, at most twice. New
    agents appear in the outbox, for the caller to start. Call it from a loop or a timer: if nothing is due, guard
    records nothing, not even the id, so that a later tick with this id can act.
    """
    from guard.coordinator.record import run_tick

    def at_work(agent_id: str, agent: "ActiveAgent") -> bool:
        return _is_at_work(guard, agent_id, agent)

    options.print_change(
        guard, run_tick(guard, at_work, fills=not no_fill, event_id=event_id), form
    )


def _is_at_work(guard: Invocation, agent_id: str, agent: "ActiveAgent") -> bool:
    # An agent that guard cannot assess is not provably at work, nor is one that showed no activity since it got its task.
    from guard.activity.assess import assess_activity
    from guard.activity.known_agents import is_registered
    from guard.coordinator.register_agents import INFRASTRUCTURE

    minutes = guard.users_config.settings.coordinator.agent_timeout_minutes
    try:
        task_id = agent.task_id or INFRASTRUCTURE
        found = assess_activity(
            guard,
            agent_id,
            task_id=task_id if is_registered(guard, agent_id, task_id) else None,
            lookback_minutes=minutes,
        )
    except GuardError as error:
        guard.output.warn(f"cannot tell whether {agent_id} is at work: {error.message}")
        return False
    last = found.last_activity
    return found.is_active and last is not None and last > agent.dispatched_at


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
