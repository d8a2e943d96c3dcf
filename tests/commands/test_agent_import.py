"""`guard agent import`: registries of other tools, taken over whole or not at all."""

import json
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from guard.agents import registry as agents
from guard.agents.import_registry import MOST_BYTES
from guard.core.agents.import_registry import MOST_AGENTS
from guard.schemas.validate import validator
from guard.store.file_store import FileStore
from tests.support import NOW, Result, run, write
from tests.support.events import MOMENT
from tests.support.registries import imported_agent, seeds

BEGUN, HALFWAY, ENDED = "2026-01-31T09:00:00Z", "2026-01-31T10:00:00Z", "2026-01-31T11:00:00Z"
agent = partial(imported_agent, BEGUN, type=...)
SEEDS = seeds(BEGUN, HALFWAY, ENDED)
OVERALL: dict[str, Any] = {
    "agents": {
        "a1": {"task_id": "T1", "status": "working", "started_at": BEGUN},
        "b1": {"task_id": "T2", "status": "failed", "started_at": BEGUN, "completed_at": ENDED},
        "b2": {"task_id": "T2", "status": "blocked", "started_at": BEGUN},
    },
    "active_agents": 2,
    "total_agents_spawned": 3,
}


@pytest.fixture(autouse=True)
def chosen(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace in the environment, a clock that stands, and no repository around."""
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    monkeypatch.setenv("GUARD_NOW", NOW)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "old.json"


def holding(*entries: Any) -> dict[str, Any]:
    return {"task_id": "T1", "agents": list(entries)}


def imports(file: Path, document: Any, *words: str) -> Result:
    return run("agent", "import", write(file, json.dumps(document)), *words, "--format", "json")


def taken(file: Path, document: Any, *words: str) -> Any:
    """The report on a registry that is taken without a word of warning."""
    result = imports(file, document, *words)
    assert (result.code, result.err) == (0, "")
    assert list(validator("agent-import").iter_errors(result.json)) == []
    return result.json


def names(entries: Any) -> list[str]:
    return [f"{one['task_id']}/{one['agent_id']}" for one in entries]


def registry(workspace: Path, task: str = "T1") -> Any:
    return json.loads((workspace / task / "AGENT_REGISTRY.json").read_bytes())


def overall(workspace: Path) -> Any:
    return json.loads((workspace / "registry" / "GLOBAL_REGISTRY.json").read_bytes())


def events(workspace: Path, kind: str) -> list[Any]:
    lines = (workspace / "events.jsonl").read_bytes().splitlines()
    return [event for event in map(json.loads, lines) if event["type"] == kind]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, but for the lock, which names its last holder; nothing if there is no folder."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_the_seeds_format(file: Path, workspace: Path) -> None:
    report = taken(file, SEEDS)
    assert names(report["imported"]) == ["T1/builder-1", "T1/fixer-1", "T1/old-1"]
    assert (report["source"], report["known"], report["warnings"]) == (str(file), [], [])
    found = registry(workspace)
    counts = ("active_count", "completed_count", "total_spawned")
    assert [found[name] for name in counts] == [SEEDS[name] for name in counts]
    builder, fixer, old = found["agents"]
    assert (builder["agent_type"], builder["status"], builder["progress"]) == (
        "builder",
        "running",
        40,
    )
    assert (builder["spawned_at"], builder["updated_at"], builder["message"]) == (
        BEGUN,
        HALFWAY,
        "Halfway",
    )
    assert (builder["tmux_session"], builder["detected_by"]) == ("agent_builder-1", None)
    assert (fixer["completed_at"], fixer["terminated_at"]) == (ENDED, None)
    assert (old["completed_at"], old["terminated_at"]) == (None, ENDED)
    assert [(one["detected_by"], one["detail"]) for one in (fixer, old)] == [
        ("import", str(file)),
        ("import", str(file)),
    ]
    assert FileStore(workspace).verify().ok


def test_a_global_registry(file: Path, workspace: Path) -> None:
    assert names(taken(file, OVERALL)["imported"]) == ["T1/a1", "T2/b1", "T2/b2"]
    assert overall(workspace)["active_agents"] == 2
    assert overall(workspace)["total_agents_spawned"] == 3
    tasks = {task: registry(workspace, task) for task in ("T1", "T2")}
    assert {task: (one["active_count"], one["completed_count"]) for task, one in tasks.items()} == {
        "T1": (1, 0),
        "T2": (1, 1),
    }


def test_people_read_what_was_imported(file: Path) -> None:
    words = ("agent", "import", write(file, json.dumps(OVERALL)))
    assert run(*words).out == "3 agents imported, 0 known before\n  T1/a1\n  T2/b1\n  T2/b2\n"
    assert run(*words).out == "0 agents imported, 3 known before\n"


@pytest.mark.parametrize("name", ["T1/AGENT_REGISTRY.json", "registry/GLOBAL_REGISTRY.json"])
def test_guards_own_file_from_another_workspace(name: str, workspace: Path, tmp_path: Path) -> None:
    there = {"GUARD_WORKSPACE": str(tmp_path / "there")}
    for words in (
        ("spawn", "--task", "T1", "--agent", "a1", "--type", "builder", "--message", "go"),
        ("spawn", "--task", "T1", "--agent", "a2", "--type", "fixer"),
        ("spawn", "--task", "T1", "--agent", "a3"),
        ("update", "--task", "T1", "--agent", "a1", "--status", "blocked", "--progress", "30"),
        ("update", "--task", "T1", "--agent", "a2", "--status", "completed", "--message", "done"),
        ("kill", "--task", "T1", "--agent", "a3", "--reason", "stuck"),
    ):
        assert run("agent", *words, env=there).code == 0
    result = run("agent", "import", tmp_path / "there" / name, "--format", "json")
    assert (result.code, result.err, result.json["warnings"]) == (0, "", [])
    before, after = registry(tmp_path / "there"), registry(workspace)
    for key in ("active_count", "completed_count", "total_spawned", "by_status"):
        assert after[key] == before[key]
    kept = ("agent_id", "agent_type", "status", "progress", "message", "spawned_at", "completed_at")
    assert sorted([one[key] for key in kept] for one in after["agents"]) == sorted(
        [one[key] for key in kept] for one in before["agents"]
    )
    assert overall(workspace)["active_agents"] == overall(tmp_path / "there")["active_agents"] == 1


def test_a_second_import_changes_nothing(file: Path, workspace: Path) -> None:
    taken(file, SEEDS)
    before = contents(workspace)
    again = taken(file, SEEDS)
    assert again["imported"] == []
    assert names(again["known"]) == ["T1/builder-1", "T1/fixer-1", "T1/old-1"]
    assert contents(workspace) == before


def test_agents_that_are_known_are_left_as_they_are(file: Path, workspace: Path) -> None:
    run("agent", "spawn", "--task", "T1", "--agent", "fixer-1", "--message", "mine")
    report = taken(file, SEEDS)
    assert names(report["imported"]) == ["T1/builder-1", "T1/old-1"]
    assert names(report["known"]) == ["T1/fixer-1"]
    (mine,) = [one for one in registry(workspace)["agents"] if one["agent_id"] == "fixer-1"]
    assert (mine["status"], mine["message"]) == ("deployed", "mine")
    assert registry(workspace)["active_count"] == overall(workspace)["active_agents"] == 2


def test_the_same_name_in_another_task_is_another_agent(file: Path, workspace: Path) -> None:
    run("agent", "spawn", "--task", "T0", "--agent", "fixer-1")
    assert len(taken(file, SEEDS)["imported"]) == 3
    assert overall(workspace)["total_agents_spawned"] == 4


def test_a_task_can_be_given_to_agents_that_name_none(file: Path, workspace: Path) -> None:
    document = {"agents": [agent()]}
    result = imports(file, document)
    assert (result.code, result.out) == (1, "")
    assert "names no task, and neither does the registry" in result.err
    assert names(taken(file, document, "--task", "T7")["imported"]) == ["T7/a1"]
    assert registry(workspace, "T7")["active_count"] == 1


def test_a_task_that_is_given_wins_over_that_of_the_registry(file: Path, workspace: Path) -> None:
    result = imports(file, SEEDS, "--task", "T7")
    assert result.code == 0
    assert names(result.json["imported"])[0] == "T7/builder-1"
    assert result.json["warnings"] == [f'{file}: the task "T1" is taken as "T7"']
    assert not (workspace / "T1").exists()


def test_a_task_that_cannot_be_is_wrong_usage(file: Path, workspace: Path) -> None:
    assert imports(file, SEEDS, "--task", "../x").code == 2
    assert not workspace.exists()


BAD: dict[str, tuple[Any, str]] = {
    "a list": ([agent()], "a registry is an object, and this is a list"),
    "no agents": ({"task_id": "T1"}, "agents: null is neither a list of agents nor a map of them"),
    "an agent that is text": (holding(agent(), "a2"), 'agents[1]: "a2" is not an agent'),
    "no id": (holding(agent(), {"status": "running"}), "agents[1]: has no agent_id"),
    "an id that is a path": (
        holding(agent(), agent(id="../../etc")),
        'agents[1].id: "../../etc" cannot be an id',
    ),
    "a task that is a path": (
        {**holding(agent()), "task_id": "../T1"},
        'task_id: "../T1" cannot be an id',
    ),
    "guard's own folder as a task": (
        {**holding(agent()), "task_id": "registry"},
        'task_id: "registry" cannot be an id',
    ),
    "a status that is none": (
        holding(agent(), agent(id="a2", status="asleep")),
        'agents[1].status: "asleep" is not one of deployed',
    ),
    "the same agent twice": (
        holding(agent(), agent()),
        "agent a1 of task T1: is listed 2 times",
    ),
    "an end of an active agent": (
        holding(agent(), agent(id="a2", completed_at=ENDED)),
        "is an end, and the status is running",
    ),
    "an end before the beginning": (
        holding(agent(status="failed", started_at=ENDED, completed_at=BEGUN)),
        "is before its beginning",
    ),
    "a time that is none": (holding(agent(started_at="yesterday")), "is not a time"),
    "too much progress": (
        holding(agent(progress=101)),
        "agents[0].progress: 101 is not a whole number from 0 to 100",
    ),
    "a process that cannot be": (holding(agent(pid=-1)), "agents[0].pid: -1 is not a whole number"),
    "a number without end": (holding(agent(pid=10**30)), "agents[0].pid: a huge number is not"),
    "a message too long": (
        holding(agent(last_message="x" * 65537)),
        "has more than 65536 characters",
    ),
    "a terminal's orders": (
        holding(agent(tmux_session="\x1b[2J")),
        "has characters that are no text",
    ),
}


@pytest.mark.parametrize(("document", "said"), BAD.values(), ids=BAD)
def test_a_bad_file_is_refused_whole(
    document: Any, said: str, file: Path, store: FileStore, workspace: Path
) -> None:
    agents.spawn(store, MOMENT, task_id="T0", agent_id="z")
    before = contents(workspace)
    result = imports(file, document)
    assert (result.code, result.out) == (1, "")
    problem, hint = result.err.splitlines()
    assert problem.startswith(f"guard: {file} cannot be imported: ")
    assert said in problem
    assert hint == "hint: fix the file and import it again; nothing was recorded"
    assert contents(workspace) == before


def test_a_bad_file_makes_no_workspace(file: Path, workspace: Path) -> None:
    assert imports(file, holding(agent(), agent())).code == 1
    assert not workspace.exists()


def test_everything_that_is_wrong_is_named_at_once_up_to_a_limit(file: Path) -> None:
    result = imports(file, holding(*(agent(id=f"a{n}", status="asleep") for n in range(30))))
    assert result.code == 1
    problem = result.err.splitlines()[0]
    assert problem.count("is not one of deployed") == 20
    assert problem.endswith("; and 10 more")


def test_counts_that_do_not_fit_are_named(file: Path, workspace: Path) -> None:
    told = {"active_count": 7, "completed_count": 0, "total_spawned": 3}
    result = imports(file, {**SEEDS, **told})
    assert result.code == 0
    assert result.json["warnings"] == [
        f"{file}: active_count is 7, and its agents make 1",
        f"{file}: completed_count is 0, and its agents make 1",
    ]
    assert result.err.splitlines() == [
        f"guard: warning: {warning}" for warning in result.json["warnings"]
    ]
    assert (registry(workspace)["active_count"], registry(workspace)["completed_count"]) == (1, 1)


def test_assumptions_about_times_are_named(file: Path, workspace: Path) -> None:
    ended = agent(id="a2", status="completed", started_at="2026-01-31T09:00:00")
    result = imports(file, holding({"id": "a1", "status": "running"}, ended))
    assert result.code == 0
    assert [warning.removeprefix(f"{file}: ") for warning in result.json["warnings"]] == [
        "agents[0]: has no time of its beginning: the earliest known is taken",
        "agents[1]: times without a zone are taken as UTC",
        "agents[1]: has no time of its end: the latest known is taken",
    ]
    first, second = registry(workspace)["agents"]
    assert (first["spawned_at"], second["spawned_at"], second["completed_at"]) == (NOW, BEGUN, NOW)


def test_every_agent_is_a_transition_with_running_counts(file: Path, workspace: Path) -> None:
    run("agent", "spawn", "--task", "T0", "--agent", "z")
    taken(file, OVERALL)
    moved = events(workspace, "agent_transitioned")[1:]
    counts = ("active_count", "completed_count", "active_agents", "completed_agents")
    assert [
        (one["agent_id"], one["previous_status"], one["status"], *(one[name] for name in counts))
        for one in moved
    ] == [
        ("a1", None, "working", 1, 0, 2, 0),
        ("b1", None, "failed", 0, 1, 2, 1),
        ("b2", None, "blocked", 1, 1, 3, 1),
    ]
    last, task, all_tasks = moved[-1], registry(workspace, "T2"), overall(workspace)
    assert [last[name] for name in counts[:2]] == [task[name] for name in counts[:2]]
    assert [last[name] for name in counts[2:]] == [all_tasks[name] for name in counts[2:]]


def test_a_kill_elsewhere_is_not_counted_as_completed(file: Path, workspace: Path) -> None:
    taken(file, holding(SEEDS["agents"][2]))
    assert (registry(workspace)["active_count"], registry(workspace)["completed_count"]) == (0, 0)
    assert overall(workspace)["completed_agents"] == 0
    assert events(workspace, "agent_transitioned")[0]["completed_agents"] == 0


def test_thousands_of_agents_are_one_change(file: Path, workspace: Path) -> None:
    crowd = [agent(id=f"a{n}", status=("running", "failed")[n % 2]) for n in range(3000)]
    for one in crowd[1::2]:
        one["completed_at"] = ENDED
    assert len(taken(file, holding(*crowd))["imported"]) == 3000
    found, all_tasks = registry(workspace), overall(workspace)
    assert (found["active_count"], found["completed_count"], len(found["agents"])) == (
        1500,
        1500,
        3000,
    )
    assert (all_tasks["active_agents"], all_tasks["completed_agents"]) == (1500, 1500)
    assert len(all_tasks["agents"]) == 1500 + all_tasks["keep_finished"]
    assert FileStore(workspace).verify().ok


def too_many(path: Path) -> None:
    write(path, json.dumps(holding(*([{}] * (MOST_AGENTS + 1)))))


def too_large(path: Path) -> None:
    with path.open("wb") as opened:
        opened.truncate(MOST_BYTES + 1)


def a_link(path: Path) -> None:
    path.symlink_to(write(path.with_name("target.json"), json.dumps(SEEDS)))


def named_by_a_terminals_orders(path: Path) -> None:
    write(path, json.dumps({"task_id": "T1", "agents": {"\x1b[2J\r\x07": {"status": "\x1b]0;x"}}}))


HOSTILE: dict[str, tuple[Callable[[Path], Any], int, str]] = {
    "too many agents": (too_many, 1, "there are more than 100000 agents"),
    "a file too large": (too_large, 2, "it has more than 67108864 bytes"),
    "names that are orders to a terminal": (
        named_by_a_terminals_orders,
        1,
        "has characters that are no text",
    ),
    "nothing there": (lambda _: None, 2, "No such file or directory"),
    "a symbolic link": (a_link, 2, "it is a symbolic link"),
    "a link to itself": (lambda path: path.symlink_to(path), 2, "it is a symbolic link"),
    "a folder": (Path.mkdir, 2, "it is not a regular file"),
    "a pipe that nobody writes to": (os.mkfifo, 2, "it is not a regular file"),
    "an empty file": (lambda path: write(path, ""), 5, "is not JSON"),
    "half a file": (lambda path: write(path, json.dumps(SEEDS)[:-40]), 5, "is not JSON"),
    "a file without bottom": (lambda path: write(path, "[" * 100_000), 5, "is not JSON"),
    "a key that stands twice": (
        lambda path: write(path, '{"task_id":"T1","agents":[],"agents":[]}'),
        5,
        "stands twice",
    ),
    "bytes that are no text": (lambda path: write(path, b'{"task_id":"\xff"}'), 5, "is not JSON"),
    "a number that is none": (
        lambda path: write(path, '{"task_id":"T1","agents":[],"active_count":NaN}'),
        5,
        "is not JSON",
    ),
}


@pytest.mark.parametrize(("make", "code", "said"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_in_a_sentence(
    make: Callable[[Path], Any], code: int, said: str, file: Path, workspace: Path
) -> None:
    make(file)
    result = run("agent", "import", file)
    assert (result.code, result.out) == (code, "")
    problem, hint = result.err.splitlines()
    assert problem.startswith(f"guard: {file} ")
    assert said in problem
    assert hint.startswith("hint: ")
    assert result.err.replace("\n", "").isprintable()
    assert len(result.err) < 6000
    assert not workspace.exists()


def test_an_imported_process_is_unknown_to_looks_and_kills(
    file: Path, workspace: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    taken(file, holding(agent(pid=sleeper.pid), agent(id="a2", pid=gone.pid)))
    for words in (("agent", "list"), ("agent", "list", "--all"), ("status",)):
        result = run(*words, "--format", "json", env={"GUARD_NOW": "2099-01-01T00:00:00Z"})
        found = result.json["agents"]
        assert [(one["status"], one["liveness"]) for one in found] == [("running", "unknown")] * 2
    log = (workspace / "events.jsonl").read_bytes()
    killed = run("agent", "kill", "--task", "T1", "--agent", "a1", "--reason", "x")
    assert (killed.code, killed.out) == (1, "")
    assert sleeper.poll() is None
    assert (workspace / "events.jsonl").read_bytes() == log
    assert registry(workspace)["active_count"] == 2


def test_an_imported_session_that_is_gone_has_ended(
    file: Path, workspace: Path, tmp_path: Path
) -> None:
    taken(file, SEEDS)
    environ = {"GUARD_NOW": "2099-01-01T00:00:00Z", "TMUX_TMPDIR": str(tmp_path)}
    result = run("agent", "list", "--format", "json", env=environ)
    (builder,) = [one for one in result.json["agents"] if one["agent_id"] == "builder-1"]
    assert (builder["status"], builder["detected_by"]) == ("completed", "session_gone")


def test_an_imported_agent_goes_on_as_any_other(file: Path, workspace: Path) -> None:
    taken(file, SEEDS)
    ids = ("--task", "T1", "--agent", "builder-1")
    words = ("--status", "completed", "--message", "Created src/login.py and committed it.")
    ended = run("agent", "update", *ids, *words, "--format", "json").json
    assert (ended["previous_status"], ended["recorded_as"]) == ("running", "updated")
    assert (ended["active_count"], ended["completed_count"]) == (0, 2)
    assert ended["completion_validation"]["blocking_issues"] == []
    late = run("agent", "update", "--task", "T1", "--agent", "fixer-1", *words, "--format", "json")
    assert late.json["recorded_as"] == "late"
    again = run("agent", "spawn", *ids, "--format", "json").json
    assert again["agent"]["incarnation"] == 2
    assert names(taken(file, SEEDS)["known"]) == ["T1/builder-1", "T1/fixer-1", "T1/old-1"]


@pytest.mark.parametrize("keep", [0, 1, 2, 9])
def test_keep_finished_is_respected(
    keep: int, file: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_REGISTRY__KEEP_FINISHED", str(keep))
    ended = [agent(id=f"a{n}", status="failed", completed_at=ENDED) for n in range(4)]
    taken(file, holding(agent(id="z"), *ended))
    found = overall(workspace)
    assert (found["keep_finished"], found["completed_agents"]) == (keep, 4)
    newest = ["a0", "a1", "a2", "a3"][max(0, 4 - keep) :]
    assert [one["agent_id"] for one in found["agents"]] == ["z", *newest]
    assert len(registry(workspace)["agents"]) == 5
    before = contents(workspace)
    taken(file, holding(agent(id="z"), *ended))
    assert contents(workspace) == before
