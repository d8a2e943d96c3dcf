"""Links and special files below `.git`: a landing moves nothing through them."""

from contextlib import suppress
from pathlib import Path

import pytest

from guard.errors import GuardError
from guard.landing.target import open_target
from guard.rollback.prepare import RollbackStopped
from tests.support.landings import LandingPlan
from tests.support.planted_links import imprint, outside, plant

PLANTED = {
    **dict.fromkeys(("logs", "logs/refs", "refs", "refs/heads", "refs/guard"), "link to a folder"),
    **dict.fromkeys(("refs/heads/guard", "objects/??", "logs/refs/heads"), "link to a folder"),
    **dict.fromkeys(("logs/refs/heads/guard/plan/plan", "logs/HEAD"), "second name"),
    **dict.fromkeys(("refs/heads/guard/plan/plan", "packed-refs"), "link to what was there"),
}


@pytest.mark.parametrize("target", [None, "main"], ids=["alone", "checked out"])
def test_nothing_is_written_outside(target: str | None, repository: Path, workspace: Path) -> None:
    planned = LandingPlan(repository, workspace, "A")
    planned.passes("A")
    open_target(planned.guard, target)
    landed = []
    for place, kind in PLANTED.items():
        root, state = planned.copied(place.replace("/", "-"))
        beside = outside(root)
        plant(root / ".git", place, kind, beside)
        before = imprint(beside)
        with suppress(GuardError, RollbackStopped):
            landed += [place] * LandingPlan.of(root, state).lands(target=target).landed
        assert imprint(beside) == before, place
        assert (root / "A.txt").exists() == (place in landed and target == "main"), place
    # The branch that is checked out moves past what was planted for the other one.
    assert [place for place in landed if target is None or "heads/guard" not in place] == []
