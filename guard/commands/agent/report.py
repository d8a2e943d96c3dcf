"""`guard agent spawn`, `update`, `finding`, `test`: what agents and their starters report."""

from typing import Any, cast, get_args

import click

from guard.commands.agent.options import incarnation_option, message_option, named, tell
from guard.context.invocation import Invocation
from guard.context.output import format_option
from guard.core.agents.agent import STATUSES
from guard.core.agents.events import AgentStatus, Severity
from guard.errors import Refused

_place = (
    click.option("--tmux-session", metavar="NAME", help="The tmux session that it runs in."),
    click.option(
        "--tmux-socket",
        metavar="NAME|PATH",
        help="The tmux server's socket, if it is not the default one.",
    ),
    click.option("--pid", type=click.IntRange(1, 2**31), metavar="N", help="Its process."),
)


def _placed(function: Any) -> Any:
    """The options that say where the agent runs."""
    for option in reversed(_place):
        function = option(function)
    return function


@click.command("spawn")
@named
@click.option(
    "--type",
    "agent_type",
    default="agent",
    show_default=True,
    metavar="NAME",
    help="What kind of agent it is: investigator, builder, fixer, or any other.",
)
@message_option
@_placed
@format_option
@click.pass_obj
def spawn(guard: Invocation, /, form: str, **told: Any) -> None:
    """Register an agent that has been started.

    Where the repository stands is recorded with it: a later claim of completion is measured from there. With a tmux session
    or a process, its end is noticed without a report.

    Refused (exit code 1) while an agent of that name is active in the task.
    """
    from guard.agents.report import spawned

    tell(guard, spawned(guard, **told), form)


@click.command("update")
@named
@click.option("--status", required=True, type=click.Choice(STATUSES), help="Its status now.")
@click.option("--progress", type=click.IntRange(0, 100), metavar="PERCENT", help="How far it is.")
@message_option
@incarnation_option
@_placed
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse a completion with blocking issues: exit code 1, and the agent stays active.",
)
@format_option
@click.pass_obj
def update(guard: Invocation, /, status: str, form: str, **told: Any) -> None:
    """Record what an agent reports of itself.

    The counts move only when it goes from an active status to a terminal one; a report after that is kept and changes none.
    A report of completion is held against git and the log, and the answer says how far it is to be believed.
    """
    from guard.agents.report import updated

    report = updated(guard, status=cast(AgentStatus, status), **told)
    tell(guard, report, form)
    if report.recorded_as == "refused":
        raise Refused(
            "the completion was refused: see the blocking issues",
            "do what is missing, and report again",
        )


@click.command("finding")
@named
@click.option(
    "--severity",
    type=click.Choice(get_args(Severity)),
    default="info",
    show_default=True,
    help="How much it matters.",
)
@click.option("--file", metavar="PATH", help="The file that it is about.")
@incarnation_option
@click.argument("text")
@format_option
@click.pass_obj
def finding(guard: Invocation, /, form: str, **told: Any) -> None:
    """Record something that an agent has found out."""
    from guard.agents.report import found

    tell(guard, found(guard, **told), form)


@click.command("test", context_settings={"ignore_unknown_options": True})
@named
@incarnation_option
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="End the command after so long; by default it may take as long as it likes.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@format_option
@click.pass_obj
def test(guard: Invocation, /, form: str, **told: Any) -> None:
    """Run an agent's tests, and record how they ended.

    What the command prints goes to stderr. A later claim that tests were run is held against this record.
    Exit code 0 if the tests passed, 1 if not.
    """
    from guard.agents.report import ran_tests

    report = ran_tests(guard, **told)
    tell(guard, report, form)
    last = report.agent.last_test
    if last is None or last.exit_code != 0:
        how = "did not end in time" if last is None or last.exit_code is None else "failed"
        raise Refused(f"the tests {how}", "what they printed says more")
