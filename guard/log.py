"""Read, check and rebuild the log and its views."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.check.events import CheckMade
from guard.core.log.events import BaseEvent
from guard.core.log.record import RECORD_VERSION, START
from guard.core.log.reports import RebuildReport, VerifyReport
from guard.core.metrics.report import MetricsReport
from guard.errors import GuardError, Refused, WrongUsage


class LogReader:
    """Reads the records of wanted events; the next call continues where the last one stopped."""

    def __init__(self, guard: Invocation, is_wanted: Callable[[BaseEvent], bool]) -> None:
        self._guard = guard
        self._is_wanted = is_wanted
        self._position = START

    def read(self) -> Iterator[dict[str, Any]]:
        for event, position, more in self._guard.store.entries(self._position):
            prev, self._position = self._position.hash, position
            if self._is_wanted(event):
                head = {"v": RECORD_VERSION, "seq": position.seq, "more": more}
                fields = json.loads(event.model_dump_json())
                yield {**head, **fields, "prev": prev, "hash": position.hash}


def verify(guard: Invocation) -> VerifyReport:
    """Compare the log with the heads that the snapshots recorded, and each view with the log."""
    from guard.snapshots.inventory import open_shelf

    limit = guard.users_config.settings.rescue.time_limit_seconds
    try:
        with open_shelf(guard.workspace.path, guard.environ, time_limit=limit) as shelf:
            anchors = shelf.anchors()
    except WrongUsage:
        raise
    except GuardError as error:
        guard.output.warn(f"cannot compare the log with the snapshots: {error.message}")
        anchors = []
    return guard.store.verify(anchors)


def rebuild(guard: Invocation, *, salvage: bool) -> RebuildReport:
    """Make every view again from the log; with `salvage`, from the records before the damage."""
    if not guard.workspace.path.is_dir():
        raise WrongUsage(
            f"there is no workspace at {guard.workspace.path}",
            "guard has recorded nothing for this repository yet; `guard baseline` begins",
        )
    store = guard.store
    return store.salvage(guard.clock.now(), new_id()) if salvage else store.rebuild()


def count_metrics(guard: Invocation) -> MetricsReport:
    from guard.core.metrics.count import Metrics

    metrics = Metrics()
    for entry in guard.store.entries():
        metrics.feed(entry.event)
    return metrics.report()


def find_check(guard: Invocation, iteration: int, run_id: str | None) -> CheckMade:
    # The newest check of this iteration counts.
    key, newest = guard.workspace.worktree_key, None
    for event, _, _ in guard.store.entries():
        if isinstance(event, CheckMade) and event.iteration == iteration:
            is_ours = event.worktree == key if key is not None else True
            if is_ours and run_id in (None, event.run):
                newest = event
    if newest is None:
        raise Refused(
            f"the log has no check of iteration {iteration}",
            "`guard log --type check_made` lists the checks",
        )
    return newest
