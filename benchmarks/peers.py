"""Other tools beside guard: installed from PyPI into environments of their own, and asked by their own interfaces."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import progress

_SECONDS = 1200
_CASE_SECONDS = 600
_NO_TELEMETRY = {"OPENHANDS_SUPPRESS_BANNER": "1", "DO_NOT_TRACK": "1", "LITELLM_LOG": "ERROR"}


@dataclass(frozen=True)
class Peer:
    """A package with its pinned version, and the oldest Python that it runs on."""

    package: str
    version: str
    oldest: tuple[int, int] = (3, 11)

    @property
    def name(self) -> str:
        return f"{self.package} {self.version}"


PROOF_OF_DONE = Peer("proof-of-done", "0.1.1")
CLAIMPROOF = Peer("claimproof", "0.15.0")
PROOFED_AGENT = Peer("proofed-agent", "0.1.0a3")
OPENHANDS = Peer("openhands-sdk", "1.58.2", (3, 12))
PEERS = (PROOF_OF_DONE, CLAIMPROOF, PROOFED_AGENT, OPENHANDS)


class NotInstalled(Exception):
    """The peer cannot be installed here; the reason is the message."""


def install(peer: Peer) -> Path:
    """Return the folder with the programs of a peer's environment, which stays for later runs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "guard-benchmarks")
    folder = cache / f"{peer.package}-{peer.version}"
    if (folder / "installed").exists():
        return folder / "bin"
    progress(f"installing {peer.name} into {folder} ...")
    _run([_python(peer), "-m", "venv", "--clear", str(folder)])
    _run([str(folder / "bin" / "pip"), "install", "-q", f"{peer.package}=={peer.version}"])
    (folder / "installed").touch()
    return folder / "bin"


def _python(peer: Peer) -> str:
    named = [f"python3.{minor}" for minor in range(peer.oldest[1], 15)]
    managed = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
    for python in (sys.executable, *named, *map(str, managed)):
        done = _answer([python, "-c", "import sys; print(*sys.version_info[:2])"])
        if done and tuple(map(int, done.split())) >= peer.oldest:
            return python
    raise NotInstalled(f"needs Python {'.'.join(map(str, peer.oldest))}, which is not here")


def _answer(argv: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _run(argv: Sequence[str]) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(str(error)) from None
    if done.returncode != 0:
        raise NotInstalled((done.stderr.strip().splitlines() or ["it failed"])[-1])


_READ_SESSIONS = {
    PROOF_OF_DONE: """
import contextlib, io, json, sys
from proof_of_done.cli import main

def blocks(path):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        main(["check", "--transcript", path, "--json"])
    return json.loads(said.getvalue())["decision"] == "block"
""",
    CLAIMPROOF: """
import json, sys
from claimproof.claude_code import decide

def blocks(path):
    return decide({"transcript_path": path, "stop_hook_active": False}) is not None
""",
}


def blocks_sessions(
    peer: Peer, programs: Path, folder: Path, transcripts: Sequence[list[Any]]
) -> list[bool]:
    """Tell of each session of Claude Code whether a peer that reads transcripts would not let it stop."""
    paths = []
    for number, lines in enumerate(transcripts):
        path = folder / f"transcript-{number}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        paths.append(str(path))
    script = f"{_READ_SESSIONS[peer]}\nprint(json.dumps([blocks(path) for path in json.load(sys.stdin)]))"
    said = _ask([str(programs / "python"), "-c", script], folder, json.dumps(paths))
    found: list[bool] = json.loads(said)
    return found


def refuses_tree(programs: Path, project: Path, environ: Mapping[str, str]) -> bool | None:
    """Tell whether proofed-agent refuses what is in a work tree; None if it knows no way to test it."""
    proofed = str(programs / "proofed")
    if "commands: []" in (_ask([proofed, "init"], project, environ=environ)):
        return None
    _ask([proofed, "run", ".", "--intent", "finish"], project, environ=environ)
    said = _ask([proofed, "verify", "--run-tests"], project, environ=environ)
    return None if "no canonical test command" in said else "PASSED" not in said


def _ask(
    argv: Sequence[str], folder: Path, stdin: str = "", environ: Mapping[str, str] | None = None
) -> str:
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            env={**os.environ, **(environ or {}), **_NO_TELEMETRY},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_CASE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "time over"
    return done.stdout + done.stderr if argv[0].endswith("proofed") else done.stdout


def transcript(message: str, files: Sequence[str], command: str | None, code: int = 0) -> list[Any]:
    """Return a session of Claude Code: each file edited, the command run with this exit code, and the last message."""
    calls: list[tuple[str, dict[str, str], str, bool]] = [
        ("Edit", {"file_path": name, "old_string": "a", "new_string": "b"}, "edited", False)
        for name in files
    ]
    if command is not None:
        said = "1 failed" if code else "3 passed in 0.10s"
        calls.append(("Bash", {"command": command}, said, code != 0))
    lines: list[Any] = [_line("user", "do the task", 0)]
    for number, (name, given, output, failed) in enumerate(calls, 1):
        use = {"type": "tool_use", "id": f"t{number}", "name": name, "input": given}
        result = {
            "type": "tool_result",
            "tool_use_id": f"t{number}",
            "content": output,
            "is_error": failed,
        }
        lines += [_line("assistant", [use], 2 * number), _line("user", [result], 2 * number + 1)]
    text = [{"type": "text", "text": message}]
    return [*lines, _line("assistant", text, 2 * len(calls) + 2)]


def _line(role: str, content: Any, number: int) -> dict[str, Any]:
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": "s",
        "cwd": "/project",
        "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000Z",
        "isSidechain": False,
        "message": {"role": role, "content": content},
    }


_STUCK = """
import json, sys
from types import SimpleNamespace
from openhands.sdk.conversation.stuck_detector import StuckDetector
from openhands.sdk.event import ActionEvent, AgentErrorEvent, MessageEvent, ObservationEvent
from openhands.sdk.llm import Message, MessageToolCall, TextContent
from openhands.sdk.tool.schema import Action, Observation
from openhands.sdk.conversation.types import StuckDetectionThresholds

class CallAction(Action):
    given: str

class CallObservation(Observation):
    pass

def events(script):
    for number, step in enumerate(script):
        if step["kind"] in ("say", "person"):
            role = "assistant" if step["kind"] == "say" else "user"
            source = "agent" if step["kind"] == "say" else "user"
            message = Message(role=role, content=[TextContent(text=step["text"])])
            yield MessageEvent(source=source, llm_message=message)
            continue
        name, key = step["tool"], f"c{number}"
        call = MessageToolCall(id=key, name=name, arguments=step["input"], origin="completion")
        action = ActionEvent(
            source="agent", thought=[], action=CallAction(given=step["input"]), tool_name=name,
            tool_call_id=key, tool_call=call, llm_response_id=key,
        )
        yield action
        if step["failed"]:
            yield AgentErrorEvent(error=step["output"], tool_name=name, tool_call_id=key)
        else:
            said = CallObservation(content=[TextContent(text=step["output"])])
            yield ObservationEvent(
                observation=said, action_id=action.id, tool_name=name, tool_call_id=key
            )

def is_stuck(script):
    seen = []
    state = SimpleNamespace(active_branch=lambda limit=None: seen[-limit:] if limit else seen)
    detector = StuckDetector(state, StuckDetectionThresholds())
    for event in events(script):
        seen.append(event)
        if detector.is_stuck():
            return True
    return False

print(json.dumps([is_stuck(script) for script in json.load(sys.stdin)]))
"""


def stuck(programs: Path, scripts: Sequence[list[dict[str, Any]]]) -> list[bool]:
    """Ask the OpenHands SDK's detector after each step of each session, with its own thresholds."""
    done = subprocess.run(
        [str(programs / "python"), "-c", _STUCK],
        input=json.dumps(scripts),
        env={**os.environ, **_NO_TELEMETRY},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise NotInstalled((done.stderr.strip().splitlines() or ["it failed"])[-1])
    found: list[bool] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
