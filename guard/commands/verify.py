"""`guard verify`."""

import click

from guard.context.invocation import Invocation
from guard.context.output import colour, prints_report
from guard.core.base.text import escape, plural
from guard.core.log.reports import VerifyReport
from guard.errors import StateProblem


@click.command("verify")
@prints_report
def command(guard: Invocation, form: str) -> int:
    """Verify the whole log, and compare each view with it.

    Every snapshot records the head of the log, so guard also detects a log that was rewritten since. It writes
    nothing. Exit code 0 if everything is sound, 1 if there are findings, 5 if the log is gone.
    """
    from guard.log import verify

    report = verify(guard)
    guard.output.document(report, form, _text)
    if report.ok:
        return 0
    return StateProblem.exit_code if report.segments == 0 else 1


def _text(report: VerifyReport) -> str:
    size = f"{plural(report.records, 'record')} in {plural(report.segments, 'segment')}"
    lines = [f"{size}, {plural(report.views, 'view')}, head {report.head[:16]}"]
    if report.torn_bytes:
        lines.append(
            f"{plural(report.torn_bytes, 'byte')} of an unfinished record at the end: never acknowledged"
        )
    lines += [
        f"behind the log, to be written when it is next changed: {escape(path)}"
        for path in report.behind
    ]
    for finding in report.findings:
        place = f" ({finding.place})" if finding.place else ""
        lines.append(colour(escape(f"{finding.file}{place}: {finding.problem}"), "problem"))
        lines += [f"  hint: {escape(finding.hint)}"] if finding.hint else []
    lines.append(colour("sound", "ok") if report.ok else plural(len(report.findings), "finding"))
    return "\n".join(lines)
