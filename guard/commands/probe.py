"""`guard probe`."""

import click

from guard.commands.options import agent_cli_option, probe_command_option, tells_what_is_safe
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.base.text import escape
from guard.core.probe.report import ProbeReport

_FAILED, _LIMITED = 15, 13


@click.command("probe")
@agent_cli_option("The agent to ask; by default `completion_check.agent`.")
@click.option("--session", metavar="ID", help="The id of the agent's session, not its title.")
@probe_command_option
@click.option("--probe-timeout", type=float, metavar="S", help="Seconds for the answer.")
@click.option("--model", metavar="M", help="The model that answers, if the CLI lets one choose.")
@prints_report
def command(
    guard: Invocation,
    agent: str | None,
    session: str | None,
    probe_command: str | None,
    probe_timeout: float | None,
    model: str | None,
    form: str,
) -> int:
    """Ask an agent's session about its state, once.

    Guard forks or copies the session if the CLI allows it, gives it no tools or only tools that read, and does not
    disturb it. The answer is a claim, which `guard check` compares with the repository.

    Exit code 0 if the agent answers; 13 at a usage limit, with retry_at; 15 if there is no answer, with the reason.
    """
    from guard.probe import probe_session

    flags = {
        "completion_check.agent": agent or ("command" if probe_command else None),
        "completion_check.probe_command": probe_command,
        "completion_check.probe_timeout_seconds": probe_timeout,
        "completion_check.probe_model": model,
    }
    again = "the repository is as it was, and the session can be asked again"
    with tells_what_is_safe(lambda: again):
        report = probe_session(guard, session, flags)
    guard.output.verdict(report, form, _text)
    return 0 if report.answer else _LIMITED if report.failure == "limited" else _FAILED


def _text(report: ProbeReport) -> str:
    answer = report.answer
    if answer is None:
        until = f", until {report.retry_at:%Y-%m-%dT%H:%M:%SZ}" if report.retry_at else ""
        return escape(f"no answer from {report.agent}: {report.failure}{until}: {report.detail}")
    claim = "" if report.reading == answer.status else f" (it says {answer.status})"
    lines = [f"{report.agent}: {report.reading}{claim}: {answer.message}".rstrip(": ")]
    if answer.agents_active:
        lines.append(f"helpers: {answer.agents_details or 'active'}")
    if answer.needs_person:
        lines.append(f"needs you: {answer.question or 'it does not say for what'}")
    lines += [f"pending: {task}" for task in answer.tasks_pending]
    lines += [f"next: {answer.next_action}"] if answer.next_action else []
    return "\n".join(map(escape, lines))
