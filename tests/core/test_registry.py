"""The registries: every pair of statuses, and any interleaving against a simple model."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.events import AgentSpawned, AgentStatus, AgentUpdated, Event, RetentionSet
from guard.core.lifecycle import ACTIVE, STATUSES, TERMINAL
from guard.core.records import Entry, Position
from guard.core.registry import AgentRegistry, AgentRegistryFold, GlobalRegistry
from guard.core.replay import Replay
from guard.core.views import Fold, seal
from tests.support.events import MOMENT, spawned, updated


def replayed(events: list[Event]) -> Replay:
    replay = Replay()
    for seq, event in enumerate(events, 1):
        replay.feed(Entry(event, Position(1, seq * 100, seq, f"{seq:064x}")))
    return replay


def both(events: list[Event]) -> tuple[AgentRegistry, GlobalRegistry]:
    folds = replayed(events).folds
    return folds["T1/AGENT_REGISTRY.json"].document(), folds[
        "registry/GLOBAL_REGISTRY.json"
    ].document()


@pytest.mark.parametrize("after", STATUSES)
@pytest.mark.parametrize("before", STATUSES)
def test_counts_move_only_from_active_to_terminal(before: AgentStatus, after: AgentStatus) -> None:
    task, overall = both([spawned(), updated(before), updated(after)])
    ended = before in TERMINAL or after in TERMINAL
    assert task.active_count == overall.active_agents == (0 if ended else 1)
    assert task.completed_count == overall.completed_agents == (1 if ended else 0)
    assert task.total_spawned == overall.total_agents_spawned == 1
    assert task.agents[0].status == (before if before in TERMINAL else after)
    assert task.agents[0].late_reports == (1 if before in TERMINAL else 0)
    assert (task.agents[0].completed_at is not None) == ended


def test_an_old_incarnation_cannot_end_a_new_one() -> None:
    task, overall = both(
        [spawned(), updated("failed"), spawned(incarnation=2), updated("completed", incarnation=1)]
    )
    assert task.agents[0].status == "deployed"
    assert task.agents[0].late_reports == 1
    assert task.active_count == overall.active_agents == 1


def test_an_active_agent_that_is_spawned_again_counts_once() -> None:
    task, overall = both([spawned(), spawned(incarnation=2)])
    assert (task.active_count, task.total_spawned) == (1, 2)
    assert (overall.active_agents, overall.total_agents_spawned) == (1, 2)
    assert sum(task.by_status.values()) == 1


def test_an_update_of_nobody_changes_nothing() -> None:
    task, overall = both([spawned(), updated("completed", agent="ghost")])
    assert (task.active_count, overall.active_agents) == (1, 1)
    assert [agent.agent_id for agent in task.agents] == ["a1"]


def test_the_global_registry_drops_the_oldest_ends_and_the_task_registry_none() -> None:
    retention = RetentionSet(at=MOMENT, id="x", keep_finished=2)
    names = ["a1", "a2", "a3", "a4"]
    ends: list[Event] = [updated("completed", agent=name) for name in ("a3", "a1", "a4")]
    task, overall = both([retention, *[spawned(name) for name in names], *ends])
    assert [agent.agent_id for agent in overall.agents] == ["a2", "a1", "a4"]
    assert {agent.agent_id for agent in task.agents} == set(names)
    assert overall.completed_agents == task.completed_count == 3


def test_the_global_registry_agrees_with_the_task_when_a_dropped_agent_returns() -> None:
    retention = RetentionSet(at=MOMENT, id="x", keep_finished=0)
    task, overall = both([retention, spawned(), updated("completed"), spawned(incarnation=2)])
    assert task.by_status == overall.by_status


actions = st.lists(
    st.tuples(
        st.sampled_from(["spawn", *STATUSES]),
        st.sampled_from(["a1", "a2", "a3"]),
        st.integers(1, 3),
    ),
    max_size=40,
)


@given(actions, st.integers(0, 3))
def test_registries_equal_a_simple_model_and_each_other(
    steps: list[tuple[str, str, int]], keep: int
) -> None:
    model: dict[str, tuple[str, int]] = {}
    counts = {"spawned": 0, "completed": 0}
    events: list[Event] = [RetentionSet(at=MOMENT, id="x", keep_finished=keep), spawned("a0")]
    counts["spawned"] += 1
    model["a0"] = ("deployed", 1)
    for action, agent, incarnation in steps:
        if action == "spawn":
            events.append(spawned(agent, incarnation=incarnation))
            model[agent] = ("deployed", incarnation)
            counts["spawned"] += 1
            continue
        status: Any = action
        events.append(updated(status, agent=agent, incarnation=incarnation))
        held = model.get(agent)
        if held and held[0] in ACTIVE and held[1] == incarnation:
            model[agent] = (status, incarnation)
            counts["completed"] += status in TERMINAL
    task, overall = both(events)
    active = {name for name, (status, _) in model.items() if status in ACTIVE}
    assert task.active_count == overall.active_agents == len(active)
    assert task.completed_count == overall.completed_agents == counts["completed"]
    assert task.total_spawned == overall.total_agents_spawned == counts["spawned"]
    assert {a.agent_id: a.status for a in task.agents} == {n: s for n, (s, _) in model.items()}
    assert {a.agent_id for a in overall.agents if a.status in ACTIVE} == active
    assert len(overall.agents) - len(active) <= keep
    assert task.by_status == overall.by_status


@given(actions, st.integers(0, 40))
def test_a_fold_restored_half_way_ends_in_the_same_bytes(
    steps: list[tuple[str, str, int]], cut: int
) -> None:
    events: list[AgentSpawned | AgentUpdated] = [spawned("a0")]
    for action, agent, incarnation in steps:
        status: Any = action
        events.append(
            spawned(agent, incarnation=incarnation)
            if action == "spawn"
            else updated(status, agent=agent, incarnation=incarnation)
        )
    for path, whole in replayed(list(events)).folds.items():
        kinds = replayed(list(events[: max(1, cut)]))
        first = kinds.folds[path]
        second: Fold[Any] = kinds.kinds[path].fold(first.key)
        second.restore(first.document())
        for seq, event in enumerate(events[max(1, cut) :], max(1, cut) + 1):
            second.apply(event)
            second.reached = Position(1, seq * 100, seq, f"{seq:064x}")
        assert seal(second.document()) == seal(whole.document())


def test_the_document_of_a_fold_is_a_copy() -> None:
    fold = AgentRegistryFold("T1")
    fold.apply(spawned())
    fold.reached = Position(1, 1, 1, "0" * 64)
    before = fold.document()
    fold.apply(updated("completed"))
    assert before.agents[0].status == "deployed"
