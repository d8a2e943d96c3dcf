"""`guard init`."""

from pathlib import Path

import click

from guard.context import config
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.base.text import escape, utf8_text
from guard.core.config.resolve import config_template
from guard.core.log.reports import InitReport
from guard.errors import ConfigProblem


@click.command("init")
@click.option(
    "--user", is_flag=True, help="Write the user's configuration file instead of the project's."
)
@click.option("--dry-run", is_flag=True, help="Print the file instead of writing it.")
@prints_report
def command(guard: Invocation, user: bool, dry_run: bool, form: str) -> None:
    """Write a commented configuration file for this repository.

    Guard keeps a file that exists already as it is.
    """
    users = config.user_folder(guard.environ) / config.USER_FILE
    target = users if user else guard.repository.root / config.PROJECT_FILE
    text = config_template(for_user=user)
    if target.exists() or target.is_symlink():
        report = InitReport(file=utf8_text(target), action="kept")
    elif dry_run:
        report = InitReport(file=utf8_text(target), action="would_write")
    else:
        _write(target, text)
        report = InitReport(file=utf8_text(target), action="written")
    if dry_run and form == "text" and report.action == "would_write":
        guard.output.result(text.rstrip("\n"))
        return
    guard.output.document(report, form, _text)


def _write(target: Path, text: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigProblem(
            f"cannot write {target}: {error.strerror}", "check the permissions of the folder"
        ) from None


def _text(report: InitReport) -> str:
    words = {"written": "written", "kept": "kept as it is", "would_write": "would be written"}
    return escape(f"{report.file}: {words[report.action]}")
