"""`guard github status`."""

import re
from pathlib import Path
from typing import Any

import click

from guard.commands.options import Seconds
from guard.context.invocation import Invocation
from guard.context.output import format_option
from guard.core.base.text import visible
from guard.core.github.report import StepReport, ToldReport
from guard.errors import WrongUsage

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_BYTES = 64 * 1024 * 1024


@click.command("status")
@click.option(
    "--report",
    "file",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The verdict: the action's report-path, or what `guard check --format json` printed.",
)
@click.option("--sha", metavar="ID", help="The commit, instead of that of the event.")
@click.option("--pr", type=click.IntRange(min=1), metavar="N", help="The pull request to comment.")
@click.option("--comment/--no-comment", default=True, help="Whether a pull request gets a comment.")
@click.option("--comment-author", metavar="LOGIN", help="Whose comments are kept current.")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["status", "check-run"]),
    default="status",
    show_default=True,
    help="What the commit gets.",
)
@click.option("--name", default="guard", show_default=True, help="Its name.")
@click.option("--if-permitted", is_flag=True, help="A refusal is a warning, as on forks.")
@click.option(
    "--time-limit", type=Seconds(0.1, 3600), default=60, show_default=True, help="Seconds for all."
)
@format_option
@click.pass_obj
def status(guard: Invocation, /, file: Path, form: str, **told: Any) -> None:
    """Tell GitHub of a verdict: a commit status or a check run, and a comment that is kept current.

    The token comes from GITHUB_TOKEN or GH_TOKEN, the server from GITHUB_API_URL. Rate limits and outages are waited out
    within the time limit. Exit code 1: GitHub refused; 6: it could not be reached in time.
    """
    from guard.github.api import Client, repository_named, token_in
    from guard.github.environment import Surroundings
    from guard.github.status import BOT, Told, tell

    job, token = Surroundings(guard.environ), token_in(guard.environ)
    sha = told["sha"] or job.sha or ""
    if not _SHA.fullmatch(sha):
        raise WrongUsage("there is no commit to tell of", "name one with --sha: a full id")
    asked = Told(
        report=_read(file, job),
        repository=repository_named(job.repository),
        sha=sha,
        name=told["name"],
        page=job.page,
        pull_request=(told["pr"] or job.pull_request) if told["comment"] else None,
        author=told["comment_author"] or BOT,
    )
    server = guard.environ.get("GITHUB_API_URL") or "https://api.github.com"
    now = guard.clock.now
    client = Client(server, token, told["time_limit"], now=lambda: now().timestamp())
    report = tell(client, asked, told["kind"], if_permitted=told["if_permitted"])
    for refusal in report.refused:
        guard.output.warn(refusal)
    guard.output.document(report, form, _text)


def _read(file: Path, job: Any) -> StepReport:
    from guard.core.base.fields import parsed
    from guard.core.check.report import EXIT_OF, CheckReport
    from guard.github.modes import without_secrets

    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES)
    except OSError as error:
        raise WrongUsage(f"{file}: {error.strerror}", "check --report") from None
    try:
        if b"guard/github-step/1" in data[:200]:
            return without_secrets(parsed(StepReport, data), job)
        check = parsed(CheckReport, data)
    except ValueError as error:
        raise WrongUsage(f"{file} is no verdict: {error}", "check --report") from None
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
    return without_secrets(report, job)


def _text(report: ToldReport) -> str:
    lines = [f"{report.state} on {report.repository}@{report.sha[:10]}"]
    if report.comment != "none":
        lines.append(f"comment {report.comment}: {report.comment_url}")
    return visible("; ".join(lines))
