"""The gate behind the real CLIs: no turn is complete while a helper of theirs is at work."""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

from tests.agent_clis import helpers
from tests.support import ROOT, Result, commit, run
from tests.support.agent_clis import AgentCli
from tests.support.model import Model, hang, say
from tests.support.sessions import until

_BEGUN = "touch begun; until [ -e asked ]; do sleep 0.05; done"
_COMMIT = "touch footer && git add footer && git commit -qm 'Add the footer'"
_ENDS = ("complete", "usage_update")


def _pipeline(agent: AgentCli) -> list[str]:
    gate = shlex.join([sys.executable, "-m", "guard", "gate", "--agent", agent.name])
    return ["sh", "-c", f"{shlex.join([*agent.command, 'make the page'])} | {gate}"]


@contextmanager
def _gated(agent: AgentCli) -> Iterator[Popen[str]]:
    with agent.started(_pipeline(agent), {"PYTHONPATH": str(ROOT)}) as process:
        yield process


def _through(agent: AgentCli) -> Result:
    with _gated(agent) as process:
        out, err = process.communicate(timeout=120)
    return Result(process.returncode, out, err)


def _read_until(process: Popen[str], words: str) -> str:
    assert process.stdout is not None
    seen = ""
    while words not in seen:
        seen += process.stdout.readline()
        assert process.poll() is None, seen
    return seen


def _lines(out: str) -> list[Any]:
    return [json.loads(line) for line in out.splitlines()]


def _first(lines: list[Any], *kinds: str) -> int:
    """Where the first line of such a type or subtype stands."""
    return next(
        number
        for number, line in enumerate(lines)
        if line["type"] in kinds or line.get("subtype") in kinds
    )


def test_claudes_turn_is_complete_only_when_its_helper_has_ended(
    claude: AgentCli, model: Model
) -> None:
    model.script(
        "make the page",
        helpers.start(claude, "write the footer"),
        say("The helper is at work."),
        say("The page is made."),
    )
    model.script("write the footer", claude.shell(_BEGUN, description="Write"), say("Written."))
    with _gated(claude) as process:
        seen = _read_until(process, "The helper is at work.")
        until(lambda: Path("begun").exists(), 120)
        Path("asked").touch()
        out, err = process.communicate(timeout=120)
    lines = _lines(seen + out)
    assert process.returncode == 0, err
    assert _first(lines, "task_notification") < _first(lines, "complete")
    assert lines[-1]["type"] == "complete"
    assert lines[-1]["source"]["result"] == "The page is made."


def test_claudes_first_result_is_held_back_while_a_command_runs(
    claude: AgentCli, model: Model
) -> None:
    """It prints that one at once, and the next when the command has ended."""
    work = claude.shell(_BEGUN, description="the build", run_in_background=True)
    model.script("make the page", work, say("The build runs."), say("The build is done."))
    with _gated(claude) as process:
        seen = _read_until(process, '"type":"usage_update"')
        Path("asked").touch()
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    ends = [line["type"] for line in _lines(seen + out) if line["type"] in _ENDS]
    assert ends == ["usage_update", "complete"]


def test_codex_that_waits_for_its_helper_is_complete(codex: AgentCli, model: Model) -> None:
    model.script(
        "make the page",
        helpers.start(codex, "write the footer"),
        helpers.wait(model),
        say("The page is made."),
    )
    model.script("write the footer", codex.shell("touch footer"), say("Written."))
    done = _through(codex)
    assert done.code == 0, done.err
    assert [line["type"] for line in _lines(done.out) if line["type"] in _ENDS] == ["complete"]
    assert Path("footer").exists()


def test_codex_that_does_not_wait_for_its_helper_was_interrupted(
    codex: AgentCli, model: Model
) -> None:
    model.script(
        "make the page", helpers.start(codex, "write the footer"), say("The page is made.")
    )
    model.script("write the footer", hang())
    done = _through(codex)
    assert done.code == 16, done.err
    ends = [line["type"] for line in _lines(done.out) if line["type"] in _ENDS]
    assert ends == ["usage_update"]
    assert done.err.endswith("1 helper killed with the session: write the footer\n")


def test_a_run_waits_for_claudes_helper(claude: AgentCli, model: Model, repository: Path) -> None:
    commit(repository)
    model.script(
        "make the page",
        helpers.start(claude, "write the footer"),
        say("The helper is at work."),
        say("The page is made."),
    )
    work = claude.shell(f"sleep 0.5; {_COMMIT}", description="Write the footer")
    model.script("write the footer", work, say("Written."))
    done = _iterate(claude)
    assert done.code == 0, done.err
    assert (done.json["status"], done.json["new_commits"]) == ("complete", 1)


def test_a_run_whose_helper_codex_killed_is_interrupted(
    codex: AgentCli, model: Model, repository: Path
) -> None:
    """Even though the agent itself has committed."""
    commit(repository)
    model.script(
        "make the page",
        helpers.start(codex, "write the footer"),
        codex.shell(_COMMIT),
        say("The page is made."),
    )
    model.script("write the footer", hang())
    done = _iterate(codex)
    assert done.code == 16, done.err
    assert done.json["status"] == "interrupted"
    assert "write the footer" in done.out


def _iterate(agent: AgentCli) -> Result:
    words = ("run", "--format", "json", "--no-probe", "--", *agent.command, "make the page")
    return run(*words, env=agent.environ)
