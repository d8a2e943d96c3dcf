"""The labelled simulation: the product passes, and a broken one does not."""

import subprocess
import sys
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from benchmarks.measure import none_of, table
from benchmarks.simulation.kinds import SUPERVISED, UNSUPERVISED
from benchmarks.simulation.runs import Judged, first_with, simulated
from benchmarks.simulation.sessions import Making
from benchmarks.simulation.simulated_check import SimulatedCheck
from benchmarks.verdicts import matrix, remarks, rows
from guard.check.check import Check
from guard.core.breaker import state
from guard.core.check import judge
from guard.core.check.evidence import Evidence, Policy
from tests.support import ROOT
from tests.support.events import MOMENT

pytestmark = pytest.mark.long

SESSIONS = 300


def failures(judged: list[Judged]) -> dict[str, int]:
    return {
        "false aborts": sum(one.is_false_abort for one in judged),
        "false completes": sum(one.is_false_complete for one in judged),
        "lost work": sum(one.unsaved > 0 for one in judged),
        "the user's files": sum(one.seized for one in judged),
        "intrusions": sum(one.intruded for one in judged),
    }


def test_no_false_abort_no_false_complete_and_nothing_lost() -> None:
    judged = simulated(SESSIONS, seed=11)
    assert len(judged) == SESSIONS
    assert set(failures(judged).values()) == {0}
    assert any(one.opened for one in judged), "some runs have to be stopped, or nothing is tested"


@pytest.mark.parametrize("kind", [*SUPERVISED, *(UNSUPERVISED.keys() - SUPERVISED.keys())])
def test_the_verdict_is_right_for(kind: str) -> None:
    supervised = kind in SUPERVISED
    make_up = (SUPERVISED if supervised else UNSUPERVISED)[kind][1]
    for number in range(8):
        random = Random(f"{kind} {number}")
        session = make_up(Making(random, MOMENT, supervised))
        found = SimulatedCheck(session, Policy(), random, MOMENT).make().verdict
        assert (found.status in session.truth.right) != session.truth.unprovable, found


def test_the_same_seed_gives_the_same_sessions_and_another_one_others() -> None:
    assert simulated(30, seed=2) == simulated(40, seed=2)[:30]
    assert simulated(30, seed=2) != simulated(30, seed=3)


@pytest.mark.no_cover
def test_plain_counting_does_worse() -> None:
    plain = [one.plain for one in simulated(SESSIONS, seed=11) if one.plain]
    assert sum(one.is_false_abort for one in plain) > 5
    assert sum(one.is_false_complete for one in plain) > 5


def without(*names: str) -> Callable[[pytest.MonkeyPatch], None]:
    """The judge without some of its rules."""

    def break_it(patch: pytest.MonkeyPatch) -> None:
        rules = tuple(rule for rule in judge.RULES if rule[0] not in names)
        assert len(rules) == len(judge.RULES) - len(names)
        patch.setattr(judge, "RULES", rules)

    return break_it


def believing(patch: pytest.MonkeyPatch) -> None:
    def nothing_against_it(_seen: Evidence) -> bool:
        return False

    patch.setattr(judge, "_has_doubt", nothing_against_it)


def counting_everything(patch: pytest.MonkeyPatch) -> None:
    def any_commit(seen: Evidence) -> bool:
        return seen.work.new_commits + seen.work.empty + seen.work.imported + seen.work.copies > 0

    patch.setattr(judge, "_has_commits", any_commit)


def saving_nothing(patch: pytest.MonkeyPatch) -> None:
    def nothing(_check: Check, _verdict: judge.Verdict, evidence: Evidence) -> Evidence:
        return evidence

    patch.setattr(Check, "_save", nothing)


def counting_every_stall(patch: pytest.MonkeyPatch) -> None:
    tally = state.tally

    def without_the_rescue(before: Any, event: Any) -> Any:
        return tally(before, event.model_copy(update={"rescued": False}))

    patch.setattr(state, "tally", without_the_rescue)
    patch.setattr("guard.core.breaker.record.tally", without_the_rescue)


BROKEN: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "believes every claim": (believing, "false completes"),
    "counts commits that are no work": (counting_everything, "false completes"),
    "overlooks helpers that were killed": (
        without("helpers killed with the session"), "false completes"),
    "does not read the output": (without("the agent's output"), "false aborts"),
    "waits for nothing that lives": (
        without("something is at work", "the session waits for a helper"), "false aborts"),
    "waits for no silent helper": (without("the session waits for a helper"), "intrusions"),
    "takes a stall that was rescued for one": (counting_every_stall, "false aborts"),
    "saves nothing before a verdict": (saving_nothing, "lost work"),
}  # fmt: skip


@pytest.mark.no_cover
@pytest.mark.parametrize(("break_it", "found"), BROKEN.values(), ids=BROKEN)
def test_a_product_that_is_broken_is_found_out(
    break_it: Callable[[pytest.MonkeyPatch], None], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    assert first_with(lambda one: failures([one])[found] > 0, 800, seed=5)


def test_the_figures_and_the_table_are_printed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "verdicts", "--sessions", "60", "--seed", "4"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "| false aborts, of 60 sessions, seed 4 | 0 | 0 | yes |" in done.stdout
    assert "| the truth | complete | waiting |" in done.stdout
    assert "plain counting" in done.stdout
    assert "| probes spent per session, of 60 sessions, seed 4 | at most 1.2 |" in done.stdout


@pytest.mark.no_cover
def test_what_is_wrong_stands_in_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    believing(monkeypatch)
    text = table(list(rows(sessions=400, seed=3)))
    assert "| NO |" in text
    judged = simulated(400, seed=3)
    assert "wrong)" in matrix(judged)
    assert "believed" in remarks(judged)


def test_a_count_that_should_be_none_is_shown_as_one() -> None:
    assert "| lost | 0 | 3 | NO | bytes |" in table([none_of("lost", 3, "bytes")])
