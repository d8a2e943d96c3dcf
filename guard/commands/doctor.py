"""`guard doctor`."""

import click

from guard.context.invocation import Invocation
from guard.context.output import colour, prints_report
from guard.core.log.reports import DoctorReport

_MARKS = {"ok": "ok", "warning": "note", "problem": "FAIL"}


@click.command("doctor")
@prints_report
def command(guard: Invocation, form: str) -> int:
    """Check the machine and the workspace, and print a hint for each problem.

    Exit code 0 if there is no problem, 1 if there is one.
    """
    from guard.doctor import examine

    checks = tuple(examine(guard))
    report = DoctorReport(ok=all(check.state != "problem" for check in checks), checks=checks)
    guard.output.document(report, form, _text)
    return 0 if report.ok else 1


def _text(report: DoctorReport) -> str:
    lines = []
    for check in report.checks:
        mark = colour(f"{_MARKS[check.state]:4}", check.state)
        lines.append(f"{mark}  {check.name:12} {check.found}")
        lines += [f"      {'':12} hint: {check.hint}"] if check.hint else []
    return "\n".join(lines)
