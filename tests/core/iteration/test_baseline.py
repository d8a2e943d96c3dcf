"""The baseline of a work tree as a view: the newest one, whatever came before."""

import pytest

from guard.core.iteration.baseline import Baseline, BaselineFold, RecordedBaseline
from guard.core.iteration.events import BaselineRecorded, BaselineSnapshotLost
from guard.core.iteration.facts import DirtyFile
from guard.core.log.record import LogEntry, Position
from guard.core.log.replay import Replay
from guard.core.log.view import seal, unseal
from tests.support.events import MOMENT

HEAD = "1" * 40
FILE = DirtyFile(
    path="caf\\xe9",
    kind="file",
    content="2" * 64,
    stamp="3:4",
    index=None,
    staged=False,
    unstaged=True,
    untracked=False,
)


def place(seq: int) -> Position:
    return Position(1, seq * 100, seq, f"{seq:064x}")


def recorded(number: int, worktree: str = "w1", head: str | None = HEAD) -> BaselineRecorded:
    return BaselineRecorded(
        at=MOMENT,
        id=f"event-{number}",
        run="r1",
        iteration=number,
        worktree=worktree,
        baseline=f"baseline-{number}",
        head=head,
        tree=head,
        branch="refs/heads/main",
        refs={"refs/heads/main": head} if head else {},
        refs_omitted=0,
        stash=(),
        shallow=None,
        reflogs={"HEAD": 10},
        dirty=(FILE,),
        pin=None,
        pinned=None,
        warnings=(),
    )


def folded(*events: BaselineRecorded) -> RecordedBaseline:
    fold = BaselineFold("w1")
    for seq, event in enumerate(events, 1):
        fold.apply(event)
        fold.reached = place(seq)
    return fold.document()


def test_the_newest_baseline_is_the_view() -> None:
    view = folded(recorded(1), recorded(2, head=None))
    assert (view.worktree, view.key(), view.baseline, view.iteration) == (
        "w1",
        "w1",
        "baseline-2",
        2,
    )
    assert (view.head, view.refs, view.dirty, view.at, view.revision) == (
        None,
        {},
        (FILE,),
        MOMENT,
        None,
    )
    assert view.seq == 2


def test_a_view_has_every_field_of_the_event() -> None:
    event, view = recorded(1), folded(recorded(1))
    for name in set(Baseline.model_fields) - {"revision"}:
        assert getattr(view, name) == getattr(event, name)


@pytest.mark.parametrize("head", [HEAD, None], ids=["with a head", "of an empty repository"])
def test_a_fold_restored_ends_in_the_same_bytes(head: str | None) -> None:
    events = [recorded(1, head=head), recorded(2)]
    fold = BaselineFold("w1")
    fold.restore(unseal(seal(folded(events[0])), RecordedBaseline))
    assert seal(fold.document()) == seal(folded(events[0]))
    fold.apply(events[1])
    fold.reached = place(2)
    assert seal(fold.document()) == seal(folded(*events))


def test_each_work_tree_has_a_baseline_of_its_own() -> None:
    replay = Replay()
    for seq, event in enumerate([recorded(1), recorded(2, "w2")], 1):
        replay.feed(LogEntry(event, place(seq)))
    views = {path: fold.document().iteration for path, fold in replay.folds.items()}
    assert views == {"worktrees.d/w1/baseline.json": 1, "worktrees.d/w2/baseline.json": 2}


def test_a_snapshot_that_was_lost_is_not_named_any_more() -> None:
    def lost(number: int, baseline: str) -> BaselineSnapshotLost:
        return BaselineSnapshotLost(
            at=MOMENT,
            id=f"event-{number}",
            run="r1",
            iteration=1,
            worktree="w1",
            baseline=baseline,
            kept="git archive",
        )

    fold = BaselineFold("w1")
    fold.apply(recorded(1).model_copy(update={"kept": "git archive"}))
    fold.apply(lost(2, "baseline-0"))
    fold.reached = place(2)
    assert fold.document().kept == "git archive"
    fold.apply(lost(3, "baseline-1"))
    fold.reached = place(3)
    assert fold.document().kept is None
    assert fold.document().baseline == "baseline-1"
