"""`guard resume`."""

from typing import TYPE_CHECKING

import click

from guard.commands.options import activity_options
from guard.context.invocation import Invocation
from guard.context.output import format_option
from guard.core.base.text import harmless_json
from guard.core.resume.report import ResumeReport, resume_line, resume_text
from guard.errors import WrongUsage

if TYPE_CHECKING:
    from guard.resume.send import ResumeRequest


@click.command("resume")
@click.argument("agent", required=False)
@activity_options
@click.option(
    "--no-claim",
    is_flag=True,
    help="Show the next task of the plan without claiming it for the agent.",
)
@click.option(
    "--send", is_flag=True, help="Send the prompt to the agent, instead of only printing it."
)
@click.option(
    "--by",
    type=click.Choice(["auto", "tmux", "session", "inbox", "command"]),
    help="The channel for the prompt; by default `resume.by`.",
)
@click.option(
    "--no-activity-check", is_flag=True, help="Do not check first whether the agent is at work."
)
@click.option("--all", "everyone", is_flag=True, help="Resume every agent that is silent.")
@click.option("--watch", is_flag=True, help="With --all and --send: keep watching until Ctrl-C.")
@format_option
@click.pass_context
def command(
    ctx: click.Context,
    agent: str | None,
    task: str | None,
    lookback: float | None,
    no_claim: bool,
    send: bool,
    by: str | None,
    no_activity_check: bool,
    everyone: bool,
    watch: bool,
    form: str,
) -> None:
    """Write a prompt that brings a stalled agent back to work, and send it if asked.

    With --send guard claims the next task of the plan for an agent that has none; a prompt that is only printed
    names the task and claims nothing.

    An agent that is at work gets no prompt (exit code 1). During one stall guard sends an agent at most
    `resume.max_per_stall` prompts; after that a person is needed (14). While a usage limit holds the agent, guard
    sends nothing (13). With --all, guard prints one line per agent, or one JSON document per line; `guard resume
    --all --send --watch` is the monitor.
    """
    from guard.hooks.ingest import ingest_hooks
    from guard.resume.send import ResumeRequest, resume

    guard: Invocation = ctx.obj
    _check_words(agent, task, everyone, send, by, watch)
    claims = send and not no_claim
    request = ResumeRequest(task, lookback, claims, send, by, not no_activity_check)
    if agent is not None:
        ingest_hooks(guard)
        report = resume(guard, agent, request)
        guard.output.verdict(report, form, resume_text)
        ctx.exit(report.exit_code)
    ctx.exit(_all(guard, request, form, watch))


def _check_words(
    agent: str | None, task: str | None, everyone: bool, send: bool, by: str | None, watch: bool
) -> None:
    if (agent is None) != everyone:
        raise WrongUsage(
            "give either an AGENT or --all", "`guard resume AGENT`, or `guard resume --all`"
        )
    if everyone and task is not None:
        raise WrongUsage("--task cannot be combined with --all", "leave out --task")
    if watch and not (everyone and send):
        raise WrongUsage("--watch needs --all and --send", "`guard resume --all --send --watch`")
    if by is not None and not send:
        raise WrongUsage("--by has no effect without --send", "add --send")


def _all(guard: Invocation, request: "ResumeRequest", form: str, watch: bool) -> int:
    from guard.resume.monitor import Monitor, resume_due

    def tell(report: ResumeReport) -> None:
        line = harmless_json(report.model_dump_json()) if form == "json" else resume_line(report)
        guard.output.result(line)

    if watch:
        Monitor(guard, request, tell).watch()
        return 0
    codes = set()
    for report in resume_due(guard, request):
        tell(report)
        codes.add(report.exit_code)
    if not codes and form == "text":
        guard.output.result("no agent has stalled: nothing to resume")
    return next((code for code in (1, 14, 13) if code in codes), 0)
