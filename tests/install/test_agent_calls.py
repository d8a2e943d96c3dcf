"""What stands in the installed files, run as the agents' programs run it: by a shell, with a document on stdin."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from guard.core.hooks.event_kinds import ANSWERED, KINDS
from guard.core.hooks.payload import HookCall
from guard.install.agents import AGENT_CLIS
from tests.hooks.agent.documents import DOCUMENTS
from tests.support import ROOT, run

SHELL = ["sh", "-c"]


def heard(home: Path) -> list[HookCall]:
    files = sorted((home / "state/guard/spool.d").glob("*/*.json"))
    return [HookCall.model_validate_json(one.read_bytes()) for one in files]


def hooks(path: Path, agent: str) -> dict[str, str]:
    """By event, the one command in a settings file."""
    found: dict[str, Any] = json.loads(path.read_text())["hooks"]
    if agent == "copilot":
        return {event: items[0]["bash"] for event, items in found.items()}
    return {event: items[0]["hooks"][0]["command"] for event, items in found.items()}


@pytest.mark.parametrize("agent", [agent for agent in AGENT_CLIS if agent != "opencode"])
def test_a_shell_runs_what_was_installed(agent: str, repository: Path, home: Path) -> None:
    done = run("install", agent, "--format", "json")
    lines = hooks(Path(done.json["paths"][0]), agent).items()
    # Those that answer take in what the others have told, so they come first here.
    for event, line in sorted(lines, key=lambda one: KINDS[agent][one[0]] not in ANSWERED):
        document = {**DOCUMENTS[agent].get(event, {}), "cwd": str(repository)}
        ran = subprocess.run(
            [*SHELL, line],
            input=json.dumps(document).encode(),
            capture_output=True,
            timeout=90,
            check=False,
        )
        assert ran.returncode == 0, (event, ran)
        if KINDS[agent][event] not in ANSWERED:
            assert (ran.stdout, ran.stderr) == (b"", b""), event
    observed = {event for event in AGENT_CLIS[agent].events if KINDS[agent][event] not in ANSWERED}
    assert {one.event for one in heard(home)} == observed


def test_a_command_of_ones_own_is_run_with_its_mark(repository: Path, home: Path) -> None:
    program = repository / "my guard.sh"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m guard "$@"\n')
    program.chmod(0o755)
    done = run("install", "claude", "--command", f"'{program}'", "--format", "json")
    line = hooks(Path(done.json["paths"][0]), "claude")["PostToolUse"]
    assert line.endswith("# completion-guard")
    subprocess.run([*SHELL, line], input=b"{}", timeout=90, check=True)
    assert [one.event for one in heard(home)] == ["PostToolUse"]


PLAY = """
const { Guard } = await import(process.argv[2]);
const hooks = await Guard({ directory: process.argv[3], worktree: process.argv[3] });
const about = (type, properties) => hooks.event({ event: { type, properties } });
await about("session.created", { info: { id: "s1" } });
await about("session.created", { info: { id: "child", parentID: "s1" } });
await about("message.updated", { sessionID: "s1", info: { id: "m2", parentID: "m1" } });
await hooks["chat.message"]({ sessionID: "s1", messageID: "m1" });
await hooks["tool.execute.before"]({ sessionID: "s1", tool: "bash" });
await hooks["tool.execute.after"]({ sessionID: "s1", tool: "bash" });
await about("session.idle", { sessionID: "child" });
await about("session.error", { sessionID: "s1", error: { name: "APIError" } });
await about("session.idle", { sessionID: "s1" });
await about("session.deleted", { info: { id: "s1" } });
await about("message.updated", {});
await hooks.event();
await hooks.event({ event: null });
await hooks["chat.message"]();
console.log("played");
"""


def node(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")
    return subprocess.run(
        [program, "--input-type=module", "-", *words],
        input=script,
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )


def listener(folder: Path) -> tuple[str, Path]:
    """A command that keeps what it is called with, a line for each call."""
    log = folder / "calls"
    program = folder / "listen.py"
    program.write_text(
        "import os, sys\n"
        "line = ' '.join(sys.argv[1:]) + ' ' + sys.stdin.read() + '\\n'\n"
        f"os.write(os.open({str(log)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), line.encode())\n"
    )
    return f"{sys.executable} {program}", log


def plugin(repository: Path, command: str) -> Path:
    done = run("install", "opencode", "--command", command, "--format", "json")
    assert done.code == 0
    module = repository / "plugin.mjs"
    shutil.copy(done.json["paths"][0], module)
    return module


def test_the_plugin_of_opencode_tells_what_it_sees(repository: Path, tmp_path: Path) -> None:
    command, log = listener(tmp_path)
    module = plugin(repository, command)
    waiting = 'import { existsSync, readFileSync } from "node:fs";\n'
    # Calls that the plugin does not wait for may still be on their way.
    until = f"""
const counted = () => existsSync({json.dumps(str(log))})
  ? readFileSync({json.dumps(str(log))}, "utf8").split("\\n").length - 1 : 0;
for (let look = 0; look < 800 && counted() < 8; look++) await new Promise((done) => setTimeout(done, 100));
"""
    assert "played" in node(waiting + PLAY + until, str(module), str(repository)).stdout
    calls = sorted(line.split(" ", 3) for line in log.read_text().splitlines())
    told = [(call[2], json.loads(call[3])) for call in calls]
    assert [call[:2] for call in calls] == [["hook", "opencode"]] * 8
    assert sorted(event for event, _ in told if event != "chat.message") == [
        "session.created",
        "session.deleted",
        "session.error",
        "session.idle",
        "tool.execute.after",
        "tool.execute.before",
    ]
    assert {event for event, _ in told} == set(AGENT_CLIS["opencode"].events)
    assert {document.get("session_id") for _, document in told} <= {"s1", None}
    assert {document["cwd"] for _, document in told} == {str(repository)}
    by_event = {event: document for event, document in told if document.get("session_id")}
    assert by_event["session.created"]["source"] == "startup"
    assert by_event["session.error"]["error"] == "APIError"
    assert by_event["tool.execute.after"]["tool_name"] == "bash"


@pytest.mark.parametrize("command", ["/proc/nowhere/guard", "sleep 300;", "exit 3;", "kill -9 $$;"])
def test_the_plugin_neither_throws_nor_waits(command: str, repository: Path) -> None:
    # The processes that it leaves behind end with their group: it started them in groups of their own.
    module = plugin(repository, command.replace("sleep 300", "sleep 20"))
    assert "played" in node(PLAY, str(module), str(repository)).stdout


def test_the_plugin_is_a_script_that_guard_would_write_again(repository: Path) -> None:
    shipped = (ROOT / "hooks" / "opencode" / "guard.js").read_text()
    assert os.path.samefile(repository, Path.cwd())
    done = run("install", "opencode", "--command", "guard", "--format", "json")
    assert Path(done.json["paths"][0]).read_text() == shipped
