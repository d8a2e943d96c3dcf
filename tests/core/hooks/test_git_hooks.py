"""What git's hooks tell: to whom a commit belongs, which came past them, and what leaves a hook out."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from guard.core.hooks.event_kinds import is_skipped
from guard.core.hooks.git.events import CommitRecorded, CommitsRewritten, Rewrite
from guard.core.hooks.git.note import iteration_of
from guard.core.hooks.git.state import (
    MOST_COMMITS,
    Commits,
    CommitsFold,
    MissedCommits,
    find_missed,
)
from guard.core.iteration.facts import Process
from guard.core.iteration.run import EndedIteration, OpenIteration, Run
from guard.core.log.record import Position
from guard.core.log.view import LogPosition
from guard.hooks.git.note import _how

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
SUPERVISOR = Process(pid=7, start="boot/1")
A, B, C, D = (letter * 40 for letter in "abcd")


def event(oid: str, **more: Any) -> CommitRecorded:
    told = {"previous": None, "branch": None, "how": "commit", "verified": None, **more}
    name = f"{oid[:8]}.json"
    return CommitRecorded(at=AT, id="e1", worktree="w", spooled=name, oid=oid, **told)


def view(*oids: str, unverified: tuple[str, ...] = (), new: tuple[str, ...] = ()) -> Commits:
    fold = CommitsFold("w")
    for oid in oids:
        fold.apply(event(oid, verified=False if oid in unverified else None))
    rewrites = tuple(Rewrite(old=A, new=one) for one in new)
    fold.apply(
        CommitsRewritten(
            at=AT, id="e2", worktree="w", spooled="r", command="rebase", count=1, rewrites=rewrites
        )
    )
    fold.reached = Position(1, 1, 1, "0" * 64)
    return fold.document()


NOTICED: dict[str, tuple[Commits | None, list[str], bool, MissedCommits]] = {
    "no hook was ever called": (None, [A], False, MissedCommits()),
    "hooks that came before all": (None, [A], True, MissedCommits(unrecorded=(A,))),
    "all told of": (view(A, B), [A, B], False, MissedCommits()),
    "before the first that was told of": (view(B), [A, B], False, MissedCommits()),
    "after it": (view(A), [A, B], False, MissedCommits(unrecorded=(B,))),
    "told of by a rewrite": (view(A, new=(B,)), [A, B], False, MissedCommits()),
    "past the checks": (view(A, B, unverified=(B,)), [A, B], False, MissedCommits(unverified=(B,))),
    "not made here": (view(A, B, unverified=(B,)), [A], False, MissedCommits()),
    "seen twice": (view(A), [A, B, B], False, MissedCommits(unrecorded=(B,))),
}


@pytest.mark.parametrize("name", NOTICED)
def test_what_came_past_the_hooks(name: str) -> None:
    known, made, before, wanted = NOTICED[name]
    assert find_missed(known, made, recorded_before=before) == wanted


def test_in_words() -> None:
    assert MissedCommits().sentences() == ()
    many = MissedCommits(unrecorded=(A, B, C, D))
    assert many.sentences() == (
        f"4 commits made past every hook: {'a' * 10}, {'b' * 10}, {'c' * 10} …",
    )


def test_the_view_keeps_the_newest_and_goes_on_from_a_document() -> None:
    fold = CommitsFold("w")
    for number in range(MOST_COMMITS + 5):
        fold.apply(event(f"{number:040x}"))
    fold.reached = Position(1, 1, 1, "0" * 64)
    document = fold.document()
    assert document.total == MOST_COMMITS + 5
    assert (len(document.commits), document.commits[-1].oid) == (
        MOST_COMMITS,
        f"{MOST_COMMITS + 4:040x}",
    )
    again = CommitsFold("w")
    again.restore(document)
    assert again.contents() == fold.contents()


def run(opened: OpenIteration | None = None, ended: bool = False) -> Run:
    last = EndedIteration(
        number=1,
        started_at=AT,
        ended_at=AT + timedelta(minutes=5),
        status="complete",
        reason="commits",
        elapsed_seconds=300,
        agent=None,
        session=None,
        frozen=None,
        trusted=None,
    )
    return Run(
        seq=1,
        log=LogPosition(segment=1, offset=1, hash="0" * 64),
        worktree="w",
        run="r1",
        command=(),
        started_at=None,
        ended_at=None,
        end_reason=None,
        iterations=2,
        open_iteration=opened,
        last_iteration=last if ended else None,
    )


OPEN = OpenIteration(number=2, started_at=AT)
WATCHED = OpenIteration(number=2, started_at=AT, supervisor=SUPERVISOR)
WHOSE: dict[str, tuple[Run | None, str | None, float, tuple[str, int] | None]] = {
    "no run": (None, "r1/2", 0, None),
    "marked": (run(WATCHED), "r1/2", 60, ("r1", 2)),
    "marked, heard of after the end": (run(ended=True), "r1/1", 600, ("r1", 1)),
    "marked by another run": (run(OPEN), "r9/2", 60, None),
    "watched over, without a mark": (run(WATCHED), None, 60, None),
    "by hand": (run(OPEN), None, 60, ("r1", 2)),
    "by hand, before it began": (run(OPEN), None, -60, None),
    "in the last one": (run(ended=True), None, 60, ("r1", 1)),
    "after the last one": (run(ended=True), None, 600, None),
    "mark that is none": (run(OPEN), "../x/1", 60, ("r1", 2)),
    "number that is none": (run(OPEN), "r1/0", 60, ("r1", 2)),
    "number without end": (run(OPEN), "r1/" + "9" * 5000, 60, ("r1", 2)),
}


@pytest.mark.parametrize("name", WHOSE)
def test_to_which_iteration_a_commit_belongs(name: str) -> None:
    known, mark, seconds, wanted = WHOSE[name]
    assert iteration_of(known, mark, AT + timedelta(seconds=seconds)) == wanted


@pytest.mark.parametrize(
    ("told", "left_out"),
    [
        ("", False),
        ("0", False),
        ("1", True),
        ("all", True),
        ("pre-push", True),
        ("post-commit", False),
        ("post-commit, pre-push", True),
        ("pre", False),
    ],
)
def test_which_hooks_the_variable_leaves_out(told: str, left_out: bool) -> None:
    assert is_skipped("pre-push", told) is left_out


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ("commit: Add it", "commit"),
        ("commit (initial): x", "initial"),
        ("commit (amend): commit: x", "amend"),
        ("commit (merge): x", "merge"),
        ("rebase (pick): x", "rebase"),
        ("cherry-pick: x", "cherry-pick"),
        ("revert: x", "revert"),
        ("", "other"),
        ("\x1b[2J: x", "other"),
        ("committed: x", "other"),
    ],
)
def test_how_a_commit_was_made_by_gits_own_words(words: str, how: str) -> None:
    assert _how(words) == how
