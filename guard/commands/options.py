"""The options that several commands share, and for `check`, `run` and `loop` the terms that they stand for."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from guard.context.ids import given_id
from guard.context.invocation import Invocation
from guard.core.base.report import Report
from guard.core.check.settings import AgentCli
from guard.errors import WrongUsage
from guard.iteration.current import CheckTerms

if TYPE_CHECKING:
    from guard.run.order import RunOrder

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

DAY_SECONDS = 86400
MONTH_SECONDS = 30 * DAY_SECONDS


class Seconds(click.ParamType):  # type: ignore[type-arg]
    """A time, which ends."""

    name = "seconds"

    def __init__(self, least: float = 0, most: float = DAY_SECONDS) -> None:
        self._least, self._most = least, most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            seconds = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)
        if not self._least <= seconds <= self._most:
            self.fail(f"{value} is not between {self._least:g} and {self._most}", param, ctx)
        return seconds


_OPTIONS = (
    click.option(
        "--baseline",
        metavar="REV",
        help="Count from this revision instead of the recorded baseline.",
    ),
    click.option(
        "--spec", metavar="NAME", help="The spec that is worked on: its task file is looked at."
    ),
    click.option(
        "--agent",
        type=click.Choice(get_args(AgentCli)),
        help="Which agent it is; `run` and `loop` see it by the command.",
    ),
    click.option("--session", metavar="ID", help="The agent's session, to be asked by a probe."),
    click.option(
        "--probe-command",
        metavar="CMD",
        help="For the agent `command`: the program that answers, with the question on its stdin.",
    ),
    click.option(
        "--max-probes", type=click.IntRange(1, 1000), metavar="N", help="Rounds before it gives up."
    ),
    click.option(
        "--probe-interval", type=Seconds(), metavar="S", help="Seconds between two rounds."
    ),
    click.option(
        "--probe-timeout", type=Seconds(least=0.001), metavar="S", help="Seconds for one probe."
    ),
    click.option("--no-probe", is_flag=True, help="Ask nobody: judge by the evidence alone."),
    click.option(
        "--no-rescue", is_flag=True, help="Commit nothing; a snapshot is taken all the same."
    ),
    click.option("--no-wait", is_flag=True, help="Look once, and commit nothing."),
)


def settles_rollbacks(function: Callable[..., R], *, of_plan: bool = False) -> Callable[..., R]:
    """Finish or undo a killed rollback before the command runs, but not when its help is printed.

    For commands that look at the work tree or change it: half-reverted files are not the agent's work.
    """

    @wraps(function)
    def settled(guard: Invocation, /, *args: Any, **options: Any) -> R:
        from guard.rollback.pending import see_to_killed, see_to_unrecorded

        settle = see_to_unrecorded if of_plan else see_to_killed
        settle(guard)
        return function(guard, *args, **options)

    return settled


def settles_plan_rollbacks(function: Callable[..., R]) -> Callable[..., R]:
    """Settle a killed rollback first, also one that lacks only the record of its end."""
    return settles_rollbacks(function, of_plan=True)


def check_options(function: F) -> F:
    """All options of a completion check, handed on as keyword arguments."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_AGENT_OPTIONS = (
    click.option(
        "--task", metavar="ID", callback=given_id("a task id"), help="The task, for the registries."
    ),
    click.option(
        "--agent-id",
        metavar="ID",
        callback=given_id("an agent id"),
        help="The agent's name in the registries; by default the name of its CLI.",
    ),
    click.option(
        "--report",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write the JSON document to this file too.",
    ),
)


def agent_options(function: F) -> F:
    """The options of those who run the agent themselves."""
    for option in reversed(_AGENT_OPTIONS):
        function = option(function)
    return function


def max_time_option(says: str) -> Callable[[F], F]:
    """The time after which the agent is ended, whatever it does."""
    return click.option("--max-time", type=Seconds(0.001, MONTH_SECONDS), metavar="S", help=says)


words_argument = click.argument(
    "words", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED
)
"""The command that is the agent."""


def ordered(
    words: tuple[str, ...], form: str, told: dict[str, Any]
) -> "tuple[RunOrder, Path | None]":
    """What to run by these options, and where the report goes."""
    from guard.run.order import RunOrder

    report = told.pop("report")
    if report is not None and not report.absolute().parent.is_dir():
        raise WrongUsage(f"{report.parent} is not a folder", "check --report")
    task, agent_id = told.pop("task"), told.pop("agent_id")
    order = RunOrder(words, terms(told), to_stderr=form == "json", task=task, agent_id=agent_id)
    return order, report


def write_report(report: Report, file: Path | None, warn: Callable[[str], None]) -> None:
    """The document in the file that was named; without it the verdict stands all the same."""
    if file is None:
        return
    try:
        file.write_text(report.model_dump_json(indent=2) + "\n")
    except OSError as error:
        warn(f"the report could not be written: {file}: {error.strerror}")


def terms(told: dict[str, Any]) -> CheckTerms:
    """The terms in these options, which are taken out; what is left belongs to the command."""
    command = told.pop("probe_command")
    agent = told.pop("agent") or ("command" if command else None)
    return CheckTerms(
        baseline=told.pop("baseline"),
        spec=told.pop("spec"),
        agent=agent,
        session=told.pop("session"),
        probe=not told.pop("no_probe"),
        wait=not told.pop("no_wait"),
        rescue=not told.pop("no_rescue"),
        flags={
            "completion_check.probe_command": command,
            "completion_check.max_probes": told.pop("max_probes"),
            "completion_check.probe_interval_seconds": told.pop("probe_interval"),
            "completion_check.probe_timeout_seconds": told.pop("probe_timeout"),
        },
    )


event_id_option = click.option(
    "--event-id",
    metavar="ID",
    callback=given_id("an event id"),
    help="The id to record it under: the same once more changes nothing.",
)


def activity_options(command: F) -> F:
    """Whose activity is looked at, and how far back."""
    task = click.option(
        "--task", metavar="ID", help="Whose agent it is, where several tasks have one of this name."
    )
    lookback = click.option(
        "--lookback",
        type=Seconds(least=0.01, most=43200),
        metavar="MIN",
        help="How far back signs of activity count; by default `activity.lookback_minutes`.",
    )
    return task(lookback(command))
