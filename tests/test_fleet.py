"""The simulation of agents whose truth is known: nobody who lives is disturbed, nobody who is dead is missed."""

from math import inf

import pytest

from benchmarks.activity import by_kind, rows
from benchmarks.fleet.fleets import FLEETS
from benchmarks.fleet.lives import KINDS
from benchmarks.fleet.monitor import Rules
from benchmarks.fleet.outcome import Outcome, false_alarms_of_a_late_one, total, watched

pytestmark = pytest.mark.long


def disturbed(found: list[Outcome]) -> set[tuple[str, str]]:
    """Which kinds of agents were sent a prompt while they lived, in which fleets."""
    return {(one.fleet, one.kind) for one in found if one.disturbed}


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.no_cover) for seed in (7, 20))]
)
def test_no_agent_that_lives_is_disturbed_and_every_dead_one_is_found_in_its_window(
    seed: int,
) -> None:
    found = watched(48, seed)
    assert disturbed(found) == set()
    assert [one for one in found if one.is_missed] == []
    assert {one.kind for one in found} == set(KINDS)
    assert {one.fleet for one in found} == set(FLEETS)
    dead = [one for one in found if one.dies < inf]
    assert sum(one.waited > 0 for one in dead) >= 8, "some have to die, or nothing is tested"


@pytest.mark.no_cover
def test_it_is_right_more_often_than_the_age_of_the_status_file() -> None:
    found = watched(16, seed=3)
    own, by_status = (total([getattr(one, name) for one in found]) for name in ("own", "by_status"))
    assert own.precision > 0.95 > by_status.precision
    assert own.recall > 0.99 > by_status.recall
    table = by_kind(found)
    assert "| noise only | 0 | 0 | 0 | 0 |" in table
    assert all(f"| {kind} |" in table for kind in KINDS)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("rules", "kinds"),
    [
        pytest.param(Rules(adaptive=False), {("server", "bursty")}, id="rhythm"),
        pytest.param(Rules(clocks=False), {("laptop", "bursty")}, id="clocks"),
        pytest.param(Rules(outages=False), {("outage", "steady")}, id="outages"),
    ],
)
def test_without_each_rule_somebody_is_disturbed(rules: Rules, kinds: set[tuple[str, str]]) -> None:
    assert kinds <= disturbed(watched(48, seed=7, days=2.0, rules=rules))


@pytest.mark.no_cover
def test_a_false_alarm_is_learned_from() -> None:
    taught, untaught = (false_alarms_of_a_late_one(1, Rules(learns=one)) for one in (True, False))
    assert 0 < taught < untaught / 5


def test_the_figures_are_printed() -> None:
    printed = list(rows(agents=16, seed=5))
    assert all(row.reached for row in printed)
    assert "by the age of status.json: precision" in printed[0].detail


@pytest.mark.no_cover
def test_the_same_seed_gives_the_same_agents() -> None:
    assert watched(16, seed=2, days=1.5) == watched(16, seed=2, days=1.5)
    assert watched(16, seed=2, days=1.5) != watched(16, seed=3, days=1.5)
