"""`guard log`."""

import json
from collections import deque
from time import sleep
from typing import Any

import click

from guard.commands import options
from guard.context.invocation import Invocation
from guard.context.output import colour, prints_report
from guard.core.base.text import escape, harmless_json, plural
from guard.core.log.events import BaseEvent
from guard.core.log.reports import LogReport
from guard.errors import WrongUsage

_POLL_SECONDS = 0.2
_LONGEST = 120
_MOST_PATHS = 5
_ENVELOPE = ("v", "seq", "more", "at", "type", "id", "run", "iteration", "prev", "hash")


@click.command("log")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    help="Print only events of this type; may be repeated.",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Print only events since this time: ISO-8601, or an age such as 30s, 5m, 2h, 1d.",
)
@click.option("--run", help="Print only events of this run.")
@click.option(
    "-n",
    "--last",
    type=click.IntRange(min=0),
    metavar="N",
    help="Print only the last N of these events.",
)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new events until Ctrl-C.")
@click.option(
    "--export",
    "target",
    metavar="FILE",
    help="Write the whole log to FILE, byte for byte; `-` is stdout.",
)
@click.option(
    "--import",
    "source",
    metavar="FILE",
    help="Take the whole log of FILE over into a workspace without history; `-` is stdin.",
)
@prints_report
def command(
    guard: Invocation,
    types: tuple[str, ...],
    since: str | None,
    run: str | None,
    last: int | None,
    follow: bool,
    target: str | None,
    source: str | None,
    form: str,
) -> None:
    """Print the events of the log.

    With --follow and --format json, every event is one line. --export and --import move a log between workspaces.
    """
    if target is not None or source is not None:
        _move(
            guard,
            target,
            source,
            has_filter=bool(types or since or run or follow) or last is not None,
        )
        return
    from guard.core.log.table import event_types
    from guard.log import LogReader

    for name in types:
        if name not in event_types():
            raise WrongUsage(
                f"{name!r} is not a type of event", f"use one of {', '.join(event_types())}"
            )
    begin = options.parse_since(since, guard.clock.now()) if since else None

    def is_wanted(event: BaseEvent) -> bool:
        return (
            (not types or event.type in types)
            and (begin is None or event.at >= begin)
            and (run is None or event.run == run)
        )

    reader = LogReader(guard, is_wanted)
    found = reader.read() if last is None else deque(reader.read(), maxlen=last)
    if form == "json" and not follow:
        guard.output.document(LogReport(events=tuple(found)), form, str)
    else:
        for record in found:
            guard.output.result(_line(record, form))
    while follow:
        sleep(_POLL_SECONDS)
        for record in reader.read():
            guard.output.result(_line(record, form))


def _move(guard: Invocation, target: str | None, source: str | None, *, has_filter: bool) -> None:
    from guard.log import export_log, import_log

    if has_filter or (target is not None and source is not None):
        raise WrongUsage(
            "--export and --import move the whole log", "give one of them, and no other option"
        )
    if target is not None:
        count, verb = export_log(guard, target), "exported"
    else:
        assert source is not None
        count, verb = import_log(guard, source), "imported"
    if target != "-":
        guard.output.result(f"{verb} {plural(count, 'record')}")


def _line(record: dict[str, Any], form: str) -> str:
    if form == "json":
        return harmless_json(json.dumps(record, separators=(",", ":"), ensure_ascii=False))
    own = [
        f"{name}={_show_value(value)}"
        for name, value in record.items()
        if name not in _ENVELOPE and value not in (None, "", [])
    ]
    run = f" {record['run']}/{record['iteration'] or '-'}" if record["run"] else ""
    head = f"{record['seq']:>6} {record['at']} {colour(record['type'], 'bold')}{run}"
    return f"{head}  {' '.join(own)}".rstrip()


def _show_value(value: Any) -> str:
    # A long object or list is only counted; `--format json` shows it whole.
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > _LONGEST and isinstance(value, dict | list):
        count = plural(len(value), "field" if isinstance(value, dict) else "item")
        return f"({count}{_name_paths(value)})"
    text = escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
    return f'"{text}"' if " " in text else text


def _name_paths(items: Any) -> str:
    # What was held back, or committed with a secret in it, is named here too.
    paths = [item["path"] for item in items if isinstance(item, dict) and "path" in item]
    shown = [escape(str(path))[:_LONGEST] for path in dict.fromkeys(paths)][:_MOST_PATHS]
    more = ", …" if len(set(paths)) > len(shown) else ""
    return f": {', '.join(shown)}{more}" if shown else ""
