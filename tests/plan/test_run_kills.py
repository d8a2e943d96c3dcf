"""A run of the plan that is killed goes on when it is started again: nothing twice, nothing lost."""

import os
import signal
from pathlib import Path

import pytest

from tests.support import TIME_LIMIT, run
from tests.support.faulty_plan import FaultyPlan


@pytest.mark.long
def test_a_plan_with_every_fault_lands_once_although_guard_is_killed_again_and_again(
    repository: Path,
) -> None:
    story = FaultyPlan(repository, 9)
    told = story.finish(7, 6, "--agents", "4")
    assert told[-1] == "ended with 0", (told, (story.scripts / "run.log").read_text())
    assert story.problems() == [], told
    assert run("verify").code == 0


def test_ctrl_c_ends_the_agents_and_the_next_run_goes_on_with_them(repository: Path) -> None:
    story = FaultyPlan(repository, 1)
    at = story.scripts / "at"
    story.does("T1.work.1", f"echo half > half.txt; touch {at}; sleep {TIME_LIMIT}\n")
    process = story.start()
    while not at.exists():
        assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(TIME_LIMIT) == 130
    assert "goes on from here" in (story.scripts / "run.log").read_text()
    assert story.state.setbacks == {}, "it was no agent's fault"
    assert story.start().wait(TIME_LIMIT) == 0
    assert story.landed() == ["T1"]
    assert story.shown("half.txt") == "half\n"
    assert story.sessions("T1") == 2
