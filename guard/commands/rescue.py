"""`guard rescue`."""

from itertools import zip_longest
from typing import Any

import click

from guard.commands.options import agent_cli_option, settles_rollbacks, tells_what_is_safe
from guard.context.invocation import Invocation
from guard.context.output import colour, prints_report
from guard.core.base.text import escape, plural
from guard.core.rescue.report import RescueReport
from guard.iteration.current import CheckTerms

_MOST_LINES = 20


@click.command("rescue")
@click.option("--dry-run", is_flag=True, help="Print what guard would commit, and commit nothing.")
@click.option(
    "--planner",
    type=click.Choice(["rules", "agent"]),
    help="Group the changes into commits by fixed rules, or by the agent, whose plan guard checks.",
)
@click.option("--branch", is_flag=True, help="Commit on a rescue branch in any case.")
@click.option("--baseline", metavar="REV", help="Rescue the uncommitted work since this revision.")
@click.option(
    "--spec",
    metavar="NAME",
    help="The spec in whose task file guard ticks the boxes that files prove.",
)
@agent_cli_option("The agent that plans.")
@click.option("--session", metavar="ID", help="The session of the agent that plans.")
@prints_report
@settles_rollbacks
def command(
    guard: Invocation, /, dry_run: bool, planner: str | None, branch: bool, form: str, **given: Any
) -> int:
    """Commit the work that the iteration left uncommitted.

    Guard always takes a snapshot first. Then it commits on the branch if the repository is in a plain state, else
    on a branch guard/rescue/RUN-N, and prints why. It does not commit the user's own earlier work, secrets, ignored
    files and very large files.

    Exit code 0 if nothing is left to do, 1 if guard held something back or could not commit it.
    """
    from guard.check import verdict

    terms = CheckTerms(**given, flags={"rescue.planner": planner})
    kept = "nothing is lost: `guard snapshots` lists what was saved, and `guard rescue` goes on"
    with tells_what_is_safe(lambda: kept):
        report = verdict.rescue(guard, terms, dry=dry_run, on_branch=branch)
    guard.output.verdict(report, form, _text)
    return 0 if report.is_settled else 1


def _commits(report: RescueReport) -> list[str]:
    # Of commits that a rescue command made only the ids are known.
    descriptions = [f"{commit.subject} ({plural(commit.files, 'file')})" for commit in report.plan]
    if report.dry_run:
        return [escape(f"planned {line}") for line in descriptions]
    lines = zip_longest([oid[:10] for oid in report.commits], descriptions[: len(report.commits)])
    return [escape(" ".join(filter(None, line))) for line in lines]


def _text(report: RescueReport) -> str:
    word = colour(report.reason, "ok" if report.is_settled else "warning")
    lines = [f"guard restore {report.snapshot.id} --to DIR"] if report.snapshot else []
    lines.append(f"  {word}: {escape(report.detail)}")
    lines += [f"  {line}" for line in _commits(report)]
    lines += [f"  ticked: {escape(task)}" for task in report.ticked]
    kept = report.snapshot
    if kept is not None and not kept.whole:
        lines += [escape(f"  not in the snapshot: {line}") for line in kept.skipped[:_MOST_LINES]]
    held = [f"  held back: {entry.path} ({entry.why})" for entry in report.held_back]
    more = len(held) - _MOST_LINES
    held = [*held[:_MOST_LINES], f"  and {plural(more, 'more path')}"] if more > 0 else held
    return "\n".join([*lines, *map(escape, held)])
