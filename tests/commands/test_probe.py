"""`guard probe`: one question, one document, and the exit code that says whether it was answered."""

import os
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from guard.schemas.validate import validator
from tests.probe.standin import SESSION, StandIn, stand_in
from tests.support import NOW, TIME_LIMIT, Result, run, write

ANSWER = """
line(type="result", session_id="x", subtype="success", is_error=False, usage=dict(input_tokens=10, output_tokens=5),
     structured_output=document("complete", message="All done.", agents_active=True, agents_details="a reviewer",
                                tasks_pending=["1.3"], next_action="Wait."))
"""


@pytest.fixture(autouse=True)
def path(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-ins on the search path, and a clock that stands."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GUARD_NOW", NOW)


@pytest.fixture
def claude(tmp_path: Path) -> StandIn:
    return stand_in(tmp_path, "claude", ANSWER)


def probe(*words: str) -> Result:
    return run("probe", *words)


def report(*words: str, code: int = 0) -> Any:
    result = probe(*words, "--format", "json")
    assert (result.code, result.err) == (code, "")
    assert list(validator("probe").iter_errors(result.json)) == []
    return result.json


def test_an_answer_and_what_it_comes_to(claude: StandIn) -> None:
    found = report("--agent", "claude", "--session", SESSION)
    assert found["answer"]["status"] == "complete"
    assert found["reading"] == "waiting"
    assert (found["failure"], found["lasting"], found["retry_at"]) == (None, False, None)
    assert (found["agent"], found["session"], found["tokens"]) == ("claude", SESSION, 15)
    assert claude.called["cwd"] == str(Path.cwd())


def test_an_answer_for_people(claude: StandIn) -> None:
    result = probe("--agent", "claude", "--session", SESSION)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "claude: waiting (it says complete): All done.",
        "helpers: a reviewer",
        "pending: 1.3",
        "next: Wait.",
    ]


def test_a_limit_has_an_exit_code_of_its_own_and_says_until_when(tmp_path: Path) -> None:
    words = "You've hit your 5-hour limit · resets 3:33pm (UTC)"
    body = f"line(type='result', session_id='x', subtype='success', is_error=True, result={words!r}, api_error_status=429)"
    stand_in(tmp_path, "claude", f"{body}\nsys.exit(1)")
    found = report("--agent", "claude", "--session", SESSION, code=13)
    assert (found["failure"], found["retry_at"]) == ("limited", "2026-01-31T15:33:00Z")
    assert (found["answer"], found["reading"]) == (None, None)
    told = probe("--agent", "claude", "--session", SESSION)
    assert (told.code, told.err) == (13, "")
    assert "limited, until 2026-01-31T15:33:00Z: " in told.out


BAD: dict[str, tuple[str, str]] = {
    "prints a gigabyte": (
        "for _ in range(16384): sys.stdout.buffer.write(b'[' * 65536)",
        "unreadable: it printed more than 1048576 bytes",
    ),
    "never ends": ("time.sleep(300)", "timeout: no answer within 1.5 s"),
    "answers prose": ("print('Done!')", "unreadable: there is no JSON object with the nonce of this probe in the answer"),
    "answers two contradicting objects": (
        "print(answer('complete'), answer('working'))",
        "unreadable: 2 objects claim to be the answer",
    ),
    "answers nested 100,000 deep": (
        "print('{}:'.format(chr(123)) * 100000)",
        "unreadable: more than 10000 brackets",
    ),
    "draws on the terminal": (
        "sys.exit('\\x1b[2J\\x1b]0;title\\x07 \\u202e')",
        "crashed: exit code 1: \\x1b]0;title\\x07 \\u202e",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "said"), BAD.values(), ids=BAD)
def test_a_bad_answer_is_one_line_and_an_exit_code_in_time(
    body: str, said: str, tmp_path: Path
) -> None:
    stand_in(tmp_path, "program", body)
    begun = monotonic()
    limit = "1.5" if "sleep" in body else "120"
    result = probe("--probe-command", "program", "--probe-timeout", limit)
    assert monotonic() - begun < TIME_LIMIT
    assert (result.code, result.err) == (15, "")
    assert result.out == f"no answer from command: {said}\n"


def test_a_failure_that_lasts(home: Path) -> None:
    found = report("--agent", "gemini", "--session", SESSION, code=15)
    assert (found["failure"], found["lasting"]) == ("no_cli", True)
    assert report("--agent", "claude", code=15)["failure"] == "no_session"


def test_options_and_settings(claude: StandIn, home: Path) -> None:
    write(
        home / "config" / "guard" / "config.toml",
        '[completion_check]\nagent = "claude"\nprobe_model = "opus"\n',
    )
    assert report("--session", SESSION)["agent"] == "claude"
    assert report("--session", SESSION, "--model", "haiku")["agent"] == "claude"
    assert [call["argv"][-1] for call in claude.calls] == ["opus", "haiku"]


def test_the_project_does_not_choose_the_command(
    tmp_path: Path, repository: Path, home: Path
) -> None:
    planted, mine = (stand_in(tmp_path, name, "print(answer())") for name in ("planted", "mine"))
    write(repository / "guard.toml", '[completion_check]\nprobe_command = "planted"\n')
    write(home / "config" / "guard" / "config.toml", '[completion_check]\nprobe_command = "mine"\n')
    assert probe("--agent", "command").code == 0
    assert (planted.log.exists(), len(mine.calls)) == (False, 1)


MISUSED: dict[str, tuple[list[str], int, str]] = {
    "no agent": ([], 2, "no agent to ask is known"),
    "an agent that nobody knows": (["--agent", "gpt"], 2, "'gpt' is not one of"),
    "no time": (["--agent", "claude", "--probe-timeout", "0"], 4, "probe_timeout_seconds"),
    "a model that is an option": (
        ["--agent", "claude", "--session", SESSION, "--model=--help"],
        2,
        "'--help' is not the name of a model",
    ),
}


@pytest.mark.parametrize(("words", "code", "said"), MISUSED.values(), ids=MISUSED)
def test_misused(words: list[str], code: int, said: str) -> None:
    result = probe(*words)
    assert (result.code, result.out) == (code, "")
    assert said in result.err.splitlines()[0]


def test_inside_a_probe_it_refuses(claude: StandIn) -> None:
    result = run("probe", "--agent", "claude", "--session", SESSION, env={"GUARD_PROBE": "1"})
    assert (result.code, result.out) == (1, "")
    assert "does not start another" in result.err
    assert not claude.log.exists()


def test_without_a_repository_there_is_nowhere_to_ask(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    result = run("probe", "--agent", "claude", "--session", SESSION, cwd=elsewhere)
    assert (result.code, result.out) == (4, "")


def test_help_says_what_the_exit_codes_mean() -> None:
    text = " ".join(probe("--help").out.split())
    assert "Exit code 0 if the agent answers; 13 at a usage limit" in text
