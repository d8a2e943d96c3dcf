"""A long log folded from its beginning, and a view read from its end."""

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.history import working
from benchmarks.measure import Row, at_most, paired, progress, scratch
from guard.core.agents.registry import GLOBAL_REGISTRY
from guard.core.log.replay import Replay
from guard.store.file_store import FileStore

EVENTS = 1_000_000


def rows() -> Iterator[Row]:
    with scratch() as folder:
        progress(f"writing a log of {EVENTS:,} events ...")
        working(folder / "young", 1000)
        working(folder / "old", EVENTS)
        parse, fold = paired(2, lambda: parse(folder / "old"), lambda: replay(folder / "old"))
        detail = f"{fold / EVENTS * 1e6:.1f} µs an event beside {parse / EVENTS * 1e6:.1f} µs"
        yield at_most(f"replay of {EVENTS:,} events beside json.loads", 2.4, fold / parse, detail)
        young, old = paired(40, lambda: _read(folder / "young"), lambda: _read(folder / "old"))
        detail = f"{old * 1e3:.2f} ms after {EVENTS:,} events, {young * 1e3:.2f} ms after 1,000"
        yield at_most(
            "reading a registry from the checkpoint, old beside young", 1.5, old / young, detail
        )


def parse(workspace: Path) -> None:
    """Every line of the log as plain JSON."""
    for segment in sorted(workspace.glob("events*.jsonl")):
        with segment.open("rb") as file:
            for line in file:
                json.loads(line)


def replay(workspace: Path) -> None:
    """Every view, folded from the first line on."""
    views = Replay()
    for entry in FileStore(workspace).entries():
        views.feed(entry)


def _read(workspace: Path) -> None:
    FileStore(workspace).view(GLOBAL_REGISTRY)
