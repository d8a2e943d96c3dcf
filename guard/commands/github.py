"""`guard github`: run the steps of guard's action, and report the verdict on GitHub."""

import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from guard.commands import options
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.base.text import escape
from guard.core.check.words import verdict_line
from guard.core.github.report import STATUSES, StepReport, ToldReport
from guard.errors import RepositoryProblem, WrongUsage

FAIL_ON = "timeout error blocked interrupted refuted breaker_open fault"
_FROM_VARIABLES = {"auto_envvar_prefix": "GUARD_ACTION"}
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_BYTES = 64 * 1024 * 1024

_mode = options.choice_option(
    "--mode",
    among=["run", "baseline", "check"],
    default="run",
    text="Run a command; or record a baseline before, and check after, another step that runs the agent.",
)


@click.group("github")
def command() -> None:
    """Run the steps of guard's GitHub action, and report a verdict to GitHub."""


@command.command("prepare", context_settings=_FROM_VARIABLES)
@click.option(
    "--state-key",
    default="",
    metavar="TEXT",
    help="A text that tells this job's state from that of others.",
)
@click.pass_obj
def prepare(guard: Invocation, state_key: str) -> None:
    """Print the cache key for the state of this job, as outputs of the step."""
    from guard.github.environment import JobEnvironment, write_outputs

    job = JobEnvironment(guard.environ)
    general = job.cache_key(state_key, str(guard.repository.root))
    values = {
        "path": str(job.state),
        "restore": str(not job.state.exists()).lower(),
        "general-key": general,
        "key": f"{general}{job.run}-{secrets.token_hex(4)}",
    }
    write_outputs(job, values)


@command.command("step", context_settings=_FROM_VARIABLES)
@_mode
@click.option(
    "--command", "script", metavar="SCRIPT", help="The bash script that starts the agent."
)
@options.max_time_option("Stop the agent after S seconds.")
@options.check_options
@options.run_options
@click.pass_obj
def step(
    guard: Invocation, /, mode: Any, script: str | None, max_time: float | None, **given: Any
) -> None:
    """Run the agent or check it, and keep the result for `guard github publish`.

    Every option can also be set by a variable: --max-probes by GUARD_ACTION_MAX_PROBES. Until the command ends, the
    runner ignores workflow commands in its output. The exit code is 0, whatever the result is.
    """
    from dataclasses import replace

    from guard.check.verdict_text import verdict_text
    from guard.github import modes
    from guard.github import publish as publishing
    from guard.github.environment import JobEnvironment, empty_files

    job = JobEnvironment(guard.environ)
    publishing.delete_report(job)
    if mode == "run" and not script:
        raise WrongUsage("mode `run` needs a command", "set `command`, or choose another `mode`")
    place = replace(
        guard, workspace_option=str(job.state), environ=job.agent_environ(), repo=guard.repo
    )
    if mode != "run":
        given["report"] = None  # Only a run writes one.
    order, _ = options.run_order(modes.shell(script or ""), "text", given)
    order = replace(order, max_seconds=max_time)
    with _ignore_commands():
        report = modes.WorkflowStep(place, job, mode, order).run()
        if changed := empty_files(job.step_files):
            guard.output.warn(
                f"emptied files of the step that the agent had written to: {', '.join(changed)}"
            )
        publishing.save_report(report, job)
        brief = verdict_line(report.status, "", report.detail)
        guard.output.result(verdict_text(report.check) if report.check else brief)


@contextmanager
def _ignore_commands() -> Iterator[None]:
    # The runner ignores workflow commands in the output until it reads the token, which no one can know before.
    from guard.core.github.escape import resume_commands, stop_commands

    token = f"guard-{secrets.token_hex(16)}"
    click.echo(stop_commands(token))
    sys.stdout.flush()
    try:
        yield
    finally:
        click.echo(resume_commands(token))


@command.command("publish", context_settings=_FROM_VARIABLES)
@_mode
@click.option(
    "--fail-on",
    default=FAIL_ON,
    show_default=True,
    metavar="WORDS",
    help=f"Fail at these statuses: {', '.join(STATUSES)}; or none.",
)
@click.option(
    "--push-rescue", is_flag=True, help="Push the rescued commits to a branch of their own."
)
@click.option("--annotate/--no-annotate", default=True, help="Annotate the workflow run.")
@click.pass_obj
def publish(guard: Invocation, mode: Any, fail_on: str, push_rescue: bool, annotate: bool) -> int:
    """Write the outputs and the summary of `guard github step`, and fail if asked to.

    The token for a push is read from GUARD_ACTION_TOKEN. The exit code is the verdict's if --fail-on lists its
    status, else 0.
    """
    from guard.core.github.outcome import statuses_to_fail_on
    from guard.github import push as pushing
    from guard.github.environment import JobEnvironment
    from guard.github.publish import find_night, place_in_checkout, publish, read_report

    wrong = None
    try:
        words = statuses_to_fail_on(fail_on)
    except ValueError as error:
        # The verdict is published anyway, because the agent's work is already done.
        words, wrong = frozenset(), WrongUsage(f"fail-on: {error}")
    job = JobEnvironment(guard.environ)
    report = read_report(job, mode)
    token = guard.environ.get("GUARD_ACTION_TOKEN", "")
    try:
        repository = guard.repository
    except RepositoryProblem:
        repository = None
    push = pushing.push_rescue(repository, job, report.check, is_wanted=push_rescue, token=token)
    if push.why in ("fork", "no_token", "refused"):
        guard.output.warn(f"the rescued commits were not pushed: {push.detail}")
    night = find_night(guard, job, report)
    folder = place_in_checkout(repository, job)
    code, lines = publish(report, push, job, words, folder, night)
    if annotate:
        for line in lines:
            click.echo(line)
    if wrong is not None:
        raise wrong
    return code


@command.command("status")
@click.option(
    "--report",
    "file",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The file with the verdict: the action's report-path, or the output of `guard check --format json`.",
)
@click.option("--sha", metavar="ID", help="The commit; by default that of the event.")
@click.option(
    "--pr",
    type=click.IntRange(min=1),
    metavar="N",
    help="The pull request to comment on; by default that of the event.",
)
@click.option("--comment/--no-comment", default=True, help="Comment on the pull request.")
@click.option("--comment-author", metavar="LOGIN", help="Update the comment of this author.")
@options.choice_option(
    "--as",
    "kind",
    among=["status", "check-run"],
    default="status",
    text="Set a commit status, or create a check run.",
)
@click.option(
    "--name", default="guard", show_default=True, help="The name of the status or check run."
)
@click.option(
    "--if-permitted", is_flag=True, help="Only warn if GitHub refuses, as it does for forks."
)
@click.option(
    "--time-limit",
    type=options.Seconds(0.1, 3600),
    default=60,
    show_default=True,
    help="Seconds for all calls together.",
)
@prints_report
def status(guard: Invocation, /, file: Path, form: str, **given: Any) -> None:
    """Report a verdict to GitHub: a commit status or a check run, and a comment that guard updates.

    The token is read from GITHUB_TOKEN or GH_TOKEN, the server from GITHUB_API_URL. Guard waits out rate limits and
    outages within the time limit. Exit code 1 if GitHub refuses, 6 if GitHub cannot be reached in time.
    """
    from guard.github.api import Client, check_repository_name, find_token
    from guard.github.environment import JobEnvironment
    from guard.github.status import BOT, StatusNotice, tell

    job, token = JobEnvironment(guard.environ), find_token(guard.environ)
    sha = given["sha"] or job.sha or ""
    if not _SHA.fullmatch(sha):
        raise WrongUsage("there is no commit to report on", "give its full id with --sha")
    notice = StatusNotice(
        report=_read(file, job),
        repository=check_repository_name(job.repository),
        sha=sha,
        name=given["name"],
        page=job.page,
        pull_request=(given["pr"] or job.pull_request) if given["comment"] else None,
        author=given["comment_author"] or BOT,
    )
    server = guard.environ.get("GITHUB_API_URL") or "https://api.github.com"
    now = guard.clock.now
    client = Client(server, token, given["time_limit"], now=lambda: now().timestamp())
    report = tell(client, notice, given["kind"], if_permitted=given["if_permitted"])
    for refusal in report.refused:
        guard.output.warn(refusal)
    guard.output.document(report, form, _status_text)


def _read(file: Path, job: Any) -> StepReport:
    from guard.core.base.fields import parse_document
    from guard.core.check.report import EXIT_OF, CheckReport
    from guard.github.modes import redact_report

    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES)
    except OSError as error:
        raise WrongUsage(f"{file}: {error.strerror}", "check --report") from None
    try:
        if b"guard/github-step/1" in data[:200]:
            return redact_report(parse_document(StepReport, data), job)
        check = parse_document(CheckReport, data)
    except ValueError as error:
        raise WrongUsage(
            f"{file} is not a verdict: {error}",
            "give --report the output of `guard check --format json`",
        ) from None
    report = StepReport(
        mode="check",
        complete=check.complete,
        status=check.status,
        reason=check.reason,
        detail=check.detail,
        exit_code=EXIT_OF[check.status],
        breaker=check.breaker,
        probe_cost_usd=None,
        settled=True,
        baseline=None,
        check=check,
    )
    return redact_report(report, job)


def _status_text(report: ToldReport) -> str:
    lines = [f"{report.state} on {report.repository}@{report.sha[:10]}"]
    if report.comment != "none":
        lines.append(f"comment {report.comment}: {report.comment_url}")
    return escape("; ".join(lines))
