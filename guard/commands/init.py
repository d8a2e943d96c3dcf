"""`guard init`."""

from pathlib import Path
from shlex import quote

import click

from guard.context import config
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.base.text import escape, utf8_text
from guard.core.config.report import InitAction, InitReport, ProofProposal
from guard.core.config.resolve import config_template
from guard.errors import ConfigProblem, WrongUsage


@click.command("init")
@click.option(
    "--user", is_flag=True, help="Write the user's configuration file instead of the project's."
)
@click.option("--dry-run", is_flag=True, help="Print the file instead of writing it.")
@click.option(
    "--fresh",
    is_flag=True,
    help="Begin a new log, because the old one is gone; write no configuration file.",
)
@prints_report
def command(guard: Invocation, user: bool, dry_run: bool, fresh: bool, form: str) -> None:
    """Write a commented configuration file for this repository, and propose a command that proves work.

    Guard keeps a file that exists already as it is. If no `prove.command` is set, guard proposes one from what the
    project has (pytest, unittest, tox, nox, npm test, go test, cargo test, make test) and says why, and where you could
    put it. Guard runs it nowhere and writes it nowhere.

    With --fresh, guard begins a new log instead. If the log of this repository is deleted or moved away, every
    command that needs it ends with exit code 5, until you restore the log or begin a new one. The new log begins with
    a record of what guard knew about the old one. The breaker is closed again, and the history is gone; snapshots
    stay. Exit code 1 if the log is there.
    """
    if fresh:
        _restart(guard, form, alone=not user and not dry_run)
        return
    users = config.user_folder(guard.environ) / config.USER_FILE
    from guard.prove.propose import propose

    target = users if user else guard.repository.root / config.PROJECT_FILE
    text = config_template(for_user=user)
    proof, is_there = propose(guard), target.exists() or target.is_symlink()
    if not is_there and not dry_run:
        _write(target, text)
    action: InitAction = "kept" if is_there else "would_write" if dry_run else "written"
    report = InitReport(file=utf8_text(target), action=action, proof=proof)
    if form == "text" and action == "would_write":
        comments = [f"# {line}".rstrip() for line in _proposal_lines(proof)] if proof else []
        guard.output.result("\n".join([text.rstrip("\n"), *comments]))
        return
    guard.output.document(report, form, _text)


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


def _text(report: InitReport) -> str:
    words = {"written": "written", "kept": "kept as it is", "would_write": "would be written"}
    lines = [f"{report.file}: {words[report.action]}"]
    lines += _proposal_lines(report.proof) if report.proof else []
    return "\n".join(escape(line) for line in lines)


def _proposal_lines(proof: ProofProposal) -> list[str]:
    share = f"GUARD_PROVE__SHARE={quote(','.join(proof.share))} " if proof.share else ""
    setup = f"GUARD_PROVE__SETUP={quote(proof.setup)} " if proof.setup else ""
    return [
        "",
        "No command proves the work in this project yet. Guard proposes, and has not written:",
        *(f"    {line}" for line in proof.toml()),
        f"  because {'; '.join(proof.why)}.",
        "Try it:",
        f"    {share}{setup}guard prove --command {quote(proof.command)}",
        "To keep it, put these lines",
        f"  - into {proof.user_file}: they hold in all of your repositories;",
        f"  - or into {proof.project_file}, commit it, and run `guard trust`: they hold here, for a team.",
        "For one run: `guard loop --prove CMD -- AGENT...`.",
    ]
