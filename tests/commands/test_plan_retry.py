"""`guard plan tick` and `guard plan outbox --take`, run again under the same id by a script that was interrupted."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from tests.commands.test_plan import call, events, state, told, types
from tests.support import TIME_LIMIT, write

LATER = "2026-01-31T12:16:00Z"
TAKE = ("plan", "outbox", "--take")
KILLED = """
import os, signal
from guard.context.output import Output
Output.document = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from guard.cli import main
main()
"""


def test_a_tick_that_was_recorded_does_nothing_more(
    planned_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_COORDINATOR__ACTIVE_DEVELOPERS", "1")
    assert events("plan", "tick", "--event-id", "t1") == ["developer_dispatched"]
    monkeypatch.setenv("GUARD_COORDINATOR__ACTIVE_DEVELOPERS", "3")
    before = state()
    again = told("plan-change", "plan", "tick", "--event-id", "t1", at=LATER)
    assert (again["recorded_as"], again["events"]) == ("repeated", [])
    assert state() == before
    assert events("plan", "tick", "--event-id", "t2") == ["developer_dispatched"]


def test_whatever_a_tick_begins_with_its_retry_is_known(planned_project: Path) -> None:
    for number, at in enumerate(("2026-01-31T12:00:00Z", LATER)):
        words = ("plan", "tick", "--event-id", f"t{number}")
        assert len(events(*words, at=at)) > 1
        call("plan", "outbox", "--take")
        assert told("plan-change", *words, at="2026-02-01T00:00:00Z")["recorded_as"] == "repeated"
    assert state()["setbacks"].keys() == {"1-1", "2"}


def test_a_tick_with_nothing_due_leaves_its_id_free(planned_project: Path) -> None:
    call("plan", "ask", "Which?")
    words = ("plan", "tick", "--event-id", "t")
    assert told("plan-change", *words)["recorded_as"] == "nothing"
    call("plan", "answer", "question-1", "This one")
    assert events(*words) == ["developer_dispatched"] * 2


@pytest.mark.parametrize("words", [("plan", "tick"), TAKE], ids=["tick", "outbox"])
def test_the_id_of_something_else_is_refused(words: tuple[str, ...], planned_project: Path) -> None:
    call("plan", "dispatch", "2", "--agent", "dev", "--event-id", "mine")
    call("plan", "tick")
    before = state()
    code, why = call(*words, "--event-id", "mine")
    assert (code, why) == (1, "the id mine was used for another developer_dispatched")
    assert state() == before


def test_ids_that_a_script_numbers_like_a_tick_take_nothing_away(planned_project: Path) -> None:
    for used in ("t-1", "t-2", "t-f"):
        call("event", "session_resumed", "--event-id", used)
    call("plan", "tick", "--event-id", "t")
    assert sorted(state()["active_developers"].values()) == ["1-1", "2"]
    ids = [entry.event.id for entry in Invocation().store.entries()]
    assert len(ids) == len(set(ids))


def test_what_was_taken_is_given_again_under_the_same_id(planned_project: Path) -> None:
    call("plan", "tick")
    first = told("plan-outbox", *TAKE, "--event-id", "o1")
    assert [one["task_id"] for one in first["items"]] == ["1-1", "2"]
    call("plan", "ready", "2")
    call("plan", "audit", "2", "--agent", "aud", "--verdict", "fail", "--message", "no tests")
    logged = types(Invocation().store)
    assert told("plan-outbox", *TAKE, "--event-id", "o1") == first
    assert types(Invocation().store) == logged
    (new,) = told("plan-outbox", *TAKE, "--event-id", "o2")["items"]
    assert new["kind"] == "rework"
    assert new["text"].startswith("no tests\n\n# Task 2: Something else\n")
    assert told("plan-outbox", *TAKE, "--event-id", "o1") == first


def test_a_script_killed_before_it_has_the_items_loses_none(planned_project: Path) -> None:
    call("plan", "tick")
    waiting = told("plan-outbox", "plan", "outbox")["items"]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *TAKE, "--event-id", "o1"],
        cwd=planned_project,
        capture_output=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert state()["outbox"] == []
    assert told("plan-outbox", *TAKE, "--event-id", "o1")["items"] == waiting


def test_an_empty_outbox_leaves_the_id_free(planned_project: Path) -> None:
    assert told("plan-outbox", *TAKE, "--event-id", "o")["items"] == []
    call("plan", "tick")
    assert len(told("plan-outbox", *TAKE, "--event-id", "o")["items"]) == 2


def test_a_retry_for_another_agent_is_refused(planned_project: Path) -> None:
    call("plan", "tick")
    one, other = (item["agent_id"] for item in told("plan-outbox", "plan", "outbox")["items"])
    words = (*TAKE, "--event-id", "o", "--agent")
    assert len(told("plan-outbox", *words, one)["items"]) == 1
    assert call(*words, other)[0] == 1
    assert [item["agent_id"] for item in state()["outbox"]] == [other]


def test_an_id_without_taking_anything_is_wrong_usage(planned_project: Path) -> None:
    assert call("plan", "outbox", "--event-id", "o") == (
        2,
        "--event-id has no effect without --take or --ack",
    )


def test_what_the_usage_command_says_at_a_retry_does_not_count(
    planned_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = write(tmp_path / "usage.json", '{"utilisation": 85}')
    monkeypatch.setenv("GUARD_COORDINATOR__USAGE_COMMAND", f"cat {said}")
    words = ("plan", "usage", "--event-id", "u1")
    assert events(*words) == ["usage_checked"]
    write(said, '{"utilisation": 90}')
    assert told("plan-change", *words)["recorded_as"] == "repeated"
    assert state()["session_utilisation"] == 85


def test_warnings_are_given_again_under_the_same_id(planned_project: Path) -> None:
    words = ("failures", "warn", "1.1", "--event-id", "w")
    fail = ("event", "failure_pattern_recorded", "failure_type=test_failures", "task_id=1-1")
    assert told("failure-warnings", *words)["warnings"] == []
    for _ in range(3):
        assert call(*fail)[0] == 0
    first = told("failure-warnings", *words)
    assert [one["occurrence_count"] for one in first["warnings"]] == [3]
    assert call(*fail)[0] == 0
    logged = types(Invocation().store)
    assert told("failure-warnings", *words) == first
    assert types(Invocation().store) == logged
    assert call("failures", "warn", "2", "--event-id", "w")[0] == 1
    assert call(*words, "--preview") == (2, "--event-id has no effect with --preview")
