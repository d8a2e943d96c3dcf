"""What guard installs, as the real agent CLIs see it."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from guard.install.agents import AGENT_CLIS
from guard.install.trust import read_trust
from tests.support import ROOT, run, write
from tests.support.agent_clis import AgentCli


def test_claude_finds_the_plugin_folder_valid(claude: AgentCli, tmp_path: Path) -> None:
    assert run("install", "claude", "--plugin", tmp_path / "plugin").code == 0
    for folder in (tmp_path / "plugin", ROOT / "hooks" / "claude-plugin"):
        checked = claude.call("claude", "plugin", "validate", str(folder))
        assert checked.code == 0, checked.out
        assert "Validation passed" in checked.out


def listed(codex: AgentCli, folder: Path) -> list[dict[str, Any]]:
    """The hooks that Codex knows of in a folder."""
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(folder)]}},
    ]
    program = shutil.which("codex", path=codex.environ["PATH"])
    assert program
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        [program, "app-server"],
        env=codex.environ,
        stdin=pipe,
        stdout=pipe,
        stderr=nowhere,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        # It ends with its input, so that stays open until the answer is there.
        process.stdin.writelines(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
        process.stdin.flush()
        answers = map(json.loads, process.stdout)
        answer = next(found for found in answers if found.get("id") == 2)
        process.kill()
    hooks: list[dict[str, Any]] = answer["result"]["data"][0]["hooks"]
    return hooks


def test_codex_lists_the_hooks_and_trusts_what_doctor_takes_for_trusted(
    codex: AgentCli, repository: Path, home: Path
) -> None:
    assert run("install", "codex").code == 0
    path = repository / ".codex" / "hooks.json"
    config = home / ".codex" / "config.toml"
    project = f'\n[projects."{repository}"]\ntrust_level = "trusted"\n'
    write(config, config.read_text() + project)
    before = listed(codex, repository)
    assert len(before) == len(AGENT_CLIS["codex"].events)
    assert {hook["trustStatus"] for hook in before} == {"untrusted"}
    environ = {"HOME": str(home)}
    found = read_trust(AGENT_CLIS["codex"], "project", path, repository, environ)
    assert found is not None
    assert found.text == "not trusted"
    approved = "".join(
        f'[hooks.state."{hook["key"]}"]\ntrusted_hash = "{hook["currentHash"]}"\n'
        for hook in before
    )
    write(config, config.read_text() + approved)
    assert {hook["trustStatus"] for hook in listed(codex, repository)} == {"trusted"}
    found = read_trust(AGENT_CLIS["codex"], "project", path, repository, environ)
    assert found is not None
    assert found.text == "trusted"
