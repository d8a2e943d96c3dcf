"""`guard rebuild`."""

import click

from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.base.text import escape, plural
from guard.core.log.reports import RebuildReport


@click.command("rebuild")
@click.option(
    "--salvage",
    is_flag=True,
    help="Go on with the records before the damage. Guard keeps the rest under another name, and records this.",
)
@prints_report
def command(guard: Invocation, salvage: bool, form: str) -> None:
    """Rebuild every view from the log.

    Guard does not touch views that are correct. It refuses a damaged log with exit code 5, unless --salvage is
    given.
    """
    from guard.log import rebuild

    report = rebuild(guard, salvage=salvage)
    guard.output.document(report, form, _text)


def _text(report: RebuildReport) -> str:
    lines = [f"set aside {escape(path)}" for path in report.set_aside]
    if report.dropped_records:
        lines.append(
            f"{plural(report.dropped_records, 'record')} from the damage on are not used any more"
        )
    lines += [f"written {escape(path)}" for path in report.written]
    total = plural(len(report.written) + len(report.unchanged), "view")
    lines.append(
        f"{total} from {plural(report.records, 'record')}, {len(report.unchanged)} unchanged"
    )
    return "\n".join(lines)
