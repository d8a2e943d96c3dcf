"""`guard classify`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from guard.commands.options import INPUT_FILE
from guard.context.invocation import Invocation
from guard.context.output import colour, prints_report
from guard.core.base.text import escape, plural
from guard.core.classify import AGENTS, MEANINGS, make_reader, status_of
from guard.core.classify.outcome import ClassifyReport

_CHUNK = 1024 * 1024
_MEANINGS = "\b\n" + "\n".join(f"  {name:<12} {meaning}" for name, meaning in MEANINGS.items())


@click.command("classify", epilog=f"Outcomes:\n\n{_MEANINGS}")
@click.argument("file", type=INPUT_FILE, default="-")
@click.option(
    "--agent",
    type=click.Choice(AGENTS),
    help="The agent that printed the output; by default guard finds out.",
)
@click.option(
    "--exit-code",
    type=click.IntRange(-128, 255),
    help="The agent's exit code; negative for a signal.",
)
@click.option(
    "--stderr", "errors", type=INPUT_FILE, help="The file with the agent's standard error."
)
@prints_report
def command(
    guard: Invocation,
    file: Path,
    agent: str | None,
    exit_code: int | None,
    errors: Path | None,
    form: str,
) -> None:
    """Classify an agent's output and exit status.

    FILE holds what the agent printed, in any of its formats; by default guard reads standard input. Exit code 0,
    whatever the outcome is.
    """
    words = make_reader(agent)
    for data in _chunks(file):
        words.feed(data)
    for data in _chunks(errors) if errors else ():
        words.feed_error(data)
    found = words.finish(exit_code, guard.clock.now().astimezone())
    report = ClassifyReport(
        **dict(found), status=status_of(found.outcome), format=words.format, skipped=words.skipped
    )
    guard.output.document(report, form, _text)


def _chunks(file: Path) -> Iterator[bytes]:
    if str(file) == "-":
        yield from _pieces(sys.stdin.buffer)
        return
    with open(file, "rb") as opened:
        yield from _pieces(opened)


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    while data := stream.read(_CHUNK):
        yield data


def _text(report: ClassifyReport) -> str:
    mark = "ok" if report.outcome == "ok" else "warning" if report.status else "problem"
    lines = [f"{colour(report.outcome, mark)}: {MEANINGS[report.outcome]}"]
    until = report.retry_at.strftime("%Y-%m-%dT%H:%M:%SZ") if report.retry_at else None
    facts = {
        "reason": report.reason,
        "status": report.status,
        "retry at": until,
        "session": report.session,
        "killed": ", ".join(report.killed),
        "denied": ", ".join(report.denied_tools),
        "words": report.words,
        "loop": report.loop.sentence if report.loop else None,
        "format": report.format or "plain text",
        "claim": report.claim,
        "skipped": plural(report.skipped, "line") if report.skipped else None,
    }
    lines += [f"  {name}: {escape(str(fact))}" for name, fact in facts.items() if fact]
    return "\n".join(lines)
