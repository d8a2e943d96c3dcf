"""`guard log`."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from time import sleep
from typing import Any

import click

from guard.core.records import START, Entry, Position
from guard.core.reports import LogReport
from guard.core.text import visible
from guard.errors import WrongUsage
from guard.invocation import Invocation
from guard.output import coloured, format_option

_POLL_SECONDS = 0.2
_ENVELOPE = ("v", "seq", "at", "type", "id", "run", "iteration", "prev", "hash")
_AGO = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@click.command("log")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    help="Only events of this type; may be repeated.",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Only events from this time on: ISO-8601, or 30s, 5m, 2h, 1d ago.",
)
@click.option("--run", help="Only events of this run.")
@click.option(
    "-n", "--last", type=click.IntRange(min=0), metavar="N", help="Only the last N of them."
)
@click.option(
    "-f", "--follow", is_flag=True, help="Go on with new events as they come, until Ctrl-C."
)
@format_option
@click.pass_obj
def command(
    guard: Invocation,
    types: tuple[str, ...],
    since: str | None,
    run: str | None,
    last: int | None,
    follow: bool,
    form: str,
) -> None:
    """Print the events of the log.

    With --follow and --format json every event is a line of its own.
    """
    from guard.core.events import EVENT_TYPES

    for name in types:
        if name not in EVENT_TYPES:
            raise WrongUsage(
                f"{name!r} is not a type of event", f"use one of {', '.join(EVENT_TYPES)}"
            )
    begin = _moment(since, guard.clock.now()) if since else None

    def wanted(entry: Entry) -> bool:
        event = entry.event
        return (
            (not types or event.type in types)
            and (begin is None or event.at >= begin)
            and (run is None or event.run == run)
        )

    position, found = _read(guard, START, wanted)
    records = list(found if last is None else found[max(0, len(found) - last) :])
    if form == "json" and not follow:
        guard.output.result(LogReport(events=tuple(records)).model_dump_json(indent=2))
    else:
        for record in records:
            guard.output.result(_line(record, form))
    while follow:
        sleep(_POLL_SECONDS)
        position, found = _read(guard, position, wanted)
        for record in found:
            guard.output.result(_line(record, form))


def _read(guard: Invocation, after: Position, wanted: Any) -> tuple[Position, list[dict[str, Any]]]:
    position, found = after, []
    for entry, prev in _linked(guard, after):
        position = entry.position
        if wanted(entry):
            found.append(_record(entry, prev))
    return position, found


def _linked(guard: Invocation, after: Position) -> Iterator[tuple[Entry, str]]:
    prev = after.hash
    for entry in guard.store.entries(after):
        yield entry, prev
        prev = entry.position.hash


def _record(entry: Entry, prev: str) -> dict[str, Any]:
    """The fields of the line as it stands in the log."""
    event, position = entry
    fields = json.loads(event.model_dump_json())
    return {"v": 1, "seq": position.seq, **fields, "prev": prev, "hash": position.hash}


def _line(record: dict[str, Any], form: str) -> str:
    if form == "json":
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False)
    own = [
        f"{name}={_shown(value)}"
        for name, value in record.items()
        if name not in _ENVELOPE and value not in (None, "", [])
    ]
    run = f" {record['run']}/{record['iteration'] or '-'}" if record["run"] else ""
    head = f"{record['seq']:>6} {record['at']} {coloured(record['type'], 'bold')}{run}"
    return f"{head}  {' '.join(own)}".rstrip()


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = visible(text)
    return f'"{text}"' if " " in text else text


def _moment(text: str, now: datetime) -> datetime:
    ago = _AGO.fullmatch(text)
    if ago:
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise WrongUsage(
            f"--since {text!r} is not a time",
            "say for example 2026-01-31T12:00:00Z, or 2h for two hours ago",
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
