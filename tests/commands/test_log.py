"""`guard log`: which events are printed, in which form, and following them."""

import json
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from guard.core.log.events import BaseEvent
from guard.schemas.validate import validator
from guard.store.file_store import FileStore
from tests.support import NOW, TIME_LIMIT, commit, run
from tests.support.events import (
    iteration_ended,
    iteration_started,
    run_ended,
    run_started,
    spawned,
    updated,
)


def append(store: FileStore, *events: BaseEvent) -> None:
    with store.change() as change:
        change.append(*events)


@pytest.fixture
def history(store: FileStore) -> list[BaseEvent]:
    """Two runs and an agent, with the events in the order of their times."""
    events: list[BaseEvent] = [
        run_started("r1"),
        iteration_started(run="r1"),
        iteration_ended(run="r1"),
        spawned("a1"),
        updated("completed", "a1", message="two words"),
        run_ended("r1"),
        run_started("r2"),
    ]
    append(store, *events)
    return events


def seqs(workspace: Path, *words: str, now: str = NOW) -> list[int]:
    result = run(
        "--workspace", workspace, "log", "--format", "json", *words, env={"GUARD_NOW": now}
    )
    assert (result.code, result.err) == (0, "")
    return [event["seq"] for event in result.json["events"]]


def test_each_filter_narrows_the_events(history: list[BaseEvent], workspace: Path) -> None:
    fourth = history[3].at
    table: dict[tuple[str, ...], list[int]] = {
        (): [1, 2, 3, 4, 5, 6, 7, 8],
        ("--type", "run_started"): [2, 8],
        ("--type", "run_started", "--type", "agent_updated"): [2, 6, 8],
        ("--run", "r1"): [2, 3, 4, 7],
        ("--run", "r9"): [],
        ("--since", fourth.isoformat()): [5, 6, 7, 8],
        ("--since", fourth.replace(tzinfo=None).isoformat()): [5, 6, 7, 8],
        ("-n", "2"): [7, 8],
        ("-n", "0"): [],
        ("-n", "99"): [1, 2, 3, 4, 5, 6, 7, 8],
        ("--run", "r1", "--type", "run_started", "-n", "1"): [2],
    }
    assert {words: seqs(workspace, *words) for words in table} == table


def test_since_counts_back_from_now(history: list[BaseEvent], workspace: Path) -> None:
    now = history[-1].at.isoformat()
    assert seqs(workspace, "--since", "2s", now=now) == [6, 7, 8]
    assert seqs(workspace, "--since", "1d", now=now) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--since", "tomorrow"], "guard: --since 'tomorrow' is not a time"),
        (["--since", "5w"], "guard: --since '5w' is not a time"),
        (["--since", "999999d"], "guard: --since '999999d' is not a time"),
        (["--type", "run_begun"], "guard: 'run_begun' is not a type of event"),
    ],
)
def test_a_filter_that_cannot_be_meant_is_wrong_usage(
    words: list[str], said: str, workspace: Path
) -> None:
    result = run("--workspace", workspace, "log", *words)
    assert (result.code, result.out) == (2, "")
    first, hint = result.err.splitlines()
    assert first == said
    assert hint.startswith("hint: ")


def test_json_is_one_document_whose_events_are_the_lines_of_the_log(
    history: list[BaseEvent], workspace: Path
) -> None:
    document = run("--workspace", workspace, "log", "--format", "json").json
    lines = (workspace / "events.jsonl").read_text().splitlines()
    assert list(validator("log").iter_errors(document)) == []
    assert document["events"] == [json.loads(line) for line in lines]
    errors = [e for event in document["events"] for e in validator("event").iter_errors(event)]
    assert errors == []


def test_text_is_one_line_for_each_event(history: list[BaseEvent], workspace: Path) -> None:
    lines = run("--workspace", workspace, "log").out.splitlines()
    assert len(lines) == 8
    assert " run_started r1/-  worktree=w1" in lines[1]
    assert " iteration_started r1/1  worktree=w1" in lines[2]
    assert 'status=completed message="two words"' in lines[5]
    assert not any("prev=" in line or "hash=" in line for line in lines)


def test_without_a_workspace_there_is_nothing_to_print(workspace: Path) -> None:
    result = run("--workspace", workspace, "log")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert not workspace.exists()


class Follower:
    """A guard that follows the log."""

    def __init__(self, workspace: Path, *words: str) -> None:
        command = ["--workspace", str(workspace), "log", "--follow", *words]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "guard", *command], stdout=subprocess.PIPE, bufsize=0
        )

    def line(self, limit: float = TIME_LIMIT) -> str | None:
        """The next line, if it comes within the limit."""
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        return self.process.stdout.readline().decode() if ready else None

    def event(self, limit: float = TIME_LIMIT) -> Any:
        line = self.line(limit)
        return json.loads(line) if line else None

    def __enter__(self) -> "Follower":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=TIME_LIMIT)


def test_follow_prints_what_is_there_and_then_what_comes(store: FileStore, workspace: Path) -> None:
    append(store, run_started())
    with Follower(workspace) as follower:
        assert "segment_opened" in (follower.line(TIME_LIMIT) or "")
        assert "run_started" in (follower.line() or "")
        append(store, iteration_started())
        assert "iteration_started r1/1" in (follower.line() or "")
        append(store, iteration_ended(), run_ended())
        assert "iteration_ended" in (follower.line() or "")
        assert "run_ended" in (follower.line() or "")


def test_follow_in_json_is_an_event_on_each_line(store: FileStore, workspace: Path) -> None:
    append(store, run_started())
    filters = ("--type", "agent_spawned", "--type", "run_started", "-n", "1", "--format", "json")
    with Follower(workspace, *filters) as follower:
        assert follower.event(TIME_LIMIT)["type"] == "run_started"
        append(store, iteration_started(), spawned())
        event = follower.event()
        assert (event["seq"], event["type"]) == (4, "agent_spawned")
        assert list(validator("event").iter_errors(event)) == []
        assert follower.line(0.5) is None


def test_follow_goes_on_through_a_rotation(workspace: Path) -> None:
    store = FileStore(workspace, segment_max_bytes=4096)
    append(store, run_started())
    with Follower(workspace, "-n", "1") as follower:
        assert "run_started" in (follower.line(TIME_LIMIT) or "")
        append(store, *[updated(message="x" * 500) for _ in range(10)])
        append(store, run_ended())
        assert (workspace / "events.000001.jsonl").exists()
        lines = [follower.line() or "" for _ in range(12)]
    assert "segment_opened  segment=2" in lines[10]
    assert "run_ended" in lines[11]


def test_follow_waits_for_a_log_that_is_not_there_yet(store: FileStore, workspace: Path) -> None:
    with Follower(workspace) as follower:
        assert follower.line(1) is None
        append(store, run_started())
        assert "segment_opened" in (follower.line() or "")


def test_a_damaged_log_is_printed_up_to_the_damage(
    history: list[BaseEvent], workspace: Path
) -> None:
    log = workspace / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"r2"', b'"r3"'))
    result = run("--workspace", workspace, "log")
    assert result.code == 5
    assert result.err.startswith("guard: events.jsonl: record 8 at byte ")
    assert "hint: run `guard verify`; `guard rebuild --salvage` continues" in result.err


def test_a_long_value_is_told_in_a_few_words(repository: Path) -> None:
    commit(repository)
    assert run("run", "--no-probe", "--", "true").code == 10
    line = run("log", "--type", "check_made").out
    assert "looks=(1 item)" in line
    assert re.search(r"policy=\(\d+ fields\)", line)
    assert len(line) < 600
