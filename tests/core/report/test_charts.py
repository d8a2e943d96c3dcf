"""The pictures of a report, in numbers: what comes before stands left of what comes after, and nothing leaves its frame."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.report.charts import WIDTH, Scale, plan_graph
from guard.core.report.document import ReportPlan, ReportTask
from tests.support.events import MOMENT


@given(st.floats(1, 10_000_000), st.floats(0, 1), st.floats(0, 1))
def test_a_time_line_keeps_the_order_of_times_within_its_frame(
    seconds: float, first: float, second: float
) -> None:
    scale = Scale(MOMENT, MOMENT + timedelta(seconds=seconds))
    early, late = sorted((first, second))
    begin, end = (MOMENT + timedelta(seconds=seconds * part) for part in (early, late))
    bar = scale.bar(begin, end, "complete", "x")
    assert 0 <= bar.x <= bar.x + bar.width <= WIDTH + 0.2
    assert scale.x(begin) <= scale.x(end)
    ticks = list(scale.ticks())
    assert len(ticks) <= 9
    assert all(0 <= tick.x <= WIDTH for tick in ticks)
    assert [tick.x for tick in ticks] == sorted(tick.x for tick in ticks)


@pytest.mark.parametrize(
    ("hours", "labels"),
    [
        (1, ["12:10", "12:20", "12:30", "12:40", "12:50"]),
        (8, ["13:00", "14:00", "15:00", "16:00", "17:00", "18:00", "19:00"]),
        (72, ["02-01", "02-02", "02-03"]),
    ],
)
def test_the_axis_has_round_times(hours: int, labels: list[str]) -> None:
    scale = Scale(MOMENT, MOMENT + timedelta(hours=hours))
    assert [tick.label for tick in scale.ticks()] == labels


def task(name: str, *depends: str) -> ReportTask:
    return ReportTask(
        task_id=name,
        name=name,
        title=name,
        status="available",
        depends=depends,
        iterations=0,
        audits_failed=0,
        commit=None,
    )


def plan(*tasks: ReportTask) -> ReportPlan:
    return ReportPlan(file=None, total=len(tasks), completed=0, landed=0, tasks=tasks)


def test_a_task_stands_behind_all_that_it_depends_on_and_none_covers_another() -> None:
    tasks = (task("a"), task("b", "a"), task("c", "a"), task("d", "b", "c", "a"), task("e"))
    graph = plan_graph(plan(*tasks))
    assert graph is not None
    places = {node.name: (node.x, node.y) for node in graph.nodes}
    for each in tasks:
        assert all(places[needed][0] < places[each.name][0] for needed in each.depends)
    assert len(set(places.values())) == len(tasks)
    assert len(graph.edges) == 5
    assert max(x for x, _ in places.values()) < graph.width


def test_a_plan_too_large_for_a_picture_has_none() -> None:
    assert plan_graph(plan(*(task(f"t{number}") for number in range(301)))) is None
