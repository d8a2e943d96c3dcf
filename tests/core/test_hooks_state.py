"""What the view of the hooks keeps of a session."""

from datetime import timedelta

import pytest

from guard.core.events import HookSessionStarted, StopDecided
from guard.core.hooks.state import HooksFold
from tests.support.events import MOMENT

_STOPPED = StopDecided(
    at=MOMENT,
    id="e1",
    run=None,
    iteration=None,
    worktree="w1",
    agent="gemini",
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
    fold.apply(
        HookSessionStarted(
            at=MOMENT + timedelta(seconds=9),
            id="e2",
            run=None,
            iteration=None,
            worktree="w1",
            agent="gemini",
            event="SessionStart",
            session="s1",
            source=source,
            began=False,
            detail="",
        )
    )
    (session,) = fold.contents()["sessions"]
    assert (session.prompt, session.blocks) == kept
