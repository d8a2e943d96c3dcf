"""The files that ship with guard for the agents' programs."""

import json
from typing import Any

import pytest

from guard import __version__
from guard.install import plugins
from guard.install.agents import AGENT_CLIS
from guard.install.json_edit import render
from tests.support import ROOT


def read(path: str) -> Any:
    return json.loads((ROOT / path).read_text())


def test_the_plugin_folder_is_what_guard_would_write() -> None:
    shipped = ROOT / "hooks" / "claude-plugin"
    made = plugins.claude_plugin("guard")
    assert {
        str(path.relative_to(shipped)): path.read_text()
        for path in shipped.rglob("*")
        if path.is_file()
    } == made


@pytest.mark.parametrize("agent", ["codex", "gemini"])
def test_the_hooks_of_the_other_plugins_are_those_that_guard_would_install(agent: str) -> None:
    kind = {"codex": "plugin", "gemini": "extension"}[agent]
    text = (ROOT / "hooks" / f"{agent}-{kind}" / "hooks" / "hooks.json").read_text()
    assert text == render({"hooks": AGENT_CLIS[agent].hooks("guard")})


@pytest.mark.parametrize(
    "manifest",
    [
        ".claude-plugin/plugin.json",
        "hooks/claude-plugin/.claude-plugin/plugin.json",
        "hooks/codex-plugin/.codex-plugin/plugin.json",
        "hooks/gemini-extension/gemini-extension.json",
    ],
)
def test_a_plugin_has_guards_version(manifest: str) -> None:
    assert (read(manifest)["name"], read(manifest)["version"]) == ("completion-guard", __version__)


def test_the_marketplaces_lead_to_the_plugins() -> None:
    (claude,) = read(".claude-plugin/marketplace.json")["plugins"]
    assert (ROOT / claude["source"] / ".claude-plugin" / "plugin.json").is_file()
    (codex,) = read(".agents/plugins/marketplace.json")["plugins"]
    assert (ROOT / codex["source"]["path"] / ".codex-plugin" / "plugin.json").is_file()
    assert (ROOT / read(".claude-plugin/plugin.json")["hooks"]).is_file()
