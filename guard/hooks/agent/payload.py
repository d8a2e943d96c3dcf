"""The document that an agent's program gives its hooks, brought into one form: that of `core.hooks.heard.Heard`.

Nothing in it is trusted: what has the wrong type counts as absent, every text is shortened, and a document that cannot be
read leaves what the command line and the environment tell. Only the standard library, and little of it.
"""

import os
import time

from guard.core.hooks.event_kinds import KINDS
from guard.hooks import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES = 8 * 1024 * 1024
MOST_LISTED = 200
_MOST_LINE = 512
_BOM = b"\xef\xbb\xbf"
_MOST_PATH = 4096
_STDIN_SECONDS = 10.0
_CHUNK = 1024 * 1024
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_TASK_KINDS = {
    "shell": "background_shell",
    "bash": "background_shell",
    "local_bash": "background_shell",
    "subagent": "subagent",
    "agent": "subagent",
    "local_agent": "subagent",
    "teammate": "teammate",
}
_RUNNING = ("running", "pending", "queued", "starting", "in_progress", "idle")
_ENDED = ("completed", "failed", "killed", "stopped", "cancelled", "canceled", "exited", "error")

Document = dict[str, object]


def event_kind(agent: str, event: str) -> str | None:
    """What an event of an agent means; None if it is not known."""
    return KINDS.get(agent, {}).get(event)


def read_payload(agent: str, event: str, data: bytes, environ: "Mapping[str, str]") -> Document:
    """What a known hook was told, whole: every field of a `Heard`, as values of JSON."""
    told = _document(data)
    tasks, unclear = _tasks(told.get("background_tasks"))
    return {
        "schema": "guard/heard/1",
        "agent": agent,
        "event": event,
        "kind": KINDS[agent][event],
        **moment_fields(),
        "cwd": _line(_folder(agent, told, environ), _MOST_PATH),
        "session": _session(agent, told, environ),
        "prompt": _first(told, "prompt_id", "turn_id") or _prompt_by_text(agent, event, told),
        "helper": _first(told, "agent_id", "agentId") or None,
        "helper_type": _first(told, "agent_type", "agentType"),
        "teammate": _first(told, "teammate_name") or None,
        "team": _first(told, "team_name") or None,
        "tool": _first(told, "tool_name", "toolName"),
        "in_background": _in_background(told),
        "source": _first(told, "source"),
        "detail": _detail(told),
        "message": _first(told, "last_assistant_message", "prompt_response"),
        "again": _flag(told.get("stop_hook_active")),
        "tasks": tasks,
        "tasks_unclear": unclear,
        "wakeups": _wakeups(told),
    }


def moment_fields() -> Document:
    """Now, by both clocks."""
    return {
        "seconds": time.time(),
        "boot_seconds": time.clock_gettime(_BOOT_CLOCK),
        "boot_id": _boot_id(),
    }


def _document(data: bytes) -> Document:
    if len(data) > MOST_BYTES:
        return {}
    value = plain_json.parse(data.removeprefix(_BOM).decode("utf-8", "replace"))
    return value if isinstance(value, dict) else {}


def _line(value: object, most: int = _MOST_LINE) -> str:
    """The text, shortened, without the halves of characters that no file can hold; empty if it is none."""
    if not isinstance(value, str):
        return ""
    text = value[:most]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _first(told: Document, *names: str) -> str:
    return next((text for name in names if (text := _line(told.get(name)))), "")


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _prompt_by_text(agent: str, event: str, told: Document) -> str | None:
    """Gemini CLI names no prompt, but tells it with every stop: the same while a hook holds it back."""
    text = told.get("prompt")
    if agent != "gemini" or KINDS[agent][event] != "stopping" or not isinstance(text, str):
        return None
    import hashlib  # Only here: it takes its time to load.

    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _session(agent: str, told: Document, environ: "Mapping[str, str]") -> str | None:
    found = _first(told, "session_id", "sessionId", "sessionID")
    if not found and agent == "claude":
        found = _line(environ.get("CLAUDE_CODE_SESSION_ID"))
    return found or None


def _folder(agent: str, told: Document, environ: "Mapping[str, str]") -> str:
    """Where the session belongs. Claude Code tells its project apart from where an agent has gone since, or a helper works."""
    project = environ.get("CLAUDE_PROJECT_DIR") if agent == "claude" else None
    for path in (project, told.get("cwd")):
        if isinstance(path, str) and _is_folder(path):
            return path
    try:
        return os.getcwd()
    except OSError:
        return ""


def _is_folder(path: str) -> bool:
    return len(path) <= _MOST_PATH and os.path.isabs(path) and os.path.isdir(path)


def _in_background(told: Document) -> bool:
    given = told.get("tool_input", told.get("toolArgs"))
    if not isinstance(given, dict):
        return False
    return given.get("run_in_background") is True or given.get("is_background") is True


def _detail(told: Document) -> str:
    error = told.get("error")
    if isinstance(error, dict):
        return _first(error, "name", "type", "message")
    return _first(told, "error", "reason", "stopReason", "trigger", "notification_type")


def _tasks(listed: object) -> tuple[list[Document] | None, bool]:
    """What is in the background, and whether something of it could not be understood."""
    if not isinstance(listed, list):
        return None, listed is not None
    found = [_task(one) for one in listed[:MOST_LISTED]]
    known = [one for one in found if one is not None]
    return known, len(known) < len(listed)


def _task(one: object) -> Document | None:
    if not isinstance(one, dict):
        return None
    name, status = _line(one.get("id")), _line(one.get("status"))
    # Qwen Code lists only helpers, and does not say that they are.
    kind = _line(one.get("type")) or ("subagent" if _line(one.get("agent_type")) else "")
    if not name or kind not in _TASK_KINDS or status not in (*_RUNNING, *_ENDED):
        return None
    return {
        "id": name,
        "kind": _TASK_KINDS[kind],
        "running": status in _RUNNING,
        "description": _first(one, "description", "command"),
    }


def _wakeups(told: Document) -> list[Document] | None:
    listed = told.get("session_crons", told.get("crons"))
    if not isinstance(listed, list):
        return None
    return [_wakeup(one, number) for number, one in enumerate(listed[:MOST_LISTED], start=1)]


def _wakeup(one: object, number: int) -> Document:
    """However it is listed, it is one: without an id it is known by what it says, or by its place."""
    told = one if isinstance(one, dict) else {"id": one}
    description = _first(told, "description", "schedule", "cron", "prompt")
    name = _first(told, "id", "cron_id", "job_id", "name") or description or f"wake-up {number}"
    return {"id": name, "description": description}


def _boot_id() -> str | None:
    try:
        with open(_BOOT_ID, "rb", buffering=0) as file:
            return file.read(64).decode("ascii", "replace").strip() or None
    except OSError:
        return None


def read_stdin() -> bytes:
    """All that there is to read. What is too long is read to its end, for whoever writes it, but not kept."""
    import select

    chunks: list[bytes] = []
    size, until = 0, time.monotonic() + _STDIN_SECONDS
    try:
        while select.select([0], [], [], max(0.0, until - time.monotonic()))[0]:
            chunk = os.read(0, _CHUNK)
            if not chunk:
                break
            size += len(chunk)
            if size <= MOST_BYTES + _CHUNK:
                chunks.append(chunk)
    except (OSError, ValueError):
        pass
    return b"".join(chunks)
