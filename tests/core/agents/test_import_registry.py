"""Registries from outside: every format that is taken, every assumption that is told, and everything that is refused."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.agents import import_registry as importing
from guard.core.agents.agent import ACTIVE, STATUSES
from guard.core.agents.import_registry import BadRegistry, Imported, ImportedAgent, read_registry
from guard.core.agents.registry import AgentRegistryFold, GlobalRegistryFold
from guard.core.base.text import escape
from guard.core.log.record import Position
from tests.support.events import MOMENT, spawned, updated
from tests.support.registries import imported_agent, seeds

NOW = MOMENT + timedelta(hours=1)
BEGUN = "2026-01-31T12:00:00Z"
ENDED = "2026-01-31T12:30:00Z"
agent = partial(imported_agent, BEGUN)
SEEDS = seeds(BEGUN, "2026-01-31T12:10:00+00:00", ENDED, pid=4711)


def read(document: Any, task_id: str | None = None) -> Imported:
    return read_registry(document, task_id=task_id, source="old.json", now=NOW)


def only(**fields: Any) -> ImportedAgent:
    (found,) = read({"task_id": "T1", "agents": [agent(**fields)]}).agents
    return found


def problems(document: Any, task_id: str | None = None) -> tuple[str, ...]:
    with pytest.raises(BadRegistry) as told:
        read(document, task_id)
    return told.value.problems


def test_the_seeds_format() -> None:
    found = read(SEEDS)
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert found.warnings == ()
    assert found.agents[0] == ImportedAgent(
        task_id="T1",
        agent_id="builder-1",
        agent_type="builder",
        status="running",
        progress=40,
        message="Halfway",
        spawned_at=at,
        updated_at=at + timedelta(minutes=10),
        ended_at=None,
        killed=False,
        tmux_session="agent_builder-1",
        pid=4711,
    )
    ended = at + timedelta(minutes=30)
    assert [(one.ended_at, one.killed) for one in found.agents[1:]] == [
        (ended, False),
        (ended, True),
    ]
    assert found.agents[1].updated_at == ended


@pytest.mark.parametrize("form", ["list", "map"])
def test_a_global_registry(form: str) -> None:
    entries = [agent(id="a1", task_id="T1"), agent(id="a2", task_id="T2", status="blocked")]
    by_name = {one.pop("id"): one for one in [dict(entry) for entry in entries]}
    agents = entries if form == "list" else by_name
    found = read({"agents": agents, "active_agents": 2, "total_agents_spawned": 2})
    assert [(one.task_id, one.agent_id, one.status) for one in found.agents] == [
        ("T1", "a1", "running"),
        ("T2", "a2", "blocked"),
    ]
    assert found.warnings == ()


def test_guards_own_registries() -> None:
    task, overall = AgentRegistryFold("T1"), GlobalRegistryFold("")
    for event in (spawned("a1"), spawned("a2"), updated("completed", "a2", message="Done")):
        task.apply(event)
        overall.apply(event)
    for fold in (task, overall):
        fold.reached = Position(1, 100, 3, "0" * 64)
        document = json.loads(fold.document().model_dump_json())
        found = read({**document, "a key of a later version": 1})
        assert found.warnings == ()
        assert [(one.agent_id, one.status, one.message) for one in found.agents] == [
            ("a1", "deployed", ""),
            ("a2", "completed", "Done"),
        ]
        kept = fold.document().agents
        assert [one.ended_at for one in found.agents] == [one.completed_at for one in kept]
        assert [one.spawned_at for one in found.agents] == [one.spawned_at for one in kept]


@pytest.mark.parametrize("status", STATUSES)
def test_every_status(status: str) -> None:
    ended = {} if status in ACTIVE else {"completed_at": ENDED}
    found = only(status=status, **ended)
    assert found.status == status
    assert (found.ended_at is None) == (status in ACTIVE)


@pytest.mark.parametrize(
    ("fields", "killed"),
    [
        ({"status": "terminated", "terminated_at": ENDED}, True),
        ({"status": "terminated", "completed_at": ENDED, "kill_reason": "stuck"}, True),
        ({"status": "terminated", "completed_at": ENDED}, False),
        ({"status": "completed", "completed_at": ENDED, "reason": "done"}, False),
    ],
)
def test_who_was_killed(fields: dict[str, Any], killed: bool) -> None:
    assert only(**fields).killed == killed


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-01-31T12:00:00Z", MOMENT),
        ("2026-01-31T13:00:00+01:00", MOMENT),
        ("2026-01-31T12:00:00", MOMENT),
        ("2026-01-31 12:00:00.250", MOMENT + timedelta(milliseconds=250)),
        (int(MOMENT.timestamp()), MOMENT),
        (MOMENT.timestamp() + 0.5, MOMENT + timedelta(seconds=0.5)),
    ],
)
def test_times(value: Any, moment: datetime) -> None:
    assert only(started_at=value).spawned_at == moment


@pytest.mark.parametrize("name", ["spawned_at", "started_at", "created_at"])
def test_names_of_the_beginning(name: str) -> None:
    assert only(**{"started_at": ..., name: BEGUN}).spawned_at == MOMENT


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"started_at": "2026-01-31T12:00:00"}, "agents[0]: times without a zone are taken as UTC"),
        ({"started_at": ...}, "agents[0]: has no time of its beginning"),
        ({"started_at": None}, "agents[0]: has no time of its beginning"),
        ({"status": "failed"}, "agents[0]: has no time of its end"),
        ({"started_at": "2026-02-01T12:00:00Z"}, "agents[0]: has times in the future"),
    ],
)
def test_what_is_assumed_is_told(fields: dict[str, Any], words: str) -> None:
    (warning,) = read({"task_id": "T1", "agents": [agent(**fields)]}).warnings
    assert warning.startswith(f"old.json: {words}")


def test_what_is_taken_for_missing_times() -> None:
    assert only(started_at=...).spawned_at == NOW
    known = only(started_at=..., status="completed", completed_at=ENDED)
    assert known.spawned_at == known.ended_at == MOMENT + timedelta(minutes=30)
    assert only(status="failed").ended_at == NOW
    assert only(status="failed", last_update=ENDED).ended_at == MOMENT + timedelta(minutes=30)
    assert only(started_at="2099-01-01T00:00:00Z").spawned_at == NOW
    assert only(last_update="2099-01-01T00:00:00Z").updated_at == NOW


def test_many_assumptions_are_one_warning() -> None:
    agents = [agent(id=f"a{number}", started_at="2026-01-31T12:00:00") for number in range(9)]
    (warning,) = read({"task_id": "T1", "agents": agents}).warnings
    assert "agents[0], agents[1], agents[2] and 6 others: times without a zone" in warning


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"active_count": 4}, "active_count is 4, and its agents make 1"),
        ({"completed_count": 2}, "completed_count is 2, and its agents make 1"),
        ({"total_spawned": 7}, "total_spawned is 7, and its agents make 3"),
    ],
)
def test_counts_that_disagree_are_told(counts: dict[str, int], words: str) -> None:
    assert read({**SEEDS, **counts}).warnings == (f"old.json: {words}",)


def test_the_task_that_is_named() -> None:
    found = read({**SEEDS, "task_id": "TASK.20240101"}, "T9")
    assert {one.task_id for one in found.agents} == {"T9"}
    assert found.warnings == ('old.json: the task "TASK.20240101" is taken as "T9"',)
    assert read({"agents": [agent()]}, "T9").agents[0].task_id == "T9"
    assert read({"agents": [agent(task_id="T2")]}, "T9").agents[0].task_id == "T2"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"id": "../x"}, 'agents[0].id: "../x" cannot be an id'),
        ({"id": "registry"}, 'agents[0].id: "registry" cannot be an id'),
        ({"id": 7}, "agents[0].id: 7 is not text"),
        ({"id": ...}, "agents[0]: has no agent_id"),
        ({"agent_id": "a2"}, 'agents[0].id: "a1" is not its agent_id, "a2"'),
        ({"task_id": "T2"}, 'agents[0].task_id: "T2" is not the task of the registry, "T1"'),
        ({"status": "done"}, 'agents[0].status: "done" is not one of deployed'),
        ({"status": ...}, "agents[0].status: null is not one of"),
        ({"status": []}, "agents[0].status: a list is not one of"),
        ({"progress": 101}, "agents[0].progress: 101 is not a whole number from 0 to 100"),
        ({"progress": -1}, "agents[0].progress: -1 is not"),
        ({"progress": 0.5}, "agents[0].progress: 0.5 is not"),
        ({"progress": True}, "agents[0].progress: true is not"),
        ({"progress": "50%"}, 'agents[0].progress: "50%" is not'),
        ({"progress": 10**5000}, "agents[0].progress: a huge number is not"),
        ({"pid": 0}, "agents[0].pid: 0 is not"),
        ({"type": "x" * 513}, "has more than 512 characters"),
        ({"type": "a\nb"}, "has characters that are no text"),
        ({"type": {}}, "agents[0].type: an object is not text"),
        ({"message": "x" * 65537}, "has more than 65536 characters"),
        ({"message": "\x1b[2J"}, "has characters that are no text"),
        ({"message": "\ud800"}, "has characters that are no text"),
        ({"tmux_session": 3}, "agents[0].tmux_session: 3 is not text"),
        ({"started_at": "yesterday"}, 'agents[0].started_at: "yesterday" is not a time'),
        ({"started_at": 1769860800000}, "agents[0].started_at: 1769860800000 is not a time"),
        ({"started_at": "0001-01-01T00:00:00Z"}, "is not a time"),
        ({"started_at": "9999-12-31T23:59:59-14:00"}, "is not a time"),
        ({"started_at": float("nan")}, "is not a time"),
        ({"started_at": True}, "is not a time"),
        ({"completed_at": ENDED}, "is an end, and the status is running"),
        ({"last_update": "2026-01-31T11:00:00Z"}, "is before its beginning"),
        (
            {"status": "failed", "completed_at": "2026-01-31T11:00:00Z"},
            'agents[0].completed_at: "2026-01-31T11:00:00Z" is before its beginning',
        ),
    ],
)
def test_what_is_wrong_with_an_agent(fields: dict[str, Any], problem: str) -> None:
    (told,) = problems({"task_id": "T1", "agents": [agent(**fields)]})
    assert problem in told
    assert escape(told) == told
    assert len(told) < 300


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "a registry is an object, and this is a list"),
        (None, "a registry is an object, and this is null"),
        ({}, "agents: null is neither a list"),
        ({"agents": 3}, "agents: 3 is neither a list"),
        ({"agents": [3]}, "agents[0]: 3 is not an agent"),
        ({"agents": [agent()]}, "agents[0]: names no task"),
        ({"agents": [agent(task_id="a/b")]}, 'agents[0].task_id: "a/b" cannot be an id'),
        ({"agents": {"a1": agent(id="a2", task_id="T1")}}, 'agents["a1"]: its id is "a2"'),
        ({"agents": [], "task_id": "a/b"}, 'task_id: "a/b" cannot be an id'),
        ({"agents": [], "active_count": "2"}, 'active_count: "2" is not a whole number'),
        (
            {"task_id": "T1", "agents": [agent(), agent(status="blocked")]},
            "agent a1 of task T1: is listed 2 times",
        ),
    ],
)
def test_what_is_wrong_with_a_registry(document: Any, problem: str) -> None:
    (told,) = problems(document)
    assert problem in told


def test_a_named_task_that_cannot_be_one() -> None:
    assert '"a/b" cannot be an id' in problems(SEEDS, "a/b")[0]


def test_problems_are_told_together_and_bounded() -> None:
    agents = [agent(id=f"a{number}", progress=200) for number in range(50)]
    told = problems({"task_id": "T1", "agents": agents})
    assert len(told) == 21
    assert told[20] == "and 30 more"


def test_too_many_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MOST_AGENTS", 2)
    assert problems(SEEDS) == ("agents: there are more than 2 agents",)


def test_one_bad_agent_refuses_all() -> None:
    agents = [agent(id="good"), agent(id="bad", status="?")]
    assert len(problems({"task_id": "T1", "agents": agents})) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = sorted(
    {
        "id",
        "agent_id",
        "type",
        "status",
        "started_at",
        "spawned_at",
        "completed_at",
        "terminated_at",
    }
    | {"last_update", "progress", "message", "pid", "tmux_session", "task_id", "kill_reason"}
)
VALUES = JSON | st.sampled_from(["a1", "T1", BEGUN, ENDED, 50, 1769860800, *STATUSES])
AGENTS = st.dictionaries(st.sampled_from(NAMES), VALUES) | JSON
REGISTRIES = st.fixed_dictionaries(
    {
        "agents": st.lists(AGENTS, max_size=4)
        | st.dictionaries(st.text(), AGENTS, max_size=3)
        | JSON
    },
    optional={"task_id": VALUES, "active_count": VALUES, "total_spawned": VALUES},
)


@given(JSON | REGISTRIES, st.none() | st.just("T1") | st.text(max_size=5))
def test_any_document_is_taken_or_refused(document: Any, task_id: str | None) -> None:
    agents, told = taken_or_told(document, task_id)
    assert all(escape(problem) == problem for problem in told)
    assert all(one.spawned_at <= one.updated_at <= NOW for one in agents)
    assert all((one.ended_at is None) == (one.status in ACTIVE) for one in agents)


def taken_or_told(
    document: Any, task_id: str | None
) -> tuple[tuple[ImportedAgent, ...], tuple[str, ...]]:
    try:
        return read(document, task_id).agents, ()
    except BadRegistry as error:
        return (), error.problems


@given(
    st.sampled_from(STATUSES),
    st.integers(0, 29 * 86400),
    st.integers(0, 86400),
)
def test_what_is_written_is_read(status: Any, offset: int, seconds: int) -> None:
    begun = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=offset)
    ended = None if status in ACTIVE else begun + timedelta(seconds=seconds)
    entry = agent(
        status=status,
        started_at=begun.isoformat(),
        completed_at=ended.isoformat() if ended else None,
        last_update=begun.isoformat(),
    )
    (found,) = read({"task_id": "T1", "agents": [entry]}).agents
    assert replace(found, spawned_at=begun, ended_at=ended, status=status) == found
