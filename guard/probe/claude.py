"""Claude Code: a fork of the session that is not kept, without tools, servers or hooks.

`--continue` is never used: without a session it begins a new one, which then invents a status. The money it reports includes
the history of the session, so only the tokens are this probe's own.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from guard.core.base.agent_json import part_of
from guard.core.base.json_text import loads
from guard.probe import base

_MODEL = "sonnet"
_MOST_SESSION_BYTES = 65536


def _call(probe: base.ProbeCall) -> base.Call:
    argv = [probe.program, "-p", probe.text, "--resume", probe.session]
    argv += ["--fork-session", "--no-session-persistence", "--tools", "", "--strict-mcp-config"]
    argv += ["--json-schema", json.dumps(probe.schema), "--output-format", "json"]
    argv += ["--settings", '{"disableAllHooks":true}', *probe.model("--model", _MODEL)]
    return base.Call(argv, probe.question.cwd, {**probe.environ, "DISABLE_AUTOUPDATER": "1"})


def _read_output(output: bytes) -> base.ProbeOutput:
    result = base.last_event(base.read_events(output), "result")
    usage = part_of(result, "usage")
    tokens = base.sum_counts(*(value for name, value in usage.items() if name.endswith("_tokens")))
    return base.read_result(result, "structured_output", tokens)


CLI = base.Cli(base.fixed_program("claude"), _call, _read_output)


def find_session(group: int, environ: Mapping[str, str]) -> str | None:
    """Return the session of the Claude Code that runs in this process group; None if none does, or more than one.

    Claude Code does not print its session, but tells it in a file named by its process, while it runs.
    """
    home = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(environ.get("HOME", "/"), ".claude")
    folder = Path(home) / "sessions"
    pids = [pid for pid in _pids_in(folder) if _group_of(pid) == group]
    found = {session for pid in pids for session in _sessions_in(folder / f"{pid}.json")}
    return found.pop() if len(found) == 1 else None


def _pids_in(folder: Path) -> list[int]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [int(name[:-5]) for name in names if re.fullmatch(r"[1-9][0-9]{0,9}\.json", name)]


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except (ProcessLookupError, PermissionError):
        return None  # The process has ended: a file that it left is not believed.


def _sessions_in(path: Path) -> list[str]:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            document = loads(file.read(_MOST_SESSION_BYTES))
    except (OSError, ValueError):
        return []
    session = document.get("sessionId") if isinstance(document, dict) else None
    return [session] if isinstance(session, str) and base.UUID.fullmatch(session) else []
