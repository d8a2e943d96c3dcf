"""The registries: every pair of statuses, and any interleaving against a simple model."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.agents.agent import ACTIVE, STATUSES, TERMINAL
from guard.core.agents.events import AgentStatus, RetentionSet
from guard.core.agents.registry import AgentRegistry, AgentRegistryFold, GlobalRegistry
from guard.core.agents.roster import transition
from guard.core.log.events import BaseEvent
from guard.core.log.record import LogEntry, Position
from guard.core.log.replay import Replay
from guard.core.log.view import Fold, seal
from tests.support.events import MOMENT, end_detected, imported, killed, spawned, updated


def replayed(events: list[BaseEvent]) -> Replay:
    replay = Replay()
    for seq, event in enumerate(events, 1):
        replay.feed(LogEntry(event, Position(1, seq * 100, seq, f"{seq:064x}")))
    return replay


def both(events: list[BaseEvent]) -> tuple[AgentRegistry, GlobalRegistry]:
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
    ends: list[BaseEvent] = [updated("completed", agent=name) for name in ("a3", "a1", "a4")]
    task, overall = both([retention, *[spawned(name) for name in names], *ends])
    assert [agent.agent_id for agent in overall.agents] == ["a2", "a1", "a4"]
    assert {agent.agent_id for agent in task.agents} == set(names)
    assert overall.completed_agents == task.completed_count == 3


def test_the_global_registry_agrees_with_the_task_when_a_dropped_agent_returns() -> None:
    retention = RetentionSet(at=MOMENT, id="x", keep_finished=0)
    task, overall = both([retention, spawned(), updated("completed"), spawned(incarnation=2)])
    assert task.by_status == overall.by_status


ENDINGS: dict[str, tuple[str, Any, int]] = {
    "kill": ("terminated", killed, 0),
    "session death": ("completed", end_detected, 1),
}


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("how", ENDINGS)
def test_an_agent_of_any_active_status_is_ended_once(before: AgentStatus, how: str) -> None:
    status, event, completed = ENDINGS[how]
    task, overall = both([spawned(), updated(before), event(), event()])
    was_active = before in ACTIVE
    assert task.active_count == overall.active_agents == 0
    assert task.completed_count == overall.completed_agents == (completed if was_active else 1)
    assert task.agents == overall.agents
    agent = task.agents[0]
    assert agent.status == (status if was_active else before)
    assert agent.late_reports == (1 if was_active else 2)
    assert (agent.terminated_at is not None) == (was_active and how == "kill")
    assert (agent.completed_at is None) == (was_active and how == "kill")
    found_by = {"kill": "kill", "session death": "session_gone"}[how]
    assert agent.detected_by == (found_by if was_active else "self_report")


def test_a_kill_keeps_its_reason_and_a_detected_end_how_it_was_found() -> None:
    by_kill, _ = both([spawned(), killed()])
    found, _ = both([spawned(), end_detected()])
    assert (by_kill.agents[0].reason, by_kill.agents[0].detail) == ("stuck", "asked")
    assert (found.agents[0].reason, found.agents[0].detail) == (None, "tmux session a1 is gone")


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("by_kill", [False, True], ids=["of itself", "killed"])
def test_an_imported_agent_counts_as_what_it_was(status: AgentStatus, by_kill: bool) -> None:
    was_killed = by_kill and status in TERMINAL
    task, overall = both([imported(status, killed=was_killed)])
    assert task.total_spawned == overall.total_agents_spawned == 1
    assert task.active_count == overall.active_agents == int(status in ACTIVE)
    completed = int(status in TERMINAL and not was_killed)
    assert task.completed_count == overall.completed_agents == completed
    assert task.agents == overall.agents
    assert (task.agents[0].detected_by == "import") == (status in TERMINAL)


actions = st.lists(
    st.tuples(
        st.sampled_from(["spawn", "import", "kill", "session death", *STATUSES]),
        st.sampled_from(["a1", "a2", "a3"]),
        st.integers(1, 3),
    ),
    max_size=40,
)
MAKERS: dict[str, Callable[..., Any]] = {
    "spawn": spawned,
    "import": imported,
    "kill": killed,
    "session death": end_detected,
}


def made(action: str, agent: str, incarnation: int) -> Any:
    if action in MAKERS:
        return MAKERS[action](agent=agent, incarnation=incarnation)
    status: Any = action
    return updated(status, agent=agent, incarnation=incarnation)


class Model:
    """What the registries must say, in the fewest words."""

    def __init__(self) -> None:
        self.agents: dict[str, tuple[str, int]] = {}
        self.spawned = self.completed = 0

    def take(self, action: str, agent: str, incarnation: int) -> None:
        if action in ("spawn", "import"):
            self.agents[agent] = ("deployed" if action == "spawn" else "working", incarnation)
            self.spawned += 1
            return
        status, life = self.agents.get(agent, ("", 0))
        if status not in ACTIVE or life != incarnation:
            return
        after = {"kill": "terminated", "session death": "completed"}.get(action, action)
        self.agents[agent] = (after, incarnation)
        self.completed += after in TERMINAL and action != "kill"

    @property
    def active(self) -> set[str]:
        return {name for name, (status, _) in self.agents.items() if status in ACTIVE}


@given(actions, st.integers(0, 3))
def test_registries_equal_a_simple_model_and_each_other(
    steps: list[tuple[str, str, int]], keep: int
) -> None:
    model = Model()
    events: list[BaseEvent] = [RetentionSet(at=MOMENT, id="x", keep_finished=keep)]
    for step in [("spawn", "a0", 1), *steps]:
        events.append(made(*step))
        model.take(*step)
    task, overall = both(events)
    assert task.active_count == overall.active_agents == len(model.active)
    assert task.completed_count == overall.completed_agents == model.completed
    assert task.total_spawned == overall.total_agents_spawned == model.spawned
    assert {a.agent_id: (a.status, a.incarnation) for a in task.agents} == model.agents
    assert {a.agent_id for a in overall.agents if a.status in ACTIVE} == model.active
    assert set(overall.agents) <= set(task.agents)
    assert len(overall.agents) - len(model.active) <= keep
    assert task.by_status == overall.by_status


@given(actions)
def test_what_is_said_of_a_transition_beforehand_is_what_comes(
    steps: list[tuple[str, str, int]],
) -> None:
    events: list[BaseEvent] = [spawned("a0")]
    for step in steps:
        task, overall = both(events)
        before = {agent.agent_id: agent for agent in task.agents}.get(step[1])
        if step[0] in ("spawn", "import") and before and before.status in ACTIVE:
            continue  # Refused by whoever records.
        event = made(*step)
        said = transition(event, "x", before, task.counts(), overall.counts())
        events.append(event)
        task, overall = both(events)
        after = {agent.agent_id: agent for agent in task.agents}.get(step[1])
        is_new = step[0] in ("spawn", "import")
        if said is None:
            assert not is_new
            assert (before and before.status) == (after and after.status)
            continue
        assert after is not None
        assert (said.previous_status, said.status) == (
            None if is_new or before is None else before.status,
            after.status,
        )
        assert (said.active_count, said.completed_count) == (
            task.active_count,
            task.completed_count,
        )
        assert (said.active_agents, said.completed_agents) == (
            overall.active_agents,
            overall.completed_agents,
        )


@given(actions, st.integers(0, 40))
def test_a_fold_restored_half_way_ends_in_the_same_bytes(
    steps: list[tuple[str, str, int]], cut: int
) -> None:
    events: list[BaseEvent] = [spawned("a0"), *(made(*step) for step in steps)]
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
