"""What guard makes of the real output: each way in which a session of the real CLIs ends, and its outcome."""

import os
import signal
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from guard.core.classify import Classification, classify
from tests.agent_clis.limits import SUBSCRIPTION, five_hours, plan
from tests.support import Result
from tests.support.agent_clis import AgentCli
from tests.support.model import Model, Step, call, fail, refuse, say

_RESET = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(hours=2)


@dataclass(frozen=True)
class Story:
    """How a session goes, and what follows."""

    steps: tuple[Step, ...]
    outcome: str
    words: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    retry_at: datetime | None = None


_BASH_TRUE = call("Bash", command="true", description="Do nothing")
_QUOTES = "echo \"You've hit your 5-hour limit - resets 3am (UTC)\"; echo 'API Error: 401'; exit 1"
CLAUDE = {
    "a last word": Story((say("Done."),), "ok"),
    "quoted errors in a tool's output": Story(
        (call("Bash", command=_QUOTES, description="Show the log"), say("Seen.")), "ok"
    ),
    "a usage limit": Story((five_hours(_RESET),), "limited", env=SUBSCRIPTION, retry_at=_RESET),
    "a rate limit": Story((refuse(429, "rate_limit_error", "Slow down."),), "limited"),
    "an overloaded service": Story((refuse(529, "overloaded_error", "Overloaded"),), "transient"),
    "nobody there": Story((), "transient", env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}),
    "a refused key": Story((refuse(401, "authentication_error", "invalid x-api-key"),), "auth"),
    "no credit": Story(
        (refuse(400, "invalid_request_error", "Your credit balance is too low to access the API"),),
        "auth",
    ),
    "a conversation that is too long": Story(
        (
            refuse(
                400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"
            ),
        ),
        "context",
    ),
    "no turns left": Story((_BASH_TRUE, say("Done.")), "turn_limit", ("--max-turns", "1")),
    "no money left": Story((_BASH_TRUE, say("Done.")), "budget", ("--max-budget-usd", "0.00001")),
    "a question": Story((say("Shall I use tabs or spaces?"),), "question"),
}
CODEX = {
    "a last word": Story((say("Done."),), "ok"),
    "quoted errors in a tool's output": Story(
        (call("exec_command", cmd=_QUOTES), say("Seen.")), "ok"
    ),
    "a usage limit": Story((plan(_RESET),), "limited", retry_at=_RESET),
    "a rate limit": Story((refuse(429, "rate_limit_exceeded", "Slow down."),), "limited"),
    "an overloaded service": Story((refuse(503, "server_error", "Overloaded"),), "transient"),
    "a refused key": Story((refuse(401, "invalid_api_key", "Incorrect API key"),), "auth"),
    "no credit": Story((fail("insufficient_quota", "You exceeded your quota"),), "auth"),
    "a conversation that is too long": Story(
        (fail("context_length_exceeded", "Too long"),), "context"
    ),
    "a question": Story((say("Shall I use tabs or spaces?"),), "question"),
}


_TEXTS = ("a usage limit", "a refused key", "no turns left", "no money left")
CLAUDE_STORIES = [
    *(("stream-json", story) for story in CLAUDE),
    *(("json", story) for story in ("a usage limit", "no turns left")),
    *(("text", story) for story in (*_TEXTS, "quoted errors in a tool's output")),
]
CODEX_STORIES = [
    *(("json", story) for story in CODEX),
    *(("text", story) for story in ("a last word", "a usage limit", "an overloaded service")),
]


@pytest.mark.parametrize(("output", "story"), CLAUDE_STORIES)
def test_claude_ends_with(output: str, story: str, claude: AgentCli, model: Model) -> None:
    told = CLAUDE[story]
    model.script("do it", *told.steps)
    done = claude.run("--output-format", output, *told.words, "do it", env=told.env)
    found = _meaning(claude, done)
    assert (found.outcome, found.retry_at) == (told.outcome, told.retry_at), done


@pytest.mark.parametrize(("output", "story"), CODEX_STORIES)
def test_codex_ends_with(output: str, story: str, codex: AgentCli, model: Model) -> None:
    told = CODEX[story]
    model.script("do it", *told.steps)
    command = [word for word in codex.command if output == "json" or word != "--json"]
    done = codex.call(*command, *told.words, "do it", env=told.env)
    found = _meaning(codex, done)
    assert (found.outcome, found.retry_at) == (told.outcome, told.retry_at), done


def test_claude_without_permission_to_work_was_denied(claude: AgentCli, model: Model) -> None:
    model.script(
        "do it",
        claude.shell("touch made", description="Make a file"),
        say("I could not make the file: the permission was denied."),
    )
    done = claude.call("claude", "-p", "--output-format", "json", "do it")
    found = _meaning(claude, done)
    assert (found.outcome, found.denied_tools) == ("denied", ("Bash",)), done
    assert not Path("made").exists()


@pytest.mark.parametrize("ended_by", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_claude_killed_with_its_background_work_was_interrupted(
    ended_by: str, claude: AgentCli, model: Model
) -> None:
    """After the first result, which says success; on SIGINT the exit code says so too."""
    work = claude.shell("sleep 15", description="the long build", run_in_background=True)
    model.script("do it", work, say("The build runs."))
    done = _killed(claude, ended_by, after='"type":"result"')
    found = _meaning(claude, done)
    assert (found.outcome, found.killed) == ("interrupted", ("the long build",)), done


def test_claude_that_waits_for_its_background_work_ends_well(
    claude: AgentCli, model: Model
) -> None:
    work = claude.shell("sleep 0.5", description="the short build", run_in_background=True)
    model.script("do it", work, say("The build runs."), say("The build is done."))
    done = claude.run("do it")
    found = _meaning(claude, done)
    assert (found.outcome, found.claim, found.killed) == ("ok", "The build is done.", ()), done


def test_codex_that_leaves_a_command_running_was_interrupted(codex: AgentCli, model: Model) -> None:
    """It ends by itself, with success, and takes the command with it."""
    work = codex.shell("sleep 15; touch built", yield_time_ms=250)
    model.script("do it", work, say("The build runs."))
    done = codex.run("do it")
    found = _meaning(codex, done)
    assert done.code == 0
    assert found.outcome == "interrupted", done
    assert "sleep 15; touch built" in found.killed[0]


@pytest.mark.parametrize(
    ("ended_by", "reason"),
    [("SIGINT", "exit_1"), ("SIGTERM", "sigterm"), ("SIGKILL", "sigkill")],
)
def test_codex_killed_in_the_middle_of_its_turn_crashed(
    ended_by: str, reason: str, codex: AgentCli, model: Model
) -> None:
    model.script("do it", codex.shell("sleep 15"))
    done = _killed(codex, ended_by, after="command_execution")
    found = _meaning(codex, done)
    assert (found.outcome, found.reason) == ("crash", reason), done


def _killed(agent: AgentCli, ended_by: str, after: str) -> Result:
    """The session's process group gets a signal once the output has a line with that text."""
    with agent.started([*agent.command, "do it"]) as process:
        assert process.stdout is not None
        line = seen = process.stdout.readline()
        while after not in seen:
            assert line, f"it ended without {after!r}: {seen}"
            line = process.stdout.readline()
            seen += line
        os.killpg(process.pid, signal.Signals[ended_by])
        out, err = process.communicate(timeout=120)
    return Result(process.returncode, seen + out, err)


def _meaning(agent: AgentCli, done: Result) -> Classification:
    out, err = done.out.encode(), done.err.encode()
    return classify(out, err, agent.name, done.code, datetime.now(UTC))
