"""The fold of the report may be looked at after any record, and fed on."""

from guard.core.breaker.events import BreakerClosed
from guard.core.report.night import Night
from tests.support.events import MOMENT
from tests.support.metrics import opened


def test_a_look_at_the_breakers_is_no_end_of_them() -> None:
    night, event = Night(), opened()
    night.feed(event)
    assert [each.state for each in night.breakers.values()] == ["open"]
    night.feed(BreakerClosed(at=MOMENT, id="closed", worktree=event.worktree, reason="reset"))
    assert [each.state for each in night.breakers.values()] == ["closed"]
