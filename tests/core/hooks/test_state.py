"""What the view of the hooks keeps of a session."""

from datetime import timedelta
from typing import Any

import pytest

from guard.core.hooks.events import HookSessionStarted, HooksFolded, StopDecided
from guard.core.hooks.state import MOST_HELD, MOST_SESSIONS, HooksFold
from tests.support.events import MOMENT

_PLACE: dict[str, Any] = {"run": None, "iteration": None, "worktree": "w1", "agent": "gemini"}
_STOPPED = StopDecided(
    at=MOMENT,
    id="e1",
    **_PLACE,
    event="AfterAgent",
    session="s1",
    prompt="p1",
    decision="released",
    reason="cap",
    blocks=2,
    files=1,
    members=0,
    detail="",
)


@pytest.mark.parametrize(
    ("source", "kept"), [("resume", (None, 0)), ("startup", (None, 0)), ("compact", ("p1", 2))]
)
def test_the_count_of_a_prompt_after(source: str, kept: tuple[str | None, int]) -> None:
    """Who resumes a session prompts it anew, perhaps in the same words; one that is compacted is at the same prompt."""
    fold = HooksFold("w1")
    fold.apply(_STOPPED)
    fold.apply(started("s1", source))
    (session,) = fold.contents()["sessions"]
    assert (session.prompt, session.blocks) == kept


def started(session: str, source: str = "startup") -> HookSessionStarted:
    return HookSessionStarted(
        at=MOMENT + timedelta(seconds=9),
        id="e2",
        **_PLACE,
        event="SessionStart",
        session=session,
        source=source,
        began=False,
        detail="",
    )


def test_other_sessions_do_not_make_the_count_of_one_forgotten() -> None:
    fold = HooksFold("w1")
    fold.apply(_STOPPED)
    fold.apply(_STOPPED.model_copy(update={"session": "over"}))
    fold.apply(
        HooksFolded(at=MOMENT, id="e3", worktree="w1", spooled=(), calls=(), ended=("over",))
    )
    for number in range(500):
        fold.apply(started(f"other {number}"))
    found = {one.session: one.blocks for one in fold.contents()["sessions"]}
    assert found["s1"] == 2
    assert "other 499" in found
    assert "over" not in found
    assert len(found) == MOST_SESSIONS + 1


def test_sessions_are_forgotten_in_the_end() -> None:
    fold = HooksFold("w1")
    for number in range(MOST_HELD + 100):
        fold.apply(_STOPPED.model_copy(update={"session": f"held {number}"}))
    names = [one.session for one in fold.contents()["sessions"]]
    assert names == [f"held {number}" for number in range(100, MOST_HELD + 100)]
    ended = HooksFolded(at=MOMENT, id="e3", worktree="w1", spooled=(), calls=(), ended=tuple(names))
    fold.apply(ended)
    assert [one.session for one in fold.contents()["sessions"]] == names[-MOST_SESSIONS:]
