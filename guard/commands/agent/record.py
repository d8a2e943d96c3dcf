"""`guard agent spawn`, `update`, `finding`, `test`, `kill` and `import`: the verbs that record."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from guard.commands import options
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.agents.agent import STATUSES
from guard.core.agents.events import Severity
from guard.core.agents.report import AgentReport, ImportReport, transition_line
from guard.core.base.text import escape, plural
from guard.errors import Refused

if TYPE_CHECKING:
    from guard.agents.update import PlaceOptions

_WORDS = {
    "late": " (the report came after its end: kept, counts unchanged)",
    "refused": " (the claim of completion was refused)",
    "finding": ", finding recorded",
    "test_run": ", test run recorded",
}

_incarnation_option = options.incarnation_option(
    "The agent's incarnation, as `spawn` printed it; a report of an earlier one changes nothing. Also "
    "GUARD_AGENT_INCARNATION, for the agent that GUARD_TASK_ID and GUARD_AGENT_ID name."
)
_message_option = click.option(
    "--message", default="", metavar="TEXT", help="What the agent says about itself."
)
_process_options = options.stack(
    click.option("--tmux-session", metavar="NAME", help="The tmux session that the agent runs in."),
    click.option(
        "--tmux-socket", metavar="NAME|PATH", help="The tmux server's socket, if not the default."
    ),
    click.option("--pid", type=click.IntRange(1, 2**31), metavar="N", help="The agent's process."),
)


def _take_place(given: dict[str, Any]) -> "PlaceOptions":
    from guard.agents.update import PlaceOptions

    names = ("tmux_session", "tmux_socket", "pid")
    return PlaceOptions(**{name: given.pop(name) for name in names})


@click.command("spawn")
@options.registered_agent_options
@click.option(
    "--type",
    "agent_type",
    default="agent",
    show_default=True,
    metavar="NAME",
    help="The kind of agent: investigator, builder, fixer, or any other word.",
)
@_message_option
@_process_options
@prints_report
def spawn(guard: Invocation, /, form: str, **given: Any) -> None:
    """Register an agent that has been started.

    Guard records where the repository stands; a later claim of completion is measured from there. If a tmux session
    or a process is given, guard notices the agent's end without a report.

    Exit code 1 if an agent of this name is active in the task.
    """
    from guard.agents.update import spawn_agent

    place = _take_place(given)
    _print(guard, spawn_agent(guard, place=place, **given), form)


@click.command("update")
@options.registered_agent_options
@click.option(
    "--status", required=True, type=click.Choice(STATUSES), help="The agent's status now."
)
@click.option(
    "--progress", type=click.IntRange(0, 100), metavar="PERCENT", help="The agent's progress."
)
@_message_option
@_incarnation_option
@_process_options
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse a completion with blocking issues: exit with code 1 and keep the agent active.",
)
@prints_report
def update(guard: Invocation, /, form: str, strict: bool, **given: Any) -> None:
    """Record an agent's report about itself.

    The counts change only when the agent goes from an active status to a terminal one; guard keeps a later report
    but does not count it. Guard compares a reported completion with git and the log, and prints how credible it is.

    Exit code 1 if --strict refuses the completion.
    """
    from guard.agents.registry import AgentUpdate
    from guard.agents.update import update_agent

    place = _take_place(given)
    report = update_agent(guard, AgentUpdate(**given), place, strict=strict)
    _print(guard, report, form)
    if report.recorded_as == "refused":
        raise Refused(
            "the completion was refused because of the blocking issues above",
            "finish the missing work, then report the completion again",
        )


@click.command("finding")
@options.registered_agent_options
@options.choice_option(
    "--severity", among=get_args(Severity), default="info", text="The severity of the finding."
)
@click.option("--file", metavar="PATH", help="The file that the finding is about.")
@_incarnation_option
@click.argument("text")
@prints_report
def finding(guard: Invocation, /, form: str, **given: Any) -> None:
    """Record a finding of an agent."""
    from guard.agents.update import record_finding

    _print(guard, record_finding(guard, **given), form)


@click.command("test", context_settings={"ignore_unknown_options": True})
@options.registered_agent_options
@_incarnation_option
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Stop the command after this time; by default it has no limit.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@prints_report
def test(guard: Invocation, /, form: str, **given: Any) -> None:
    """Run an agent's tests, and record the result.

    The output of the command goes to stderr. Guard compares a later claim that tests were run with this record.

    Exit code 0 if the tests pass, 1 if they fail or run out of time.
    """
    from guard.agents.update import run_tests

    report = run_tests(guard, **given)
    _print(guard, report, form)
    last = report.agent.last_test
    if last is None or last.exit_code != 0:
        how = "did not end in time" if last is None or last.exit_code is None else "failed"
        raise Refused(f"the tests {how}", "read the output of the tests above")


@click.command("kill")
@options.registered_agent_options
@click.option("--reason", required=True, metavar="TEXT", help="The reason, for the log.")
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    metavar="SECONDS",
    help="Wait this long before guard kills by force; by default `registry.kill_grace_seconds`.",
)
@prints_report
def kill(
    guard: Invocation, task_id: str, agent_id: str, reason: str, grace: float | None, form: str
) -> None:
    """Kill an agent, and record its end.

    Guard asks the tmux session or the process to end, then kills it, and records the end only after it has seen it.

    Exit code 1 if guard cannot prove that the process is the agent's: then it kills nothing and records nothing.
    """
    from guard.agents.kill import kill_agent

    unsure = "the agent may still run, and its end is not recorded; `guard agent list` looks again"
    with options.tells_what_is_safe(lambda: unsure):
        report = kill_agent(guard, task_id, agent_id, reason, grace)
    _print(guard, report, form)


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@options.task_id_option("task_id", text="The task of agents whose entry names none.")
@prints_report
def import_agents(guard: Invocation, file: Path, task_id: str | None, form: str) -> None:
    """Import the agents of a registry file written by hand or by another tool.

    Guard leaves agents that are registered already as they are, so a second import changes nothing. A file with any
    error is refused as a whole, with exit code 1.
    """
    from guard.agents import import_registry

    report = import_registry.import_agents(guard, file, task_id)
    for warning in report.warnings:
        guard.output.warn(warning)
    guard.output.document(report, form, _import_text)


def _import_text(report: ImportReport) -> str:
    lines = [f"{plural(len(report.imported), 'agent')} imported, {len(report.known)} known before"]
    lines += [f"  {agent.task_id}/{agent.agent_id}" for agent in report.imported]
    return "\n".join(lines)


def _print(guard: Invocation, report: AgentReport, form: str) -> None:
    if report.recorded_as == "spawned" or report.previous_status != report.agent.status:
        guard.output.note(transition_line(report))
    guard.output.document(report, form, _sentence)


def _sentence(report: AgentReport) -> str:
    agent = report.agent
    head = f"{agent.task_id}/{agent.agent_id}: {agent.status}{_WORDS.get(report.recorded_as, '')}"
    counts = f"{report.active_count} active, {report.completed_count} completed, {report.total_spawned} spawned"
    lines = [escape(f"{head}; task: {counts}; all tasks: {report.active_agents} active")]
    if report.completion_validation is not None:
        lines += [escape(line) for line in _judgement(report)]
    return "\n".join(lines)


def _judgement(report: AgentReport) -> list[str]:
    found = report.completion_validation
    assert found is not None
    lines = [f"  confidence {found.confidence:.2f}"]
    lines += [f"  blocking: {issue}" for issue in found.blocking_issues]
    return lines + [f"  warning: {warning}" for warning in found.warnings]
