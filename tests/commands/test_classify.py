"""`guard classify`: from a file or a pipe, in text and JSON, with no repository in sight."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from guard.core.classify import MEANINGS
from guard.schemas.validate import validator
from tests.streams import failed, init, jsonl, result, stream
from tests.support import run, write
from tests.support.scripted_streams import read, shell, write_stream

ENV = {"GUARD_NOW": "2026-11-16T02:00:00Z"}


def test_a_limit_from_a_file(tmp_path: Path) -> None:
    file = write(tmp_path / "out.jsonl", stream("claude-usage-limit"))
    result = run("classify", file, "--exit-code", "1", "--format", "json", cwd=tmp_path, env=ENV)
    assert (result.code, result.err) == (0, "")
    assert list(validator("classify").iter_errors(result.json)) == []
    assert result.json == {
        "schema": "guard/classify/1",
        "outcome": "limited",
        "reason": "usage_limit",
        "status": "limited",
        "retry_at": "2026-11-16T03:33:20Z",
        "session": "00000001-0000-4000-8000-000000000001",
        "killed": [],
        "exit_code": 1,
        "fingerprint": "limited: you've hit your limit resets utc",
        "claim": None,
        "cost_usd": 0.0,
        "usage": {
            "models": [
                {
                    "model": "claude-sonnet-5-5",
                    "input_tokens": 0,
                    "cached_tokens": 0,
                    "output_tokens": 0,
                    "cost_usd": 0.0,
                }
            ],
            "turns": 1,
            "basis": "estimated",
            "is_cumulative": False,
            "is_partial": False,
        },
        "denied_tools": [],
        "words": "You've hit your 5-hour limit · resets 3:33am (UTC)",
        "loop": None,
        "format": "claude",
        "skipped": 0,
    }


def test_the_text_for_people(tmp_path: Path) -> None:
    task = {"type": "system", "subtype": "task_started", "task_id": "t1", "session_id": "s1"}
    data = jsonl(init(), {**task, "description": "run \x1b[31mtests"}, result()).decode()
    answer = run("classify", "-", "--exit-code", "0", cwd=tmp_path, stdin=data)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0] == f"interrupted: {MEANINGS['interrupted']}"
    assert lines[1:4] == [
        "  reason: background_work",
        "  status: interrupted",
        "  session: 00000001-0000-4000-8000-000000000001",
    ]
    assert "  killed: run \\x1b[31mtests" in lines
    assert "\x1b" not in answer.out


def test_a_loop_is_named(tmp_path: Path) -> None:
    lines = write_stream("codex", [read("a.py"), shell("npm test", "1 failed", failed=True)] * 3)
    data = b"".join(line for _, line in lines).decode()
    report = run("classify", "--format", "json", cwd=tmp_path, stdin=data).json
    call = "read a.py / shell /bin/bash -lc 'npm test'"
    assert report["loop"] == {"pattern": "two_calls", "count": 3, "call": call}
    text = run("classify", cwd=tmp_path, stdin=data).out
    assert f"  loop: the same two calls in turn, 3 times: {call}" in text.splitlines()


@pytest.mark.parametrize("words", [[], ["-"]], ids=["no file", "a dash"])
def test_standard_input(words: list[str], tmp_path: Path) -> None:
    data = stream("codex-ok").decode()
    answer = run("classify", *words, "--format", "json", cwd=tmp_path, stdin=data)
    assert (answer.json["outcome"], answer.json["format"]) == ("ok", "codex")
    assert (answer.json["status"], answer.json["exit_code"]) == (None, None)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--agent", "claude"], ("unknown", "no_exit_code")),
        (["--agent", "claude", "--exit-code", "0"], ("crash", "no_result")),
        (["--agent", "command", "--exit-code", "0"], ("ok", "completed")),
        (["--agent", "gemini", "--exit-code", "173"], ("limited", "rate_limit")),
        (["--agent", "copilot", "--exit-code", "-15"], ("crash", "sigterm")),
        (["--exit-code", "143"], ("crash", "sigterm")),
        (["--exit-code", "0"], ("unknown", "no_output")),
    ],
    ids=" ".join,
)
def test_agent_and_exit_code(words: list[str], expected: tuple[str, str], tmp_path: Path) -> None:
    answer = run("classify", *words, "--format", "json", cwd=tmp_path, stdin="")
    assert answer.code == 0
    assert (answer.json["outcome"], answer.json["reason"]) == expected


def test_standard_error_from_a_file(tmp_path: Path) -> None:
    file = write(
        tmp_path / "err.txt", "ERROR: You’ve hit your usage limit, try again at 3:33 AM.\n"
    )
    words = ("--agent", "codex", "--exit-code", "1", "--stderr", file, "--format", "json")
    answer = run("classify", *words, cwd=tmp_path, stdin="", env=ENV)
    assert (answer.json["outcome"], answer.json["retry_at"]) == ("limited", "2026-11-16T03:33:00Z")


def test_a_time_without_a_zone_is_this_machines(tmp_path: Path) -> None:
    data = jsonl(failed("You've hit your limit · resets 3:33am", 429)).decode()
    env = {**ENV, "TZ": "XYZ+5"}
    answer = run("classify", "--format", "json", cwd=tmp_path, stdin=data, env=env)
    assert answer.json["retry_at"] == "2026-11-16T08:33:00Z"


def test_lines_that_were_skipped_are_said(tmp_path: Path) -> None:
    data = jsonl(init()).decode() + '{"type":"result"\n' + jsonl(result()).decode()
    assert "  skipped: 1 line" in run("classify", cwd=tmp_path, stdin=data).out.splitlines()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.jsonl"], "'nowhere.jsonl' does not exist"),
        (["."], "is a directory"),
        (["--agent", "nobody"], "'nobody' is not one of"),
        (["--exit-code", "x"], "'x' is not a valid integer"),
        (["--exit-code", "999"], "999 is not in the range"),
        (["--stderr", "nowhere.txt"], "'nowhere.txt' does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage(words: list[str], said: str, tmp_path: Path) -> None:
    answer = run("classify", *words, cwd=tmp_path, stdin="")
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 2


def test_the_help_lists_every_outcome_with_its_meaning() -> None:
    text = run("classify", "--help").out
    for outcome, meaning in MEANINGS.items():
        assert f"{outcome:<12} {meaning}" in text


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "guard", "classify", "--exit-code", "1", "--format", "json"],
        input=b"\xff\xfe\x00\n" * 10 + b"Error: \xff\x1b[31m 503 Service Unavailable\n",
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ},
        timeout=120,
        check=True,
    )
    assert b'"transient"' in done.stdout
