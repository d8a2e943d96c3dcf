"""`guard plan outbox`, `usage`, `tick`: what is to be delivered, what is used up, and what is due."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from guard.commands.options import (
    INPUT_FILE,
    event_id_option,
    plan_agent_option,
    print_change,
    record_request,
    records_plan,
    repeatable_option,
    settles_plan_rollbacks,
)
from guard.context.invocation import Invocation
from guard.context.output import format_option
from guard.core.coordinator.decide import record_usage
from guard.errors import GuardError, WrongUsage

if TYPE_CHECKING:
    from guard.core.coordinator.entries import ActiveAgent


@click.command("outbox")
@click.option("--take", is_flag=True, help="Take what is there: it has been delivered.")
@click.option("--agent", "agent_id", metavar="ID", help="Only what is for this agent.")
@event_id_option(
    "With --take: record under this id; the same call with the same id prints the same items."
)
@format_option
@click.pass_obj
@settles_plan_rollbacks
def outbox(
    guard: Invocation, take: bool, agent_id: str | None, event_id: str | None, form: str
) -> None:
    """List what is to be delivered: agents to start, rework, answers, aborts, results.

    Whoever may be killed before all is delivered takes it under an id, and asks again with that id.
    """
    from guard.coordinator.outbox import parcels_for
    from guard.coordinator.outbox import take_parcels as taken
    from guard.coordinator.record import require_state
    from guard.core.coordinator.report import PlanOutboxReport, outbox_text

    if event_id is not None and not take:
        raise WrongUsage("nothing is recorded without --take", "leave out --event-id")
    found = (
        taken(guard, agent_id, event_id) if take else parcels_for(require_state(guard), agent_id)
    )
    report = PlanOutboxReport(taken=take, items=found)
    state = require_state(guard)
    guard.output.document(report, form, lambda one: outbox_text(one, state))


@click.command("usage")
@click.option(
    "--utilisation",
    type=click.IntRange(0, 100),
    metavar="PERCENT",
    help="What is used; by default `coordinator.usage_command` is asked.",
)
@click.option("--remaining", type=click.IntRange(0, 100), metavar="PERCENT", help="What is left.")
@click.option(
    "--resets-at",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z"]),
    metavar="TIME",
    help="When the limit begins anew, in ISO-8601.",
)
@records_plan
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
        told = ask_usage(guard, event_id)
    else:
        told = record_usage(
            session_utilisation=utilisation,
            session_remaining=remaining,
            session_resets_at=resets_at,
        )
    record_request(guard, told, event_id, form)


@click.command("tick")
@click.option("--no-fill", is_flag=True, help="Send nobody out; only look whose time is up.")
@records_plan
def tick(guard: Invocation, no_fill: bool, event_id: str | None, form: str) -> None:
    """Do what is due: time agents out, then fill the free places, audits first.

    An agent that gave a checkpoint, or is provably at work, gets half of its time again, twice at most. Whoever is sent out
    stands in the outbox, to be started. For a loop or a timer: with nothing due it records nothing, not even
    the id, so that a later tick under it does what is due then.
    """
    from guard.coordinator.record import run_tick

    def at_work(agent_id: str, agent: "ActiveAgent") -> bool:
        return _is_at_work(guard, agent_id, agent)

    print_change(guard, run_tick(guard, at_work, fills=not no_fill, event_id=event_id), form)


def _is_at_work(guard: Invocation, agent_id: str, agent: "ActiveAgent") -> bool:
    """Whom nobody can assess is not provably at work, nor is one of whom nothing was seen since it got its task."""
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
        guard.output.warn(f"whether {agent_id} is at work is not known: {error.message}")
        return False
    last = found.last_activity
    return found.is_active and last is not None and last > agent.dispatched_at


@click.command("ingest")
@click.argument("file", type=INPUT_FILE, default="-")
@plan_agent_option
@repeatable_option
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
