"""Lists that a result caps, and paths that fit a line."""

import pytest

from guard.core.base.paths import path_line
from guard.core.snapshots.snapshot import (
    MOST_NAMED,
    HeldBack,
    Skipped,
    list_held_back,
    list_skipped,
)


@pytest.mark.parametrize("count", [0, MOST_NAMED, MOST_NAMED + 1, MOST_NAMED + 50])
def test_lists_are_capped_and_say_so(count: int) -> None:
    lines = list_skipped([Skipped(path=f"{n}", why="x") for n in range(count)])
    held = list_held_back([HeldBack(path=f"{n}", why="x") for n in range(count)])
    more = max(0, count - MOST_NAMED)
    assert len(lines) == len(held) == count - more + bool(more)
    assert not more or f"{more} more path" in lines[-1]
    assert not more or f"{more} more path" in held[-1].why


def test_a_path_for_people_fits_a_line() -> None:
    assert len(path_line(b"\xff" * 4096)) == 512
    assert path_line("\u202ex".encode()) == "\\u202ex"
