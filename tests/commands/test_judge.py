"""`guard judge`: an evidence document judged, and a past check judged again."""

import json
from pathlib import Path
from typing import Any

import pytest

from guard.core.check.judge import RULES
from guard.schemas.validate import validator
from tests.support import commit, run, write
from tests.support.evidence import COMMITTED, LEFT, answered, look
from tests.support.sessions import script

COMPLETE = look(work=COMMITTED).model_dump_json()


def judged(*words: str | Path, stdin: str | None = None) -> dict[str, Any]:
    result = run("judge", "--format", "json", *words, stdin=stdin)
    assert result.code == 0, result.err
    document: dict[str, Any] = result.json
    assert validator("judge").is_valid(document)
    return document


def test_a_document_is_judged_and_the_verdict_explained(repository: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "evidence.json", look().model_dump_json())
    result = run("judge", file)
    assert result.code == 0
    first, *trail = result.out.splitlines()
    assert first == "no verdict yet; next: probe (ask the session, probe 1 of 5)"
    assert trail == [f"  {name}: nothing to say" for name, _ in RULES[:10]] + [
        "  ask the session: decides"
    ]


def test_the_exit_code_says_nothing_of_the_verdict(repository: Path, tmp_path: Path) -> None:
    stalled = look(round=5, probed=True, probes=(answered("working"),)).model_dump_json()
    file = write(tmp_path / "evidence.json", stalled)
    assert judged(file)["status"] == "timeout"


def test_a_document_comes_from_stdin_and_no_repository_is_needed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = judged("-", stdin=COMPLETE)
    assert (found["decision"], found["status"], found["reason"]) == (
        "verdict",
        "complete",
        "commits",
    )


def test_other_settings_are_judged_by(tmp_path: Path, home: Path) -> None:
    left = look(probed=True, probes=(answered("complete"),), uncommitted=LEFT).model_dump_json()
    assert judged("-", stdin=left)["decision"] == "rescue"
    found = judged("-", "--set", "rescue=false", "--set", "max_probes=1", stdin=left)
    assert (found["reason"], found["policy"]["max_probes"]) == ("uncommitted", 1)
    assert judged("-", "--set", "wait=false", stdin=left)["reason"] == "uncommitted"


def test_text_from_outside_cannot_write_to_the_terminal(home: Path) -> None:
    hostile = look(work=COMMITTED).model_dump(mode="json")
    hostile["output"] = {
        "outcome": "interrupted", "reason": "", "retry_at": None, "session": None,
        "killed": ["\x1b[2J\x07evil"], "exit_code": 1, "fingerprint": None, "claim": None,
        "cost_usd": None, "denied_tools": [],
    }  # fmt: skip
    result = run("judge", "-", stdin=json.dumps(hostile))
    assert result.code == 0
    assert "evil" in result.out
    assert not {"\x1b", "\x07"} & set(result.out)


WRONG = {
    "neither a file nor an iteration": ((), "give either a FILE or --replay ITERATION"),
    "both": (("-", "--replay", "1"), "give either a FILE or --replay ITERATION"),
    "a file that is not there": (("nothing.json",), "nothing.json"),
    "not JSON": (("-",), "Expecting value"),
    "a setting that nobody knows": (("-", "--set", "probes=3"), "is not NAME=VALUE"),
    "iteration zero": (("--replay", "0"), "0 is not in the range"),
}


@pytest.mark.parametrize(("words", "problem"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_told_in_one_line(
    repository: Path, words: tuple[str, ...], problem: str
) -> None:
    stdin = COMPLETE if "--set" in words else "nonsense"
    result = run("judge", *words, stdin=stdin)
    assert (result.code, result.out) == (2, "")
    assert problem in result.err
    assert "Traceback" not in result.err


def test_a_document_without_end_is_refused(home: Path) -> None:
    result = run("judge", "-", stdin=" " * (16 * 1024 * 1024) + COMPLETE)
    assert result.code == 2
    assert "larger than" in result.err


@pytest.fixture
def stalled(repository: Path, tmp_path: Path) -> Path:
    """A repository with one check that ended as a stall, after three probes."""
    commit(repository, "first.txt")
    assert run("baseline").code == 0
    result = run(
        "check", "--max-probes", "3", "--probe-interval", "0.05",
        "--probe-command", script(tmp_path / "probe", "exit 3"),
    )  # fmt: skip
    assert result.code == 10, result.err
    return repository


def test_a_past_check_is_judged_again(stalled: Path) -> None:
    found = judged("--replay", "1")
    assert (found["status"], found["reason"]) == ("timeout", "no_answer")
    assert (found["recorded_status"], found["recorded_reason"]) == ("timeout", "no_answer")
    assert found["look"] == found["looks"]


def test_a_past_check_under_fewer_and_under_more_probes(stalled: Path) -> None:
    fewer = judged("--replay", "1", "--set", "max_probes=1")
    assert (fewer["decision"], fewer["status"]) == ("verdict", "timeout")
    assert fewer["look"] < fewer["looks"]
    more = judged("--replay", "1", "--set", "max_probes=9")
    assert (more["decision"], more["look"]) == ("wait", more["looks"])
    text = run("judge", "--replay", "1", "--set", "max_probes=9").out
    assert text.startswith("no verdict yet; next: wait for at most 0.05 s (round 3 of 9")
    assert "the check itself said stalled: no_answer" in text


def test_nothing_is_recorded_by_a_judgement(stalled: Path) -> None:
    before = run("log", "--format", "json").json
    judged("--replay", "1", "--set", "max_probes=1")
    assert run("log", "--format", "json").json == before


@pytest.mark.parametrize(
    "words", [("--replay", "7"), ("--replay", "1", "--run", "another")], ids=["number", "run"]
)
def test_a_check_that_the_log_does_not_have_is_refused(
    stalled: Path, words: tuple[str, ...]
) -> None:
    result = run("judge", *words)
    assert (result.code, result.out) == (1, "")
    assert "the log has no check of iteration" in result.err
