"""Options that several commands share, and the values made from them."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from guard.context.ids import id_callback
from guard.context.invocation import Invocation
from guard.context.output import format_option, write_document
from guard.core.base.agent_json import AgentCli
from guard.core.base.first_use import late_pattern
from guard.errors import Interrupted, WrongUsage

if TYPE_CHECKING:
    from guard.core.base.fields import Report
    from guard.core.config.settings import Settings
    from guard.core.coordinator.requests import Request
    from guard.core.cost.budget import Allowance, CostBudget
    from guard.iteration.current import CheckTerms
    from guard.run.order import RunOrder

_AGO = late_pattern(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

DAY_SECONDS = 86400
MONTH_SECONDS = 30 * DAY_SECONDS
INPUT_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
"""A file that exists, or `-` for standard input."""


class Seconds(click.ParamType):  # type: ignore[type-arg]
    """A number of seconds within limits; unlike click's own range it refuses `nan`."""

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


class Amount(Seconds):
    """An amount of dollars within limits."""

    name = "amount"


def stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator for several options; the help lists them in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def choice_option(*names: str, among: Sequence[str], default: str, text: str) -> Callable[[F], F]:
    choice = click.Choice(among)
    return click.option(*names, type=choice, default=default, show_default=True, help=text)


def agent_cli_option(text: str) -> Callable[[F], F]:
    return click.option("--agent", type=click.Choice(get_args(AgentCli)), help=text)


def task_id_option(*names: str, text: str, **more: Any) -> Callable[[F], F]:
    check = id_callback("a task id")
    return click.option("--task", *names, metavar="ID", callback=check, help=text, **more)


def agent_id_option(*names: str, text: str, **more: Any) -> Callable[[F], F]:
    check = id_callback("an agent id")
    return click.option(*names, metavar="ID", callback=check, help=text, **more)


def event_id_option(text: str) -> Callable[[F], F]:
    return click.option("--event-id", metavar="ID", callback=id_callback("an event id"), help=text)


registered_agent_options = stack(
    task_id_option(
        "task_id",
        text="The agent's task; also GUARD_TASK_ID.",
        required=True,
        envvar="GUARD_TASK_ID",
    ),
    agent_id_option(
        "--agent",
        "agent_id",
        text="The agent's id; also GUARD_AGENT_ID.",
        required=True,
        envvar="GUARD_AGENT_ID",
    ),
)
"""The options that select one agent of one task."""

plan_agent_option = agent_id_option("--agent", "agent_id", required=True, text="The agent's id.")

repeatable_option = event_id_option(
    "Record the event under this id; the same call with the same id changes nothing."
)

probe_command_option = click.option(
    "--probe-command",
    metavar="CMD",
    help="The program that answers for the agent `command`; it reads the question on stdin.",
)


def incarnation_option(text: str) -> Callable[[F], F]:
    return click.option("--incarnation", type=click.IntRange(1, 2**31), metavar="N", help=text)


def settles_rollbacks(function: Callable[..., R], *, of_plan: bool = False) -> Callable[..., R]:
    """Finish or undo the rollback of a killed process before the command runs, but not before its help.

    For commands that read or change the work tree: half-reverted files are not the agent's work.
    """

    @wraps(function)
    def settle_first(guard: Invocation, /, *args: Any, **options: Any) -> R:
        from guard.rollback import settle_killed, settle_unrecorded

        if of_plan:
            from guard.landing import settle_landing

            settle_unrecorded(guard)
            settle_landing(guard)
        else:
            from guard.snapshots.last_resort import save_before_abort

            with save_before_abort(guard):
                settle_killed(guard)
        return function(guard, *args, **options)

    return settle_first


@contextmanager
def tells_what_is_safe(hint: Callable[[], str | None]) -> Iterator[None]:
    """Add the hint to the message with which Ctrl-C in this block ends the command."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted", hint()) from None


def settles_plan_rollbacks(function: Callable[..., R]) -> Callable[..., R]:
    """Settle the rollback of a killed process first, even if only the record of its end is missing."""
    return settles_rollbacks(function, of_plan=True)


check_options = stack(
    click.option(
        "--baseline", metavar="REV", help="Count from this revision, not the recorded baseline."
    ),
    click.option("--spec", metavar="NAME", help="The spec whose task file the check reads."),
    agent_cli_option("The agent's CLI; `run` and `loop` recognise it by the command."),
    click.option("--session", metavar="ID", help="The agent's session, for a probe to ask."),
    probe_command_option,
    click.option(
        "--max-probes", type=click.IntRange(1, 1000), metavar="N", help="Give up after N rounds."
    ),
    click.option("--probe-interval", type=Seconds(), metavar="S", help="Seconds between rounds."),
    click.option(
        "--probe-timeout", type=Seconds(least=0.001), metavar="S", help="Seconds for one probe."
    ),
    click.option("--no-probe", is_flag=True, help="Ask no agent; judge by the evidence alone."),
    click.option("--no-rescue", is_flag=True, help="Commit nothing; still take a snapshot."),
    click.option("--no-wait", is_flag=True, help="Look once, wait for nothing, commit nothing."),
    click.option(
        "--prove",
        "prove_command",
        metavar="CMD",
        help="Say complete only if CMD, such as 'pytest -q', succeeds on a clean checkout of the commits.",
    ),
    click.option("--no-prove", is_flag=True, help="Do not run prove.command."),
)
"""The options of a completion check; `check_terms` reads them."""

run_options = stack(
    task_id_option(text="The task of the agent in the registries."),
    agent_id_option(
        "--agent-id", text="The agent's id in the registries; by default the name of its CLI."
    ),
    click.option(
        "--type",
        "agent_type",
        metavar="NAME",
        help="The kind of agent in the registries: investigator, builder, fixer, or any other word; by default "
        "the name of its CLI.",
    ),
    click.option(
        "--report",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Also write the JSON document to this file.",
    ),
)
"""The options of the commands that run the agent: `run`, `loop` and `github step`."""

activity_options = stack(
    click.option(
        "--task",
        metavar="ID",
        help="The agent's task, if several tasks have an agent of this name.",
    ),
    click.option(
        "--lookback",
        type=Seconds(least=0.01, most=43200),
        metavar="MIN",
        help="Count signs of activity of the last MIN minutes; by default `activity.lookback_minutes`.",
    ),
)

_report_options = stack(
    click.option("--no-notify", is_flag=True, help="Send no notices."),
    click.option(
        "--show",
        type=click.Choice(["text", "raw", "none"]),
        help="How to show what the agent prints: its events as messages and tool calls, byte for byte, or not at all; "
        "by default text on a terminal, else raw.",
    ),
)
"""The options of `run` and `loop` about what a person gets to see."""
words_argument = click.argument(
    "words", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED
)
"""The command that starts the agent."""


def runs_agent(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options of a command that runs the agent, and the agent's command line."""
    callback = click.pass_obj(settles_rollbacks(function))
    return stack(check_options, run_options, _report_options, format_option, words_argument)(
        callback
    )


def max_time_option(text: str) -> Callable[[F], F]:
    return click.option("--max-time", type=Seconds(0.001, MONTH_SECONDS), metavar="S", help=text)


AMOUNT = Amount(least=1e-6, most=1e9)
allowance_options = stack(
    click.option(
        "--max-cost",
        type=AMOUNT,
        metavar="USD",
        help="End the agent when it has cost this many dollars, as its CLI or your cost.prices tell.",
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(1, 10**15),
        metavar="N",
        help="End the agent when it has used this many tokens, those from a cache included.",
    ),
)
"""What one iteration may use; `take_allowance` reads it."""


def take_allowance(options: dict[str, Any]) -> "Allowance | None":
    from guard.core.cost.budget import Allowance

    found = Allowance(options.pop("max_cost"), options.pop("max_tokens"))
    return found if found != Allowance() else None


budget_options = stack(
    click.option(
        "--max-cost",
        type=AMOUNT,
        metavar="USD",
        help="Stop when the agents have cost this many dollars, as their CLIs or your cost.prices tell.",
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(1, 10**15),
        metavar="N",
        help="Stop when the agents have used this many tokens, those from a cache included.",
    ),
    click.option(
        "--max-cost-without-progress",
        type=AMOUNT,
        metavar="USD",
        help="Stop when so many dollars were spent since the last new work (proven, where there is a command).",
    ),
)
"""The user's budget; `take_budget` reads it."""


def take_budget(settings: "Settings", options: dict[str, Any]) -> "CostBudget":
    """Take the budget out of the options; what is not given is as the settings say."""
    from guard.core.cost.budget import CostBudget

    names = ("max_cost", "max_tokens", "max_cost_without_progress")
    given = {name: options.pop(name) for name in names}
    return CostBudget(
        **{
            name: getattr(settings.run, name) if value is None else value
            for name, value in given.items()
        }
    )


def run_order(
    words: tuple[str, ...], form: str, options: dict[str, Any]
) -> "tuple[RunOrder, Path | None]":
    """Take out of the options what to run, and return it with the file for the report."""
    from guard.run.order import RunOrder

    report = fixed_path("--report", options.pop("report"))
    names = {name: options.pop(name) for name in ("task", "agent_id", "agent_type")}
    if names["agent_type"] is not None and names["task"] is None:
        raise WrongUsage("--type is for the registries, and no task is given", "add --task ID")
    terms = check_terms(options)
    seen = {"show": options.pop("show", None), "notifies": not options.pop("no_notify", False)}
    return RunOrder(words, terms, to_stderr=form == "json", **seen, **names), report


def fixed_path(option: str, file: Path | None) -> Path | None:
    """Return a file for reports in the folder that its folder is now: the agent may put a link in its place."""
    if file is None:
        return None
    if not file.absolute().parent.is_dir():
        raise WrongUsage(
            f"{option}: {file.parent} is not a folder", "create the folder, or name another file"
        )
    return Path(os.path.realpath(file.parent), file.name)


def check_terms(options: dict[str, Any]) -> "CheckTerms":
    from guard.iteration.current import CheckTerms

    command = options.pop("probe_command")
    agent = options.pop("agent") or ("command" if command else None)
    return CheckTerms(
        baseline=options.pop("baseline"),
        spec=options.pop("spec"),
        agent=agent,
        session=options.pop("session"),
        probe=not options.pop("no_probe"),
        wait=not options.pop("no_wait"),
        rescue=not options.pop("no_rescue"),
        prove=not options.pop("no_prove"),
        flags={
            "prove.command": options.pop("prove_command"),
            "completion_check.probe_command": command,
            "completion_check.max_probes": options.pop("max_probes"),
            "completion_check.probe_interval_seconds": options.pop("probe_interval"),
            "completion_check.probe_timeout_seconds": options.pop("probe_timeout"),
        },
    )


def write_report(report: "Report", file: Path | None, warn: Callable[[str], None]) -> None:
    """Write the document to the file of --report; a failure is only a warning and does not change the verdict."""
    if file is None:
        return
    if os.path.realpath(file.parent) != os.fspath(file.parent):
        warn(f"cannot write the report to {file}: a link was put in the place of its folder")
        return
    try:
        write_document(file, report)
    except OSError as error:
        warn(f"cannot write the report to {file}: {error.strerror}")


def records_plan(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a verb that records an event of the plan; a value that cannot be recorded is wrong usage."""

    @wraps(function)
    def refuse_invalid(*args: Any, **options: Any) -> None:
        from guard.coordinator.record import reject_invalid

        with reject_invalid():
            function(*args, **options)

    callback = click.pass_obj(settles_plan_rollbacks(refuse_invalid))
    return repeatable_option(format_option(callback))


def records_request(function: Callable[..., "Request"]) -> Callable[..., None]:
    """Add the options of a verb that returns a request to the coordinator, and record the request.

    The verb gets the id of the task that the user named, as `task_id`.
    """

    @wraps(function)
    def record_returned(guard: Invocation, event_id: str | None, form: str, **options: Any) -> None:
        from guard.coordinator.plan import find_task_id

        if (task := options.pop("task", None)) is not None:
            options["task_id"] = find_task_id(guard, task)
        record_request(guard, function(**options), event_id, form)

    return records_plan(record_returned)


def record_request(guard: Invocation, request: "Request", event_id: str | None, form: str) -> None:
    from guard.coordinator.record import record

    print_change(guard, record(guard, request, event_id), form)


def print_change(guard: Invocation, done: Any, form: str) -> None:
    from guard.core.coordinator.report import change_report, change_text

    hold = guard.users_config.settings.coordinator.hold_on_question
    report = change_report(done.events, done.state, repeated=done.repeated, hold=hold)
    guard.output.document(report, form, lambda found: change_text(found, done.state))


def parse_since(text: str, now: datetime) -> datetime:
    """Return the time that --since names: a moment, or one so long ago."""
    ago = _AGO.fullmatch(text)
    try:
        if ago:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise WrongUsage(
            f"--since {text!r} is not a time",
            "write for example 2026-01-31T12:00:00Z, or 2h for two hours ago",
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
