"""Which snapshots go, and why each of the others stays."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.snapshots.retention import Fate, SnapshotFacts, due_ids, fates, slack

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def held(
    name: str, days: float | None, worktree: str = "/p", unpromoted: bool = False
) -> SnapshotFacts:
    at = None if days is None else NOW - timedelta(days=days)
    return SnapshotFacts(name, worktree, at, unpromoted)


TABLE: dict[str, tuple[list[SnapshotFacts], int, float, dict[str, Fate]]] = {
    "nothing": ([], 1, 0, {}),
    "the only one": ([held("a", 900)], 1, 0, {"a": "newest"}),
    "old and beyond the count": (
        [held("a", 20), held("b", 19)],
        1,
        14,
        {"a": "due", "b": "newest"},
    ),
    "within the count": (
        [held("a", 20), held("b", 19)],
        2,
        14,
        {"a": "among_newest", "b": "newest"},
    ),
    "young": ([held("a", 13.9), held("b", 1)], 1, 14, {"a": "young", "b": "newest"}),
    "exactly as old as it may be": (
        [held("a", 14), held("b", 1)],
        1,
        14,
        {"a": "due", "b": "newest"},
    ),
    "from the future": ([held("a", -400), held("b", -401)], 1, 0, {"a": "young", "b": "newest"}),
    "nobody took its work over": (
        [held("a", 900, unpromoted=True), held("b", 1)],
        1,
        0,
        {"a": "unpromoted", "b": "newest"},
    ),
    "it cannot be read": (
        [held("a", None), held("b", 1)],
        1,
        0,
        {"a": "unreadable", "b": "newest"},
    ),
    "each work tree by itself": (
        [held("a", 90), held("x", 80, "/q"), held("b", 70), held("y", 60, "/q")],
        1,
        0,
        {"a": "due", "b": "newest", "x": "due", "y": "newest"},
    ),
    "the last baseline": (
        [
            *(held("a", 90)._replace(baseline=True), held("b", 80)._replace(baseline=True)),
            *(held("c", 70), held("d", 60)),
        ],
        1,
        0,
        {"a": "due", "b": "baseline", "c": "due", "d": "newest"},
    ),
    "the newest is unpromoted": (
        [held("a", 90), held("b", 80), held("c", 70, unpromoted=True)],
        2,
        0,
        {"a": "due", "b": "among_newest", "c": "unpromoted"},
    ),
}


@pytest.mark.parametrize(("given_", "keep", "days", "expected"), TABLE.values(), ids=TABLE)
def test_fates(
    given_: list[SnapshotFacts], keep: int, days: float, expected: dict[str, Fate]
) -> None:
    assert fates(given_, keep_snapshots=keep, keep_days=days, now=NOW) == expected
    gone = due_ids(given_, keep_snapshots=keep, keep_days=days, now=NOW)
    assert set(gone) == {name for name, fate in expected.items() if fate == "due"}


any_held = st.builds(
    held,
    st.uuids().map(str),
    st.none() | st.floats(-10, 100),
    st.sampled_from(["/p", "/q", "/r"]),
    st.booleans(),
)


@given(st.lists(any_held, max_size=30), st.integers(1, 10), st.floats(0, 50))
def test_whatever_must_stay_stays(found: list[SnapshotFacts], keep: int, days: float) -> None:
    found.sort(key=lambda one: one.at or NOW)
    gone = set(due_ids(found, keep_snapshots=keep, keep_days=days, now=NOW))
    for worktree in {one.worktree for one in found}:
        own = [one for one in found if one.worktree == worktree and one.at is not None]
        assert not gone & {one.id for one in own[-keep:]}
    for one in found:
        if one.unpromoted or one.at is None or NOW - one.at < timedelta(days=days):
            assert one.id not in gone


@pytest.mark.parametrize(("keep", "many"), [(1, 1), (9, 1), (10, 1), (50, 5), (1000, 100)])
def test_space_is_given_back_unasked_when_it_is_worth_a_copy_of_the_rest(
    keep: int, many: int
) -> None:
    assert slack(keep) == many
