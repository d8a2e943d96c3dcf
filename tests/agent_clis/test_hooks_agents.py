"""Guard in the sessions of the real CLIs: an agent that wants to stop is asked to finish, so often and no more."""

import json
from pathlib import Path

import pytest

from tests.agent_clis import helpers
from tests.agent_clis.hook_install import checked, decisions, events, guard, installed
from tests.support import commit, git
from tests.support.agent_clis import AgentCli, session_in
from tests.support.model import Model, say
from tests.support.sessions import until

_COMMIT = "git add {0} && git commit -qm 'Add {0}'"
_WRITE = "echo page >> page.html"


@pytest.fixture(autouse=True)
def begun(repository: Path) -> None:
    """There is something to go on from."""
    commit(repository)


def _makes_the_page(agent: AgentCli, model: Model, then: str, said: str) -> None:
    """The agent writes the page, wants to stop, runs one more command, and says something."""
    made = (agent.shell(_WRITE), say("The page is made."))
    model.script("make the page", *made, agent.shell(then), say(said))


def test_a_stop_with_an_uncommitted_file_is_blocked_once_and_the_agent_commits(
    any_agent: AgentCli, model: Model
) -> None:
    hooked = installed(any_agent)
    _makes_the_page(hooked, model, _COMMIT.format("page.html"), "The page is committed.")
    done = hooked.run("make the page")
    assert done.code == 0, done
    assert "The page is committed." in done.out
    assert "page.html" in json.dumps(model.requests[2]), "the agent is told which file"
    assert decisions(hooked) == [("blocked", "uncommitted"), ("released", "clean")]
    found = checked(hooked)
    assert (found["status"], found["reason"]) == ("complete", "commits")


def test_a_session_that_commits_by_itself_is_not_held_up(agent: AgentCli, model: Model) -> None:
    hooked = installed(agent)
    work = hooked.shell(f"{_WRITE} && {_COMMIT.format('page.html')}")
    model.script("make the page", work, say("The page is made."))
    done = hooked.run("make the page")
    assert done.code == 0, done
    assert decisions(hooked) == [("released", "clean")]
    (started,) = events(hooked, "hook_session_started")
    assert (started["began"], started["session"]) == (True, session_in(done.out))


def test_an_agent_that_never_commits_is_let_go_at_guards_own_limit(
    any_agent: AgentCli, model: Model
) -> None:
    """Whether or not it does something in between: Claude Code and Gemini CLI forget then that it was held back."""
    hooked = installed(any_agent)
    model.script(
        "make the page",
        hooked.shell(_WRITE),
        say("The page is made."),
        hooked.shell("git status --short"),
        say("I have looked at it."),
        say("I will not commit."),
    )
    done = hooked.run("make the page")
    assert done.code == 0, done
    blocked = ("blocked", "uncommitted")
    assert decisions(hooked) == [blocked, blocked, ("released", "cap")]
    assert checked(hooked)["status"] != "complete"


def test_the_limit_is_that_of_one_prompt(claude: AgentCli, model: Model) -> None:
    claude = installed(claude)
    model.script("make the page", claude.shell(_WRITE), *[say("Done.")] * 3)
    model.script("make it better", claude.shell(_WRITE), *[say("It is good.")] * 3)
    session = session_in(claude.run("make the page").out)
    claude.run("--resume", session, "make it better")
    blocks = [one["blocks"] for one in events(claude, "stop_decided")]
    assert blocks == [1, 2, 2, 1, 2, 2]


def test_claude_may_stop_while_a_helper_works_and_is_complete_when_it_has_ended(
    claude: AgentCli, model: Model
) -> None:
    claude = installed(claude)
    model.script(
        "make the page",
        helpers.start(claude, "write the footer"),
        say("The helper is at work."),
        say("The page is made."),
    )
    work = f"until [ -e stopped ]; do sleep 0.05; done; rm stopped; touch footer; {_COMMIT}"
    work = work.format("footer")
    model.script("write the footer", claude.shell(work), say("Written."))
    state = Path(claude.environ["HOME"], ".local", "state")
    with claude.started([*claude.command, "make the page"]) as process:
        until(lambda: _says(state, '"reason":"waiting"') or process.poll() is not None, 120)
        assert process.poll() is None, process.communicate(timeout=120)
        assert _status(claude) == "waiting"
        Path("stopped").touch()
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert decisions(claude) == [("released", "waiting"), ("released", "clean")]
    assert _status(claude) == "complete"
    (member,) = _members(claude, session_in(out))
    assert (member["kind"], member["left_because"]) == ("subagent", "ended")


def _says(state: Path, text: str) -> bool:
    """Whether guard's log has this text; read from its file, because asking guard would change it."""
    return any(text in path.read_text() for path in state.rglob("*.jsonl"))


def _status(agent: AgentCli) -> str:
    status: str = checked(agent)["status"]
    return status


def _members(agent: AgentCli, session: str) -> list[dict[str, object]]:
    done = guard(agent, "team", "show", "--all", "--session", session, "--format", "json")
    found: list[dict[str, object]] = done.json["members"]
    return found


def test_codex_is_asked_to_wait_for_its_helper(
    codex: AgentCli, model: Model, repository: Path
) -> None:
    """It would kill the helper with its own end."""
    codex = installed(codex)
    begun = "touch begun; until [ -e asked ]; do sleep 0.05; done"
    model.script(
        "make the page",
        helpers.start(codex, "write the footer"),
        codex.shell("until [ -e begun ]; do sleep 0.05; done"),
        say("The page is made."),
        helpers.wait(model),
        say("The page and its footer are made."),
    )
    work = f"{begun}; rm begun asked; touch footer; {_COMMIT.format('footer')}"
    model.script("write the footer", codex.shell(work), say("Written."))
    with codex.started([*codex.command, "make the page"]) as process:
        until(lambda: len(model.requests) > 4 or process.poll() is not None, 120)
        Path("asked").touch()
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert decisions(codex) == [("blocked", "team"), ("released", "clean")]
    (blocked, _) = events(codex, "stop_decided")
    (helper,) = _members(codex, session_in(out))
    assert blocked["members"] == 1
    assert str(helper["member"]) in json.dumps(model.requests[4:]), "the agent is told which helper"
    assert helper["left_because"] == "ended"
    assert git(repository, "log", "-1", "--format=%s") == "Add footer\n"
