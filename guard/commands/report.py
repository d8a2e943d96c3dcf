"""`guard report`."""

from pathlib import Path

import click
from click.core import ParameterSource

from guard.commands import options
from guard.context.ids import id_callback
from guard.context.invocation import Invocation
from guard.context.output import colour
from guard.core.base.text import escape
from guard.core.report.document import NightReport
from guard.errors import WrongUsage


@click.command("report")
@click.option(
    "--since",
    metavar="TIME",
    help="Report all since this time: ISO-8601, or an age such as 30s, 5m, 2h, 1d.",
)
@click.option(
    "--run",
    "run_id",
    metavar="ID",
    callback=id_callback("a run id"),
    help="Report this run alone.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="The output format: text for people, markdown for a pull request, or one JSON document for scripts.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the report as one page of HTML, which needs no network and no script.",
)
@click.pass_context
def command(
    ctx: click.Context, since: str | None, run_id: str | None, form: str, page: Path | None
) -> None:
    """Report what runs did: what needs you now, what to review, and where hours and money went.

    Without a range the report is about the newest run, or about all since the last 24 hours if that is more. All
    figures come from the log, and what commits change from git. Secrets are taken out. Exit code 1 if the log does
    not have the run.
    """
    from guard.report.gather import make_report

    guard: Invocation = ctx.obj
    if since and run_id:
        raise WrongUsage("--since and --run exclude each other", "give one of them")
    begin = options.parse_since(since, guard.clock.now()) if since else None
    report = make_report(guard, run=run_id, since=begin)
    if page is not None:
        from guard.report.page import write_page

        write_page(guard, page, report)
        if ctx.get_parameter_source("form") is ParameterSource.DEFAULT:
            guard.output.result(f"{escape(report.headline.text)}\n{escape(str(page))}")
            return
    guard.output.document(report, form, _markdown if form == "markdown" else _text)


def _text(report: NightReport) -> str:
    from guard.core.report.text import report_text

    return report_text(report, _bold, _warning)


def _bold(text: str) -> str:
    return colour(text, "bold")


def _warning(text: str) -> str:
    return colour(text, "warning")


def _markdown(report: NightReport) -> str:
    from guard.core.report.markdown import report_markdown

    return report_markdown(report).rstrip("\n")
