"""The run of a work tree: what each event makes of it, and late events of what is over."""

from typing import Any

import pytest

from guard.core.iteration.events import RunEvent
from guard.core.iteration.run import Run, RunFold
from guard.core.log.events import BaseEvent
from guard.core.log.record import LogEntry, Position
from guard.core.log.replay import Replay
from guard.core.log.view import seal, unseal
from tests.support.events import (
    iteration_ended,
    iteration_started,
    run_ended,
    run_started,
    spawned,
)


def place(seq: int) -> Position:
    return Position(1, seq * 100, seq, f"{seq:064x}")


def folded(events: list[RunEvent]) -> Run:
    fold = RunFold("w1")
    for seq, event in enumerate(events, 1):
        fold.apply(event)
        fold.reached = place(seq)
    return fold.document()


def summary(view: Run) -> tuple[Any, ...]:
    last = view.last_iteration
    return (
        view.run,
        view.iterations,
        view.open_iteration.number if view.open_iteration else None,
        (last.number, last.status) if last else None,
        view.end_reason,
    )


STORIES: dict[str, tuple[list[RunEvent], tuple[Any, ...]]] = {
    "a run that has started": ([run_started()], ("r1", 0, None, None, None)),
    "an iteration that is open": (
        [run_started(), iteration_started(1)],
        ("r1", 1, 1, None, None),
    ),
    "an iteration that has ended": (
        [run_started(), iteration_started(1), iteration_ended(1, status="timeout")],
        ("r1", 1, None, (1, "timeout"), None),
    ),
    "the second iteration beside the verdict of the first": (
        [run_started(), iteration_started(1), iteration_ended(1), iteration_started(2)],
        ("r1", 2, 2, (1, "complete"), None),
    ),
    "an iteration after one that a crash left open": (
        [run_started(), iteration_started(1), iteration_started(2)],
        ("r1", 2, 2, None, None),
    ),
    "a run that is over": (
        [run_started(), iteration_started(1), iteration_ended(1), run_ended()],
        ("r1", 1, None, (1, "complete"), "done"),
    ),
    "a new run begins with nothing of the old": (
        [run_started(), iteration_started(1), iteration_ended(1), run_ended(), run_started("r2")],
        ("r2", 0, None, None, None),
    ),
    "an iteration of a run whose start was not seen": (
        [iteration_started(4)],
        ("r1", 1, 4, None, None),
    ),
    "a late end of an older run leaves the newest as it is": (
        [run_started("r1"), run_started("r2"), iteration_started(1, "r2"), run_ended("r1")],
        ("r2", 1, 1, None, None),
    ),
    "a late end of an older iteration leaves the open one open": (
        [run_started(), iteration_started(1), iteration_started(2), iteration_ended(1)],
        ("r1", 2, 2, (1, "complete"), None),
    ),
}


@pytest.mark.parametrize(("events", "expected"), STORIES.values(), ids=STORIES)
def test_the_view_after(events: list[RunEvent], expected: tuple[Any, ...]) -> None:
    assert summary(folded(events)) == expected


def test_times_and_commands_come_from_the_events() -> None:
    start, begin, end, over = (
        run_started(),
        iteration_started(1),
        iteration_ended(1),
        run_ended(),
    )
    view = folded([start, begin, end, over])
    assert (view.worktree, view.command) == ("w1", ("agent", "--go"))
    assert (view.started_at, view.ended_at) == (start.at, over.at)
    assert view.last_iteration
    assert (view.last_iteration.started_at, view.last_iteration.ended_at) == (begin.at, end.at)
    assert (view.last_iteration.reason, view.last_iteration.elapsed_seconds) == ("commits", 1.5)


def test_the_end_of_an_iteration_whose_start_was_not_seen_has_no_start() -> None:
    view = folded([run_started(), iteration_ended(3)])
    assert view.last_iteration
    assert view.last_iteration.started_at is None


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_a_fold_restored_at_any_place_ends_in_the_same_bytes(
    story: tuple[list[RunEvent], tuple[Any, ...]],
) -> None:
    events, _ = story
    whole = seal(folded(events))
    for cut in range(1, len(events)):
        fold = RunFold("w1")
        fold.restore(unseal(seal(folded(events[:cut])), Run))
        for seq, event in enumerate(events[cut:], cut + 1):
            fold.apply(event)
            fold.reached = place(seq)
        assert seal(fold.document()) == whole


def test_each_work_tree_has_a_run_of_its_own() -> None:
    events: list[BaseEvent] = [
        run_started("r1", "w1"),
        run_started("r2", "w2"),
        spawned(),
        run_ended("r1"),
    ]
    replay = Replay()
    for seq, event in enumerate(events, 1):
        replay.feed(LogEntry(event, place(seq)))
    first = replay.folds["worktrees.d/w1/run.json"].document()
    second = replay.folds["worktrees.d/w2/run.json"].document()
    assert (first.run, first.end_reason, first.seq) == ("r1", "done", 4)
    assert (second.run, second.end_reason, second.seq) == ("r2", None, 2)
