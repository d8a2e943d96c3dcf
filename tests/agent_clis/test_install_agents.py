"""What `guard install` writes, in the eyes of the real CLIs."""

from pathlib import Path

import pytest

from tests.agent_clis.hook_install import decisions, events, guard, installed, with_guard
from tests.support import commit
from tests.support.agent_clis import AgentCli
from tests.support.model import Model, say

_COMMIT = "git add page.html && git commit -qm 'Add the page'"


@pytest.fixture(autouse=True)
def begun(repository: Path) -> None:
    """There is something to go on from."""
    commit(repository)


def _asked_to_commit(agent: AgentCli, model: Model) -> None:
    model.script(
        "make the page",
        agent.shell("echo page > page.html"),
        say("The page is made."),
        agent.shell(_COMMIT),
        say("The page is committed."),
    )


def test_claudes_plugin_is_valid_and_its_hooks_are_called(
    claude: AgentCli, model: Model, tmp_path: Path
) -> None:
    claude = with_guard(claude)
    plugin = str(tmp_path / "plugin")
    done = guard(claude, "install", "claude", "--plugin", plugin)
    assert done.code == 0, done
    valid = claude.call("claude", "plugin", "validate", plugin)
    assert valid.code == 0, valid
    _asked_to_commit(claude, model)
    done = claude.run("--plugin-dir", plugin, "make the page")
    assert done.code == 0, done
    assert decisions(claude) == [("blocked", "uncommitted"), ("released", "clean")]


@pytest.mark.parametrize("scope", ["--user", "--project"])
def test_the_hooks_are_called_and_after_uninstall_they_are_not(
    scope: str, claude: AgentCli, model: Model, repository: Path
) -> None:
    claude = with_guard(claude)
    assert guard(claude, "install", "claude", scope).code == 0
    _asked_to_commit(claude, model)
    assert claude.run("make the page").code == 0
    assert len(decisions(claude)) == 2
    assert guard(claude, "uninstall", "claude", scope).code == 0
    model.script("make another", claude.shell("echo page > other.html"), say("Made."))
    assert claude.run("make another").code == 0
    assert len(decisions(claude)) == 2


def test_codex_does_not_call_hooks_that_nobody_has_approved(codex: AgentCli, model: Model) -> None:
    codex = installed(codex, trusted=False)
    model.script("make the page", codex.shell("echo page > page.html"), say("The page is made."))
    assert codex.run("make the page").code == 0
    assert events(codex, "stop_decided", "hook_session_started") == []
    doctor = guard(codex, "doctor")
    assert "not trusted" in doctor.out, doctor
