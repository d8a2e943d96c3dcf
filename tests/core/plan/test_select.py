"""Selection: what unblocks most, then priority, then order; against a model that walks the graph for each task."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.plan import select
from guard.core.plan.model import PlanTask
from guard.core.plan.select import downstream_counts, selection_order
from tests.support.cost import cpu_limit


def task(name: str, *depends: str, priority: int = 0) -> PlanTask:
    return PlanTask(id=name, name=name, title=name, depends=depends, priority=priority)


ORDERS: dict[str, tuple[list[PlanTask], str]] = {
    "what unblocks most comes before priority": (
        [task("A", priority=9), task("B"), task("C", "B")],
        "BAC",
    ),
    "all that is downstream counts, not only the next": (
        [
            task("A"),
            task("X", "A"),
            task("Y", "A"),
            task("B"),
            task("Z", "B"),
            task("V", "Z"),
            task("W", "V"),
        ],
        "BAZVXYW",
    ),
    "a task downstream on two ways counts once": (
        [
            task("A"),
            task("L", "A"),
            task("R", "A"),
            task("E", "L", "R"),
            task("B"),
            task("F", "B"),
            task("G", "F"),
            task("H", "G"),
        ],
        "ABFLRGEH",
    ),
    "priority among equals": ([task("A", priority=1), task("B", priority=2)], "BA"),
    "the order of the document among equals": ([task("B"), task("A")], "BA"),
}


@pytest.mark.parametrize(("tasks", "expected"), ORDERS.values(), ids=ORDERS)
def test_order(tasks: list[PlanTask], expected: str) -> None:
    assert "".join(selection_order(tasks, [one.id for one in tasks])) == expected


def test_only_those_that_are_asked_for() -> None:
    assert selection_order([task("A"), task("B"), task("C", "B")], ["A", "B", "Z"]) == ("B", "A")


@st.composite
def plans(draw: st.DrawFn) -> list[PlanTask]:
    count = draw(st.integers(0, 12))
    tasks = []
    for at in range(count):
        before = st.lists(st.integers(0, at - 1), unique=True) if at else st.just([])
        depends = [f"T{one}" for one in draw(before)]
        tasks.append(task(f"T{at}", *depends, priority=draw(st.integers(-2, 2))))
    return draw(st.permutations(tasks))


def model_downstream(tasks: list[PlanTask], name: str) -> set[str]:
    found: set[str] = set()
    while more := {one.id for one in tasks if {name, *found} & set(one.depends)} - found:
        found |= more
    return found


@given(plans(), st.data())
def test_order_equals_the_model(tasks: list[PlanTask], data: st.DataObject) -> None:
    among = data.draw(st.sets(st.sampled_from([one.id for one in tasks]))) if tasks else set()
    expected = sorted(
        (one for one in tasks if one.id in among),
        key=lambda one: (-len(model_downstream(tasks, one.id)), -one.priority, tasks.index(one)),
    )
    assert selection_order(tasks, among) == tuple(one.id for one in expected)


@given(plans())
def test_counting_in_small_blocks_gives_the_same(tasks: list[PlanTask]) -> None:
    whole = downstream_counts(tasks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "_BLOCK", 2)
        assert downstream_counts(tasks) == whole


def test_ten_thousand_tasks_take_well_under_a_second() -> None:
    count = 10_000
    tasks = [
        task(f"T{at}", *{f"T{at // 2}", f"T{max(0, at - 7)}"} - {f"T{at}"}) for at in range(count)
    ]
    with cpu_limit(20):
        assert selection_order(tasks, {f"T{at}" for at in range(count)})[0] == "T0"
    assert downstream_counts(tasks)["T0"] == count - 1
