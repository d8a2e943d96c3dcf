"""Guard's hooks as a plugin from the checkout: installed by the CLI's own commands, called, removed, and gone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent_clis.hook_install import decisions, with_guard
from tests.support import ROOT, commit
from tests.support.agent_clis import AgentCli
from tests.support.model import Model, say

NAME = "completion-guard"
PLUGIN = f"{NAME}@{NAME}"
HELD = [("blocked", "uncommitted"), ("released", "clean")]


@pytest.fixture(autouse=True)
def begun(repository: Path) -> None:
    """There is something to go on from."""
    commit(repository)


def called(agent: AgentCli, *argv: str) -> str:
    """Call a command of the CLI that has to succeed, and return what it printed."""
    done = agent.call(agent.name, *argv)
    assert done.code == 0, done
    return done.out + done.err


def leave_and_commit(agent: AgentCli, model: Model) -> None:
    """A session that wants to stop with uncommitted work, and commits it when it is asked to."""
    model.script(
        "make the page",
        agent.shell("echo page > page.html"),
        say("The page is made."),
        agent.shell("git add page.html && git commit -qm 'Add the page'"),
        say("The page is committed."),
    )
    done = agent.run("make the page")
    assert done.code == 0, done
    assert decisions(agent) == HELD


def leave_unasked(agent: AgentCli, model: Model) -> None:
    """The same without the plugin: no hook asks."""
    model.script("make another", agent.shell("echo page > other.html"), say("Made."))
    done = agent.run("make another")
    assert done.code == 0, done
    assert decisions(agent) == HELD


def test_claude_code(claude: AgentCli, model: Model, home: Path) -> None:
    claude = with_guard(claude)
    assert "Validation passed" in called(claude, "plugin", "validate", str(ROOT))
    called(claude, "plugin", "marketplace", "add", str(ROOT))
    called(claude, "plugin", "install", PLUGIN)
    assert PLUGIN in called(claude, "plugin", "list")
    leave_and_commit(claude, model)
    called(claude, "plugin", "uninstall", PLUGIN)
    called(claude, "plugin", "marketplace", "remove", NAME)
    assert PLUGIN not in called(claude, "plugin", "list")
    settings = json.loads((home / ".claude" / "settings.json").read_text())
    assert settings == {"enabledPlugins": {}, "extraKnownMarketplaces": {}}
    leave_unasked(claude, model)


def test_codex(codex: AgentCli, model: Model, home: Path) -> None:
    codex = with_guard(codex)
    # Codex calls a plugin's hooks only after a person has approved them; this flag stands for that.
    codex = replace(codex, command=(*codex.command, "--dangerously-bypass-hook-trust"))
    before = (home / ".codex" / "config.toml").read_text()
    called(codex, "plugin", "marketplace", "add", str(ROOT))
    called(codex, "plugin", "add", PLUGIN)
    leave_and_commit(codex, model)
    called(codex, "plugin", "remove", PLUGIN)
    called(codex, "plugin", "marketplace", "remove", NAME)
    assert NAME not in (home / ".codex" / "config.toml").read_text().removeprefix(before)
    leave_unasked(codex, model)


def test_gemini(gemini: AgentCli, model: Model, home: Path) -> None:
    gemini = with_guard(gemini)
    folder = str(ROOT / "hooks" / "gemini-extension")
    called(gemini, "extensions", "validate", folder)
    called(gemini, "extensions", "install", "--consent", folder)
    leave_and_commit(gemini, model)
    called(gemini, "extensions", "uninstall", NAME)
    assert not (home / ".gemini" / "extensions" / NAME).exists()
    leave_unasked(gemini, model)
