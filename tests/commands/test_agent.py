"""`guard agent`: spawn, update, list, their counts and their refusals."""

import json
from pathlib import Path
from typing import Any

import pytest

from guard.agents import registry
from guard.context.invocation import Invocation
from guard.core.agents.agent import STATUSES, TERMINAL
from guard.schemas.validate import validator
from guard.store.file_store import FileStore
from tests.support import NOW, Result, run
from tests.support.events import MOMENT

IDS = ("--task", "T1", "--agent", "a1")


@pytest.fixture(autouse=True)
def chosen(kept_in: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace in the environment, and a clock that stands."""
    monkeypatch.setenv("GUARD_WORKSPACE", kept_in)
    monkeypatch.setenv("GUARD_NOW", NOW)


def report(*words: str) -> Any:
    result = run("agent", *words, "--format", "json")
    assert (result.code, result.err) == (0, "")
    kind = result.json["schema"].split("/")[1]
    assert list(validator(kind).iter_errors(result.json)) == []
    return result.json


def refused(result: Result, code: int = 1) -> str:
    assert (result.code, result.out) == (code, "")
    first, hint = result.err.splitlines()
    assert hint.startswith("hint: ")
    return first


def counts(document: Any) -> tuple[int, ...]:
    names = ("active_count", "completed_count", "total_spawned", "active_agents")
    return tuple(document[name] for name in names)


def test_a_life_from_spawn_to_a_late_report() -> None:
    spawned = report("spawn", *IDS, "--type", "builder", "--message", "go")
    assert (spawned["previous_status"], spawned["recorded_as"]) == (None, "spawned")
    assert counts(spawned) == (1, 0, 1, 1)
    agent = spawned["agent"]
    assert (agent["agent_type"], agent["message"], agent["spawned_at"]) == ("builder", "go", NOW)

    working = report("update", *IDS, "--status", "working", "--progress", "40")
    assert (working["previous_status"], working["recorded_as"]) == ("deployed", "updated")
    assert (working["agent"]["status"], working["agent"]["progress"]) == ("working", 40)
    assert counts(working) == (1, 0, 1, 1)

    ended = report("update", *IDS, "--status", "completed", "--message", "done")
    assert (ended["agent"]["completed_at"], ended["agent"]["progress"]) == (NOW, 40)
    assert counts(ended) == (0, 1, 1, 0)

    late = report("update", *IDS, "--status", "failed", "--message", "oh no")
    assert late["recorded_as"] == "late"
    assert (late["agent"]["status"], late["agent"]["message"]) == ("completed", "done")
    assert late["agent"]["late_reports"] == 1
    assert counts(late) == (0, 1, 1, 0)

    again = report("spawn", *IDS)
    assert (again["agent"]["incarnation"], again["recorded_as"]) == (2, "spawned")
    assert counts(again) == (1, 1, 2, 1)


def test_sentences_for_people(store: FileStore) -> None:
    result = run("agent", "spawn", *IDS)
    assert (result.out, result.err) == (
        "T1/a1: deployed; task: 1 active, 0 completed, 1 spawned; all tasks: 1 active\n",
        "",
    )
    result = run("-v", "agent", "update", *IDS, "--status", "failed")
    assert result.err == (
        "guard: agent a1 of task T1: deployed to failed; active in the task 0, in all tasks 0\n"
    )
    result = run("agent", "update", *IDS, "--status", "working")
    assert "(the report came after its end: kept, counts unchanged)" in result.out


def test_what_cannot_be_is_refused_and_recorded_nowhere(store: FileStore, workspace: Path) -> None:
    said = refused(run("agent", "update", *IDS, "--status", "working"))
    assert said == "guard: task T1 has no agent a1"
    registry.spawn(store, MOMENT, task_id="T1", agent_id="a1")
    before = (workspace / "events.jsonl").read_bytes()
    said = refused(run("agent", "spawn", *IDS))
    assert said == "guard: agent a1 of task T1 is active already (deployed)"
    said = refused(run("agent", "update", "--task", "T2", "--agent", "a1", "--status", "working"))
    assert said == "guard: task T2 has no agent a1"
    assert (workspace / "events.jsonl").read_bytes() == before


BAD_IDS = {
    "a path": "../x",
    "a dot": "a.lock",
    "nothing": "",
    "a hyphen first": "_x",
    "129 letters": "x" * 129,
    "a newline at its end": "x\n",
    "another alphabet": "é",
    "the name of guard's own folder": "registry",
    "the same in capitals": "REGISTRY",
}


@pytest.mark.parametrize("text", BAD_IDS.values(), ids=BAD_IDS)
def test_an_id_that_cannot_be_a_path_is_wrong_usage(text: str, workspace: Path) -> None:
    said = refused(run("agent", "spawn", "--task", text, "--agent", "a1"), code=2)
    assert said.endswith("cannot be a task id")
    assert not list(workspace.glob("*/AGENT_REGISTRY.json"))


@pytest.mark.parametrize(
    "words",
    [
        ["spawn", *IDS, "--type", "x" * 513],
        ["update", *IDS, "--status", "asleep"],
        ["update", *IDS, "--status", "working", "--progress", "101"],
        ["update", *IDS, "--status", "working", "--progress", "1.5"],
        ["list", "--task", "../x"],
    ],
    ids=[
        "a type too long",
        "a status that is none",
        "more than 100 percent",
        "a fraction",
        "a path as a task",
    ],
)
def test_a_value_that_cannot_be_kept_is_wrong_usage(words: list[str], workspace: Path) -> None:
    refused(run("agent", *words), code=2)
    assert not (workspace / "events.jsonl").exists()


def test_a_long_message_is_kept_whole(workspace: Path) -> None:
    text = "x" * 65000
    assert report("spawn", *IDS, "--message", text)["agent"]["message"] == text
    assert report("list")["agents"][0]["message"] == text


@pytest.mark.parametrize("text", ["x" * 65001, "so \udcff"], ids=["too long", "no text"])
def test_a_report_is_not_lost_for_its_words(text: str) -> None:
    report("spawn", *IDS)
    result = run(
        "agent", "update", *IDS, "--status", "failed", "--message", text, "--format", "json"
    )
    assert result.code == 0
    assert "the rest is recorded" in result.err
    assert result.json["agent"]["status"] == "failed"
    assert result.json["agent"]["message"][:2] == text[:2]


def test_a_report_without_a_message_leaves_the_last_one() -> None:
    report("spawn", *IDS, "--message", "go")
    assert report("update", *IDS, "--status", "working")["agent"]["message"] == "go"


def test_only_changes_of_status_are_told_as_such() -> None:
    run("agent", "spawn", *IDS)
    assert run("-v", "agent", "finding", *IDS, "the token is never refreshed").err == ""
    run("agent", "update", *IDS, "--status", "failed")
    assert run("-v", "agent", "update", *IDS, "--status", "working").err == ""


@pytest.mark.parametrize("number", ["2", "99"])
def test_an_incarnation_that_never_was_is_wrong_usage(number: str) -> None:
    report("spawn", *IDS)
    words = ("--status", "failed", "--incarnation", number)
    said = refused(run("agent", "update", *IDS, *words), code=2)
    assert "none with the number" in said


def test_the_environment_names_a_life_of_one_agent_only() -> None:
    report("spawn", *IDS)
    report("spawn", "--task", "T1", "--agent", "a2")
    report("update", "--task", "T1", "--agent", "a2", "--status", "failed")
    report("spawn", "--task", "T1", "--agent", "a2")
    own = {
        "GUARD_TASK_ID": "T1",
        "GUARD_AGENT_ID": "a1",
        "GUARD_AGENT_INCARNATION": "1",
    }
    said = run("agent", "update", "--agent", "a2", "--status", "working", env=own)
    assert "T1/a2: working;" in said.out
    assert "T1/a1: working;" in run("agent", "update", "--status", "working", env=own).out


@pytest.fixture
def three(chosen: None) -> None:
    """An agent that works, one that failed, and one of another task that completed."""
    store = Invocation().writable_store
    for task, name, status in (
        ("T1", "a1", "working"),
        ("T1", "a2", "failed"),
        ("T2", "b1", "completed"),
    ):
        registry.spawn(store, MOMENT, task_id=task, agent_id=name)
        registry.update(
            store,
            MOMENT,
            registry.AgentUpdate(
                task,
                name,
                next(known for known in STATUSES if known == status),
                message=f"I am {status}",
                progress=50,
            ),
        )


@pytest.mark.usefixtures("three")
def test_the_list_of_all_tasks_and_of_one() -> None:
    everything = report("list")
    assert [(a["task_id"], a["agent_id"]) for a in everything["agents"]] == [
        ("T1", "a1"),
        ("T1", "a2"),
        ("T2", "b1"),
    ]
    assert (everything["active"], everything["completed"], everything["spawned"]) == (1, 2, 3)
    one = report("list", "--task", "T2")
    assert [agent["agent_id"] for agent in one["agents"]] == ["b1"]
    assert (one["task_id"], one["active"], one["completed"], one["spawned"]) == ("T2", 0, 1, 1)
    counts, header, *rows = run("agent", "list").out.splitlines()
    assert counts == "1 active, 1 completed, 1 failed, 3 spawned"
    assert header.startswith("task  agent  status     seen     done  confidence  ended by")
    assert [row.split()[:3] for row in rows] == [
        ["T1", "a1", "working"],
        ["T1", "a2", "failed"],
        ["T2", "b1", "completed"],
    ]
    assert rows[0].split()[3:] == ["unknown", "50%", "I", "am", "working"]


def test_a_list_of_nobody() -> None:
    assert run("agent", "list").out == "0 active, 0 completed, 0 spawned\n"
    assert report("list", "--task", "T9")["agents"] == []


@pytest.mark.usefixtures("three")
def test_all_lists_also_those_that_ended_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_REGISTRY__KEEP_FINISHED", "0")
    report("spawn", "--task", "T3", "--agent", "c1")
    names = [agent["agent_id"] for agent in report("list")["agents"]]
    assert sorted(names) == ["a1", "c1"]
    names = [agent["agent_id"] for agent in report("list", "--all")["agents"]]
    assert sorted(names) == ["a1", "a2", "b1", "c1"]


@pytest.mark.usefixtures("three")
def test_both_registries_on_disk_say_what_the_commands_say(workspace: Path) -> None:
    ended = report("update", *IDS, "--status", "terminated")
    task = json.loads((workspace / "T1" / "AGENT_REGISTRY.json").read_bytes())
    overall = json.loads((workspace / "registry" / "GLOBAL_REGISTRY.json").read_bytes())
    assert counts({**task, **overall}) == counts(ended) == (0, 2, 2, 0)
    assert sum(task["by_status"][status] for status in TERMINAL) == 2
    assert ended["agent"] in task["agents"]
    assert ended["agent"] in overall["agents"]
