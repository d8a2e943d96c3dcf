"""`guard validate`."""

from pathlib import Path

import click

from guard.context.invocation import Invocation
from guard.context.output import colour, prints_report
from guard.core.base.text import escape, plural, utf8_text
from guard.core.log.reports import ValidateReport


@click.command("validate")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@prints_report
def command(guard: Invocation, files: tuple[Path, ...], form: str) -> int:
    """Validate state and configuration files against their schemas.

    Guard picks the schema by the `schema` field of the document or by the file name: the registries, the log,
    guard.toml, pyproject.toml. Exit code 0 if all files are valid, 1 if there are findings.
    """
    from guard.schemas.validate import check

    findings = tuple(finding for file in files for finding in check(file))
    report = ValidateReport(
        ok=not findings, checked=tuple(utf8_text(file) for file in files), findings=findings
    )
    guard.output.document(report, form, _text)
    return 0 if report.ok else 1


def _text(report: ValidateReport) -> str:
    lines = []
    for finding in report.findings:
        place = f" {finding.place}" if finding.place else ""
        lines.append(colour(escape(f"{finding.file}:{place} {finding.problem}"), "problem"))
        lines += [f"  hint: {escape(finding.hint)}"] if finding.hint else []
    checked = plural(len(report.checked), "file")
    lines.append(
        f"{checked} valid"
        if report.ok
        else f"{checked} checked, {plural(len(report.findings), 'finding')}"
    )
    return "\n".join(lines)
