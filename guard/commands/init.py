"""`guard init`."""

import sys
from pathlib import Path

import click

from guard.context import config
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.base.text import escape, utf8_text
from guard.core.config.proposal import next_commands, project_config
from guard.core.config.report import InitReport
from guard.core.config.resolve import config_template
from guard.errors import ConfigProblem, WrongUsage


@click.command("init")
@click.option(
    "--user", is_flag=True, help="Write the user's configuration file instead of the project's."
)
@click.option("--dry-run", is_flag=True, help="Print the file instead of writing it.")
@click.option("--yes", "-y", is_flag=True, help="Write the file without asking first.")
@click.option(
    "--all", "everything", is_flag=True, help="Write every setting, commented out at its default."
)
@click.option(
    "--fresh",
    is_flag=True,
    help="Begin a new log, because the old one is gone; write no configuration file.",
)
@prints_report
def command(
    guard: Invocation,
    user: bool,
    dry_run: bool,
    yes: bool,
    everything: bool,
    fresh: bool,
    form: str,
) -> None:
    """Write a short configuration file, with what guard found in the project and why.

    Guard looks at the project: agent CLIs on PATH, how the tests are run (pytest, unittest, tox, nox, npm test, go test,
    cargo test, make test), task files, and CI. It shows what it found and the file that it proposes; on a terminal it asks
    before it writes. It runs nothing, and keeps a file that exists already as it is.

    The lines of `[prove]` name a command, so they count only after you commit the file and run `guard trust`.
    With --user, guard writes your own file, with every setting commented out.

    With --fresh, guard begins a new log instead. If the log of this repository is deleted or moved away, every
    command that needs it ends with exit code 5, until you restore the log or begin a new one. The new log begins with
    a record of what guard knew about the old one. The breaker is closed again, and the history is gone; snapshots
    stay. Exit code 1 if the log is there.
    """
    if fresh:
        _restart(guard, form, alone=not (user or dry_run or everything))
        return
    users = config.user_folder(guard.environ) / config.USER_FILE
    target = users if user else guard.repository.root / config.PROJECT_FILE
    report = _look(guard, target, user=user, everything=user or everything)
    if report.content is not None and dry_run and form == "text":
        # A file that can be redirected: what was found stands in its comments.
        guard.output.result(report.content.rstrip("\n"))
        return
    if report.content is not None and not dry_run:
        if form == "text":
            guard.output.result(_proposal(report, whole=not (user or everything)))
        agreed = yes or form != "text" or _agrees(target)
        if agreed:
            _write(target, report.content)
        report = report.model_copy(update={"action": "written" if agreed else "declined"})
    guard.output.document(report, form, _text)


def _look(guard: Invocation, target: Path, *, user: bool, everything: bool) -> InitReport:
    from guard.doctor.project import survey

    found = survey(guard)
    text = (
        config_template(for_user=user)
        if everything
        else project_config(found.findings, found.proof)
    )
    is_there = target.exists() or target.is_symlink()
    return InitReport(
        file=utf8_text(target),
        action="kept" if is_there else "would_write",
        content=None if is_there else text,
        found=found.findings,
        next=next_commands(found.findings, found.agents, found.proof),
        proof=found.proof,
    )


def _agrees(target: Path) -> bool:
    # A script that has no terminal is not asked: it reads what was written.
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    return click.confirm(f"Write this to {escape(utf8_text(target))}?")


def _restart(guard: Invocation, form: str, *, alone: bool) -> None:
    if not alone:
        raise WrongUsage(
            "--fresh cannot be combined with --user or --dry-run", "leave one of them out"
        )
    from guard.log import restart

    report = restart(guard)
    guard.output.document(report, form, _restart_text)


def _restart_text(report: InitReport) -> str:
    if report.action == "restarted":
        return escape(
            f"{report.file}: begun anew; the breaker is closed, and the old history is gone"
        )
    return escape(f"{report.file}: no log is missing; guard begins one when it is needed")


def _write(target: Path, text: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigProblem(
            f"cannot write {target}: {error.strerror}", "check the permissions of the folder"
        ) from None


def _proposal(report: InitReport, *, whole: bool) -> str:
    lines = _found_lines(report)
    if whole:
        assert report.content is not None
        lines += ["", f"Proposed for {report.file}:", ""]
        lines += [f"    {line}".rstrip() for line in report.content.rstrip().split("\n")]
    return "\n".join([*map(escape, lines), ""])


def _found_lines(report: InitReport) -> list[str]:
    return ["Found:", *(f"  {one.found}: {one.means}" for one in report.found)]


def _text(report: InitReport) -> str:
    words = {
        "written": "written",
        "kept": "kept as it is",
        "would_write": "would be written",
        "declined": "not written",
    }
    lines = [f"{report.file}: {words[report.action]}"]
    if report.action == "kept":
        lines = [*_found_lines(report), "", *lines]
        if report.proof is not None:
            lines += ["To prove work, add:", *(f"    {line}" for line in report.proof.toml())]
    lines += ["Next:", *(f"    {line}" for line in report.next)]
    return "\n".join(map(escape, lines))
