"""Metrics: what each event counts for, rates of nothing, aborts that later prove false, and a text that Prometheus reads."""

import pytest

from guard.core.breaker.record import CAUSES
from guard.core.iteration.events import RunStarted
from guard.core.iteration.facts import Status
from guard.core.log.events import BaseEvent
from guard.core.metrics.count import Metrics
from guard.core.metrics.report import MetricsReport, prometheus_text
from tests.support.metrics import (
    begun,
    checked,
    claimed,
    closed,
    common,
    ended,
    families,
    opened,
    proof_made,
    rescued,
)


def counted(*events: BaseEvent) -> MetricsReport:
    metrics = Metrics()
    for event in events:
        metrics.feed(event)
    return metrics.report()


def test_without_events_there_are_no_rates_and_no_zeros_for_them() -> None:
    report = counted()
    rates = (
        report.false_abort_rate,
        report.rescue_success_rate,
        report.average_probes_per_iteration,
        report.timeout_rate,
    )
    assert rates == (None, None, None, None)
    assert [target.met for target in report.targets] == [None, None]
    assert (report.since, report.until, report.probe_cost_usd) == (None, None, None)
    assert (report.runs, report.iterations, report.aborts, report.open_breakers) == (0, 0, 0, 0)


ABORTS: dict[str, tuple[list[BaseEvent], tuple[int, int]]] = {
    "nothing was alive": ([checked(), opened()], (1, 0)),
    "something was at work at the verdict": ([checked(alive=1), opened()], (1, 1)),
    "something was at work in an iteration before": (
        [checked(1, alive=2), checked(2), opened(2)],
        (1, 0),
    ),
    "a later check sees something at work": ([checked(), opened(), checked(alive=1)], (1, 1)),
    "a later check sees nothing": ([checked(), opened(), checked()], (1, 0)),
    "commits came after the verdict": ([checked(), opened(), checked(commits=1)], (1, 1)),
    "the commits were there before": (
        [checked(commits=2), opened(), checked(commits=2)],
        (1, 0),
    ),
    "the next iteration is another matter": (
        [checked(1), opened(1), checked(2, alive=3, commits=1)],
        (1, 0),
    ),
    "the other work tree is another matter": (
        [checked(), opened(), checked(alive=3, worktree="w2")],
        (1, 0),
    ),
    "the same number in another run is another matter": (
        [checked(), opened(), checked(alive=3, run="r2")],
        (1, 0),
    ),
    "the check of an iteration before says nothing": ([checked(1, alive=1), opened(2)], (1, 0)),
    "one of two": ([checked(1), opened(1), checked(2, alive=1), opened(2)], (2, 1)),
    "false twice over is false once": (
        [checked(alive=1), opened(), checked(alive=1), checked(commits=1)],
        (1, 1),
    ),
    "every reason that iterations have": (
        [opened(n, reason) for n, reason in enumerate(CAUSES, 1)],
        (len(CAUSES), 0),
    ),
    "tripped by hand": ([checked(alive=1), opened(None, "tripped", run=None)], (0, 0)),
    "recorded by a loop of one's own": ([checked(alive=1), opened(None, run=None)], (1, 0)),
    "never checked": ([opened()], (1, 0)),
}


@pytest.mark.parametrize(("events", "expected"), ABORTS.values(), ids=ABORTS)
def test_aborts_and_false_aborts(events: list[BaseEvent], expected: tuple[int, int]) -> None:
    report = counted(*events)
    assert (report.aborts, report.false_aborts) == expected
    total, false = expected
    assert report.false_abort_rate == (false / total if total else None)


def test_the_target_of_false_aborts_is_below_five_in_a_hundred() -> None:
    nineteen = [event for n in range(1, 20) for event in (checked(n), opened(n))]
    one: list[BaseEvent] = [checked(99, alive=1), opened(99)]
    (target, _) = counted(*nineteen, *one).targets
    assert (target.name, target.target, target.met) == ("false_abort_rate", "below 5 %", False)
    assert counted(*nineteen, checked(98), opened(98), *one).targets[0].met


def test_probes_are_averaged_over_the_iterations_that_were_checked() -> None:
    report = counted(
        begun(1),
        checked(1, probes=2),
        checked(1, probes=1),
        ended(1),
        begun(2),
        checked(2),
        begun(3),
    )
    assert (report.checks, report.probes, report.iterations_checked) == (3, 3, 2)
    assert report.average_probes_per_iteration == 1.5
    assert report.targets[1].met
    assert counted(checked(1, probes=3)).targets[1].met is False
    assert counted(checked(1, probes=2)).targets[1].met


def test_iterations_of_different_work_trees_and_runs_are_different_ones() -> None:
    report = counted(
        checked(1),
        checked(1, worktree="w2"),
        checked(1),
        checked(1, run="r2"),
        checked(1, worktree="w2"),
    )
    assert report.iterations_checked == 3


def test_time_outs_are_counted_among_the_iterations_that_ended() -> None:
    statuses: list[Status] = ["complete", "timeout", "limited", "timeout", "complete"]
    report = counted(*(ended(n, status) for n, status in enumerate(statuses, 1)), begun(6))
    assert (report.timeout_rate, report.iterations_ended, report.iterations) == (0.4, 5, 1)
    assert {status: n for status, n in report.iterations_by_status.items() if n} == {
        "complete": 2,
        "timeout": 2,
        "limited": 1,
    }
    assert len(report.iterations_by_status) == 9


def test_rescues_succeed_when_they_make_commits() -> None:
    report = counted(rescued(0), rescued(2), rescued(1))
    assert (report.rescues, report.rescues_with_commits, report.rescued_commits) == (3, 2, 3)
    assert report.rescue_success_rate == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ([None, None], None),
        ([0.25, None, 0.5], 0.75),
        ([0.0], 0.0),
        ([float("nan"), float("inf"), -1.0, 1e300], None),
    ],
    ids=["no CLI reported", "some reported", "free", "no figures"],
)
def test_the_cost_is_what_was_told(costs: list[float | None], expected: float | None) -> None:
    report = counted(*(checked(n, cost=cost) for n, cost in enumerate(costs, 1)))
    assert report.probe_cost_usd == expected


def test_runs_openings_trials_and_breakers_that_are_open() -> None:
    report = counted(
        RunStarted(**{**common(None), "run": "r1"}),
        opened(1),
        opened(1, worktree="w2"),
        opened(None, "lunch", run=None, worktree="w3"),
        claimed(),
        closed(),
    )
    assert (report.runs, report.breaker_trials, report.open_breakers) == (1, 1, 2)
    assert report.breaker_openings == {"lunch": 1, "no_commits": 2}
    assert report.since is not None
    assert report.until is not None
    assert report.since < report.until


def test_reasons_given_by_hand_are_listed_up_to_a_number() -> None:
    report = counted(*(opened(None, f"word {n}", run=None) for n in range(100)))
    assert sum(report.breaker_openings.values()) == 100
    assert (len(report.breaker_openings), report.breaker_openings["other"]) == (21, 80)


def test_proofs_are_counted_by_result() -> None:
    report = counted(
        proof_made("proven"),
        proof_made("refuted"),
        proof_made("refuted", worktree="w2"),
        proof_made("review", run=None),
        proof_made("unverifiable"),
    )
    expected = {"proven": 1, "refuted": 2, "review": 1, "unverifiable": 1}
    assert report.proofs == expected
    kind, samples = families(prometheus_text(report))["guard_proofs_total"]
    assert kind == "counter"
    assert samples == {f'{{result="{name}"}}': str(n) for name, n in expected.items()}
    assert set(counted().proofs.values()) == {0}


def test_prometheus_reads_counters_gauges_and_what_there_is_no_figure_for() -> None:
    found = families(prometheus_text(counted(ended(1, "timeout"), checked(1, probes=2, cost=0.5))))
    assert {kind for kind, _ in found.values()} == {"counter", "gauge"}
    assert all(name.startswith("guard_") for name in found)
    assert all((kind == "counter") == name.endswith("_total") for name, (kind, _) in found.items())
    assert found["guard_iterations_ended_total"][1]['{status="timeout"}'] == "1"
    assert found["guard_probes_per_iteration"][1] == {"": "2.0"}
    assert found["guard_probe_cost_usd_total"][1] == {"": "0.5"}
    assert found["guard_timeout_ratio"][1] == {"": "1.0"}
    assert found["guard_false_abort_ratio"][1] == {"": "NaN"}
    assert "guard_probe_cost_usd_total" not in families(prometheus_text(counted()))


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        ('say "no"', r"say \"no\""),
        ("back\\slash", r"back\\slash"),
        ("two\nlines", r"two\\x0alines"),
        ("\x1b[31mred", r"\\x1b[31mred"),
        ("grün", "grün"),
        ('"} 1\nevil 1', r"\"} 1\\x0aevil 1"),
    ],
    ids=["quotes", "a backslash", "a newline", "an escape", "another alphabet", "a forged sample"],
)
def test_a_reason_cannot_break_out_of_its_label(reason: str, label: str) -> None:
    text = prometheus_text(counted(opened(None, reason, run=None)))
    samples = families(text)["guard_breaker_openings_total"][1]
    assert samples == {f'{{reason="{label}"}}': "1"}
