"""`guard run` around the real CLIs, from the first prompt to the verdict."""

import json
import os
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.agent_clis.limits import SUBSCRIPTION, exhausted
from tests.agent_clis.status import QUESTION, status
from tests.support import ROOT, Result, commit, git, run
from tests.support.agent_clis import AgentCli, session_in
from tests.support.model import Model, hang, refuse, say
from tests.support.sessions import until

_QUICK = ("--format", "json", "--max-probes", "2", "--probe-interval", "0.2")
_COMMIT = "echo page > page.html && git add page.html && git commit -qm 'Add the page'"


@pytest.fixture(autouse=True)
def begun(repository: Path) -> None:
    """There is something to go on from."""
    commit(repository)


def _iterate(agent: AgentCli, *command: str, env: dict[str, str] | None = None) -> Result:
    words = command or agent.command
    return run("run", *_QUICK, "--", *words, "make the page", env={**agent.environ, **(env or {})})


def _transcripts(agent: AgentCli) -> list[str]:
    return [path.read_text() for path in agent.sessions.rglob("*.jsonl")]


def test_a_session_that_commits_is_complete(
    agent: AgentCli, model: Model, repository: Path
) -> None:
    model.script("make the page", agent.shell(_COMMIT), say("The page is made."))
    done = _iterate(agent)
    assert done.code == 0, done.err
    found = done.json
    assert (found["status"], found["reason"], found["new_commits"]) == ("complete", "commits", 1)
    assert found["probes"] == 0
    assert "The page is made." in done.err


def test_a_session_that_forgets_to_commit_is_rescued(
    agent: AgentCli, model: Model, repository: Path
) -> None:
    model.script("make the page", agent.shell("echo page > page.html"), say("The page is made."))
    model.script(QUESTION, status(agent))
    done = _iterate(agent)
    assert done.code == 0, done.err
    found = done.json
    assert (found["status"], found["reason"], found["rescued"]) == ("complete", "rescued", True)
    assert (found["new_commits"], found["rescued_commits"], found["probes"]) == (0, 1, 1)
    assert "Guard-Rescue: " in git(repository, "log", "-1", "--format=%B", "--", "page.html")
    assert git(repository, "status", "--porcelain") == ""
    (transcript,) = _transcripts(agent)
    assert QUESTION not in transcript


def test_a_session_that_prints_plain_text_can_be_asked_too(agent: AgentCli, model: Model) -> None:
    model.script("make the page", agent.shell("echo page > page.html"), say("The page is made."))
    model.script(QUESTION, status(agent))
    plain = [word for word in agent.command if word not in ("--json", "--verbose")]
    done = _iterate(agent, *(word.replace("stream-json", "text") for word in plain))
    assert done.code == 0, done.err
    assert (done.json["reason"], done.json["probes"]) == ("rescued", 1)


def test_a_session_outside_guard_is_checked_by_its_id(agent: AgentCli, model: Model) -> None:
    model.script("make the page", agent.shell("echo page > page.html"), say("The page is made."))
    model.script(QUESTION, status(agent))
    assert run("baseline", env=agent.environ).code == 0
    session = session_in(agent.run("make the page").out)
    asked = ("--agent", agent.name, "--session", session)
    done = run("check", *_QUICK, *asked, env=agent.environ)
    assert done.code == 0, done.err
    assert (done.json["reason"], done.json["probes"]) == ("rescued", 1)


def test_a_session_that_has_work_left_stalls_and_its_work_is_safe(
    agent: AgentCli, model: Model, repository: Path
) -> None:
    model.script("make the page", agent.shell("echo half > page.html"), say("More tomorrow."))
    model.script(QUESTION, status(agent, status="working", tasks_pending=["the footer"]))
    done = _iterate(agent)
    assert done.code == 10, done.err
    found = done.json
    assert (found["status"], found["probes"], found["rescued"]) == ("timeout", 1, True)
    assert git(repository, "show", "HEAD:page.html") == "half\n"


def test_a_usage_limit_says_until_when(agent: AgentCli, model: Model) -> None:
    until = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(hours=2)
    model.script("make the page", exhausted(agent, until))
    done = _iterate(agent, env=SUBSCRIPTION)
    assert done.code == 13, done.err
    assert (done.json["status"], done.json["probes"]) == ("limited", 0)
    assert datetime.fromisoformat(done.json["retry_at"]) == until


def test_a_refused_key_needs_a_person(agent: AgentCli, model: Model) -> None:
    model.script("make the page", refuse(401, "authentication_error", "invalid x-api-key"))
    done = _iterate(agent)
    assert (done.code, done.json["status"]) == (14, "blocked"), done.err


def test_a_session_whose_model_stops_answering_is_ended(agent: AgentCli, model: Model) -> None:
    model.script("make the page", agent.shell("echo half > page.html"), hang(300))
    model.script(QUESTION, status(agent, status="working", tasks_pending=["the page"]))
    done = _iterate(agent, env={"GUARD_RUN__MAX_SILENCE_SECONDS": "20"})
    assert done.code == 10, done.err
    assert (done.json["status"], done.json["reason"]) == ("timeout", "hung")
    assert done.json["snapshot"] is not None


def test_a_question_needs_a_person_and_stands_in_the_verdict(agent: AgentCli, model: Model) -> None:
    asked = "Which database shall the page use, PostgreSQL or SQLite? Please let me know."
    model.script("make the page", say(f"I looked around. {asked}"))
    done = _iterate(agent)
    assert done.code == 14, done.err
    assert (done.json["status"], done.json["reason"]) == ("blocked", "question")
    assert "PostgreSQL or SQLite?" in done.json["detail"]


def test_a_server_that_a_session_leaves_running_holds_nothing_up(
    agent: AgentCli, model: Model, repository: Path, tmp_path: Path
) -> None:
    server = f"setsid {sys.executable} -m http.server --bind 127.0.0.1 0"
    start = f"{server} >/dev/null 2>&1 </dev/null & echo $! > {tmp_path}/server"
    model.script(
        "make the page", agent.shell(f"{start}; echo page > page.html"), say("The page is made.")
    )
    model.script(QUESTION, status(agent))
    done = _iterate(agent)
    with suppress(ProcessLookupError):
        os.kill(int((tmp_path / "server").read_text()), signal.SIGKILL)
    assert done.code == 0, done.err
    assert (done.json["reason"], done.json["probes"]) == ("rescued", 1)
    assert git(repository, "status", "--porcelain") == ""


def test_claude_killed_with_its_background_work_is_interrupted(
    claude: AgentCli, model: Model, repository: Path
) -> None:
    work = claude.shell("sleep 20", description="the long build", run_in_background=True)
    model.script("make the page", work, claude.shell("kill -TERM $CLAUDE_PID; sleep 20"))
    done = _iterate(claude)
    assert done.code == 16, done.err
    assert done.json["status"] == "interrupted"
    assert "the long build" in done.out


def test_codex_that_leaves_a_command_running_is_interrupted(
    codex: AgentCli, model: Model, repository: Path
) -> None:
    work = codex.shell("echo half > page.html; sleep 20", yield_time_ms=250)
    model.script("make the page", work, say("The build runs."))
    done = _iterate(codex)
    assert done.code == 16, done.err
    assert done.json["status"] == "interrupted"
    assert "sleep 20" in done.out


def test_a_session_that_a_person_stops_is_never_complete(agent: AgentCli, model: Model) -> None:
    """Claude Code exits with 0 then."""
    model.script("make the page", agent.shell("touch begun; sleep 120"))
    words = ["run", *_QUICK, "--", *agent.command, "make the page"]
    with agent.started([sys.executable, "-m", "guard", *words], {"PYTHONPATH": str(ROOT)}) as guard:
        until(lambda: Path("begun").exists() or guard.poll() is not None, 120)
        assert Path("begun").exists(), guard.communicate(timeout=120)
        os.killpg(guard.pid, signal.SIGINT)
        out, err = guard.communicate(timeout=120)
    assert guard.returncode == 130, err
    assert json.loads(out)["status"] == "interrupted"
