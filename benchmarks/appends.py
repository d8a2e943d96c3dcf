"""Durable appends of one process beside a bare append-and-fdatasync loop of the same bytes."""

import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks.history import append, spawned, updated
from benchmarks.measure import Row, at_least, paired, scratch
from guard.core.log.events import BaseEvent
from guard.core.log.record import NO_HASH, encode
from guard.store.file_store import FileStore
from guard.system.private_files import sync_data

_EVENTS, _ROUNDS = 2000, 5


def rows() -> Iterator[Row]:
    with scratch() as folder:
        append(folder / "workspace", [spawned(number, 1) for number in range(100)])
        store = FileStore(folder / "workspace")
        events: list[BaseEvent] = [updated(number % 100, number, 1) for number in range(_EVENTS)]
        lines = [encode(event, 1, NO_HASH)[0] for event in events]
        bare, ours = paired(
            _ROUNDS, lambda: _bare(folder / "bare", lines), lambda: _ours(store, events)
        )
    detail = f"{ours / _EVENTS * 1e6:.0f} µs beside {bare / _EVENTS * 1e6:.0f} µs"
    yield at_least("durable event appends, one process", 0.85, bare / ours, detail)


def _bare(path: Path, lines: list[bytes]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for line in lines:
        os.write(descriptor, line)
        sync_data(descriptor)
    os.close(descriptor)


def _ours(store: FileStore, events: list[BaseEvent]) -> None:
    with store.change() as change:
        for event in events:
            change.append(event)
