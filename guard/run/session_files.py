"""The session of an agent that does not print it: Claude Code tells it in a file named by its process, while it runs."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from guard.core.base.strict_json import loads

_SESSION = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MOST_BYTES = 65536


def claude_session(group: int, environ: Mapping[str, str]) -> str | None:
    """The session of the Claude Code that runs in this process group; None if none does, or more than one."""
    folder = _folder(environ)
    ours = [pid for pid in _running(folder) if _group(pid) == group]
    found = {session for pid in ours for session in _told(folder / f"{pid}.json")}
    return found.pop() if len(found) == 1 else None


def _folder(environ: Mapping[str, str]) -> Path:
    home = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(environ.get("HOME", "/"), ".claude")
    return Path(home) / "sessions"


def _running(folder: Path) -> list[int]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [int(name[:-5]) for name in names if re.fullmatch(r"[1-9][0-9]{0,9}\.json", name)]


def _group(pid: int) -> int | None:
    """None if the process has ended: a file that it left is not believed."""
    try:
        return os.getpgid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _told(path: Path) -> list[str]:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            document = loads(file.read(_MOST_BYTES))
    except (OSError, ValueError):
        return []
    session = document.get("sessionId") if isinstance(document, dict) else None
    return [session] if isinstance(session, str) and _SESSION.fullmatch(session) else []
