"""A probe of a real session: the answer comes back, and the session does not notice."""

import hashlib
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from guard.core.probe.answer import ProbeResult
from guard.probe import ask
from guard.probe.base import ProbeQuestion
from tests.agent_clis.status import QUESTION, status
from tests.support import write
from tests.support.agent_clis import AgentCli, session_in
from tests.support.model import Model, Step, hang, in_turn, refuse, say
from tests.support.sessions import until

_NOBODYS = "01a1e2e8-0000-7000-8000-000000000000"


@pytest.fixture
def session(agent: AgentCli, model: Model) -> str:
    """A session that has ended."""
    model.script("make the page", agent.shell("echo page > page.html"), say("The page is made."))
    return session_in(agent.run("make the page").out)


def _ask(agent: AgentCli, session: str, *, time_limit: float = 30) -> ProbeResult:
    return ask(
        ProbeQuestion(
            agent=agent.name,
            cwd=Path.cwd(),
            time_limit=time_limit,
            environ=agent.environ,
            now=datetime.now(UTC),
            session=session,
        )
    )


def _bytes_in(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_answer_comes_back_and_the_transcript_stays_byte_identical(
    agent: AgentCli, model: Model, session: str
) -> None:
    before = _bytes_in(agent.sessions)
    model.script(QUESTION, status(agent, status="working", tasks_pending=["the footer"]))
    result = _ask(agent, session)
    assert result.answer is not None, result
    assert (result.answer.status, result.answer.tasks_pending) == ("working", ("the footer",))
    assert "The page is made." in str(model.requests[-1]), "the session knows what it did"
    assert session in "".join(before)
    assert _bytes_in(agent.sessions) == before
    assert Path("page.html").read_text() == "page\n"


def test_a_session_at_work_can_be_asked_and_goes_on(agent: AgentCli, model: Model) -> None:
    work = agent.shell("touch begun; until [ -e asked ]; do sleep 0.1; done")
    model.script("make the page", work, say("The page is made."))
    model.script(QUESTION, status(agent, status="working"))
    with agent.started([*agent.command, "make the page"]) as process:
        assert process.stdout is not None
        seen = process.stdout.readline()
        until(lambda: Path("begun").exists() or process.poll() is not None, 120)
        assert Path("begun").exists(), process.communicate(timeout=120)
        result = _ask(agent, session_in(seen))
        write(Path("asked"), "")
        out, err = process.communicate(timeout=120)
    assert result.answer is not None, result
    assert process.returncode == 0, err
    assert "The page is made." in out


def test_a_probe_can_change_nothing(
    agent: AgentCli, model: Model, session: str, home: Path
) -> None:
    """Not even where the user lets this CLI run every command."""
    write(home / ".claude" / "settings.json", '{"permissions":{"allow":["Bash"]}}')
    model.script(QUESTION, agent.shell("touch touched"), status(agent))
    result = _ask(agent, session)
    assert result.answer is not None, result
    assert not Path("touched").exists()


def test_a_probe_runs_no_hooks(claude: AgentCli, model: Model, home: Path) -> None:
    model.script("make the page", say("The page is made."))
    session = session_in(claude.run("make the page").out)
    hook = [{"hooks": [{"type": "command", "command": f"touch {home}/hooked"}]}]
    settings = {"hooks": {"SessionStart": hook, "Stop": hook}}
    write(home / ".claude" / "settings.json", json.dumps(settings))
    model.script(QUESTION, status(claude))
    assert _ask(claude, session).answer is not None
    assert not (home / "hooked").exists()


@pytest.mark.parametrize(
    ("steps", "failure", "lasting"),
    [
        pytest.param((say("All is well."),) * 2, "unreadable", False, id="prose"),
        pytest.param((refuse(401, "authentication_error"),), "auth", True, id="a refused key"),
        pytest.param((refuse(429, "rate_limit_error"),), "limited", False, id="a limit"),
    ],
)
def test_instead_of_an_answer_comes(
    steps: tuple[Step, ...],
    failure: str,
    lasting: bool,
    agent: AgentCli,
    model: Model,
    session: str,
) -> None:
    before = _bytes_in(agent.sessions)
    model.script(QUESTION, *steps)
    result = _ask(agent, session)
    assert (result.answer, result.failure, result.lasting) == (None, failure, lasting), result
    assert _bytes_in(agent.sessions) == before


def test_silence_ends_at_the_time_limit(agent: AgentCli, model: Model, session: str) -> None:
    model.script(QUESTION, hang())
    began = time.monotonic()
    result = _ask(agent, session, time_limit=1.5)
    assert (result.answer, result.failure, result.lasting) == (None, "timeout", False), result
    assert time.monotonic() - began < 120


def test_an_overloaded_service_is_asked_again(agent: AgentCli, model: Model, session: str) -> None:
    model.script(QUESTION, in_turn(refuse(503, "api_error"), status(agent)))
    result = _ask(agent, session)
    assert result.answer is not None, result


def test_the_answer_to_another_probe_does_not_count(
    agent: AgentCli, model: Model, session: str
) -> None:
    model.script(QUESTION, *[status(agent, nonce="0123456789abcdef")] * 6)
    result = _ask(agent, session)
    assert (result.answer, result.lasting) == (None, False), result


def test_a_session_that_is_not_known_is_not_invented(
    agent: AgentCli, model: Model, session: str
) -> None:
    before = _bytes_in(agent.sessions)
    asked = len(model.requests)
    for unknown in (_NOBODYS, "latest"):
        result = _ask(agent, unknown)
        assert (result.failure, result.lasting) == ("no_session", True), result
    assert len(model.requests) == asked
    assert _bytes_in(agent.sessions) == before
