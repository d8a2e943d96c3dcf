"""`guard judge`."""

from typing import BinaryIO

import click

from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.base.text import escape
from guard.core.check import rejudge
from guard.core.check.evidence import Policy
from guard.core.check.words import verdict_line
from guard.errors import WrongUsage

_MOST_BYTES = 16 * 1024 * 1024


@click.command("judge")
@click.argument("file", required=False, type=click.File("rb"))
@click.option(
    "--replay",
    type=click.IntRange(min=1),
    metavar="ITERATION",
    help="Judge the newest check of this iteration again.",
)
@click.option(
    "--run", "run_id", metavar="ID", help="The run of that iteration; by default the newest run."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Judge under another setting, such as max_probes=3; may be repeated.",
)
@prints_report
def command(
    guard: Invocation,
    file: BinaryIO | None,
    replay: int | None,
    run_id: str | None,
    settings: tuple[str, ...],
    form: str,
) -> None:
    """Judge an evidence document or a past check, and explain the verdict.

    FILE is a document `guard/evidence/1` (`-` for stdin). With --replay, guard takes the evidence that the log
    keeps of the newest check of that iteration. Exit code 0, whatever the verdict is, because nothing happens; 1 if
    the log has no such check.
    """
    if (file is None) == (replay is None):
        raise WrongUsage("give either a FILE or --replay ITERATION", "see `guard judge --help`")
    try:
        if replay is not None:
            from guard.log import find_check

            report = rejudge.replay_check(find_check(guard, replay, run_id), settings)
        else:
            assert file is not None
            report = _judge_document(file.read(_MOST_BYTES + 1), settings)
    except ValueError as error:
        raise WrongUsage(
            str(error), "`guard schema evidence` prints the schema of the document"
        ) from None
    guard.output.document(report, form, _text)


def _judge_document(data: bytes, settings: tuple[str, ...]) -> rejudge.JudgeReport:
    if len(data) > _MOST_BYTES:
        raise ValueError(f"the document is larger than {_MOST_BYTES} bytes")
    return rejudge.explain(rejudge.read_evidence(data), rejudge.apply_settings(Policy(), settings))


def _text(report: rejudge.JudgeReport) -> str:
    if report.decision == "verdict":
        lines = [verdict_line(report.status or "", report.reason or "", report.detail)]
    else:
        wait = f" for at most {report.seconds:g} s" if report.seconds else ""
        lines = [f"no verdict yet; next: {report.decision}{wait} ({escape(report.detail)})"]
    if report.recorded_status is not None:
        recorded = verdict_line(report.recorded_status, report.recorded_reason or "", "")
        lines.append(f"  look {report.look} of {report.looks}; the check itself said {recorded}")
    *passed, decided = report.trail
    lines += [f"  {rule}: nothing to say" for rule in passed]
    lines.append(f"  {decided}: decides")
    return "\n".join(lines)
