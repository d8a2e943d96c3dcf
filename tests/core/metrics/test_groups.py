"""What was used, by run, task, agent, day and model; the newest check of an iteration counts."""

from datetime import timedelta
from typing import Any

import pytest

from guard.core.agents.events import AgentUpdated
from guard.core.cost.usage import ModelUsage, Usage, sum_models
from guard.core.iteration.events import SessionSeen
from guard.core.log.events import BaseEvent
from guard.core.metrics.count import Metrics
from guard.core.metrics.groups import Grouping
from guard.core.metrics.report import MetricsReport, prometheus_text
from tests.support.metrics import checked, common, families


def used(*models: tuple[str, float]) -> Usage:
    parts = (ModelUsage(model=name, input_tokens=10, cost_usd=cost) for name, cost in models)
    return sum_models(tuple(parts), "billed", turns=2)


def check(
    iteration: int, usage: Usage | None, *, run: str = "r1", worktree: str = "w1", days: int = 0
) -> BaseEvent:
    event = checked(iteration, run=run, worktree=worktree)
    at = event.at + timedelta(days=days)
    return event.model_copy(update={"usage": usage, "at": at})


def named(iteration: int, task: str, agent: str, run: str = "r1") -> BaseEvent:
    fields = common(iteration, run=run)
    del fields["worktree"]
    return AgentUpdated(
        **fields,
        task_id=task,
        agent_id=agent,
        incarnation=1,
        status="working",
    )


def program(iteration: int, name: str) -> BaseEvent:
    return SessionSeen(**common(iteration), agent=name, session=None, process=None)


OPUS, BOTH = used(("opus", 1.0)), used(("opus", 0.5), ("haiku", 0.25))
NIGHT: list[BaseEvent] = [
    program(1, "claude"),
    check(1, used(("opus", 0.1))),
    check(1, OPUS),
    named(2, "T1", "a1"),
    check(2, BOTH),
    named(1, "T2", "a2", run="r2"),
    check(1, OPUS, run="r2", worktree="w2", days=1),
    check(3, Usage(), days=1),
    check(4, None, days=1),
]


def count(by: Grouping | None, *events: BaseEvent) -> MetricsReport:
    metrics = Metrics(by)
    for event in events:
        metrics.feed(event)
    return metrics.report()


GROUPS: dict[Grouping, dict[str, tuple[int, float | None]]] = {
    "run": {"r1": (3, 1.75), "r2": (1, 1.0)},
    "task": {"(none)": (2, 1.0), "T1": (1, 0.75), "T2": (1, 1.0)},
    "agent": {"(none)": (1, None), "a1": (1, 0.75), "a2": (1, 1.0), "claude": (1, 1.0)},
    "day": {"2026-01-31": (2, 1.75), "2026-02-01": (2, 1.0)},
    "model": {"(none)": (1, None), "haiku": (1, 0.25), "opus": (3, 2.5)},
}


@pytest.mark.parametrize("by", GROUPS)
def test_the_groups_add_up(by: Grouping) -> None:
    report = count(by, *NIGHT)
    found = {group.name: (group.iterations, group.cost_usd) for group in report.groups}
    assert found == GROUPS[by]
    assert report.usage.cost_usd == pytest.approx(2.75)
    assert report.usage.partial


def test_without_a_grouping_there_is_the_sum_alone() -> None:
    report = count(None, *NIGHT)
    assert (report.by, report.groups) == (None, ())
    assert (report.usage.model, report.usage.turns) == ("opus", 6)


def test_a_log_without_usage_has_none() -> None:
    assert count("run", check(1, None)).usage == Usage()


def test_prometheus_has_costs_and_tokens_by_model() -> None:
    text = prometheus_text(count(None, *NIGHT))
    found: dict[str, Any] = families(text)
    assert 'guard_cost_usd_total{model="opus",basis="billed"} 2.5' in text
    assert 'guard_tokens_total{model="haiku",kind="input"} 10' in text
    assert {"guard_cost_usd_total", "guard_tokens_total"} <= found.keys()
