"""Read the document that an agent CLI gives its hooks, into the fields of `guard.core.hooks.payload.HookCall`.

Nothing in the document is trusted: a value of the wrong type counts as absent, every text is shortened, and of a document that
cannot be read only the command line and the environment count. This imports only the standard library, and little of it.
"""

import os
import time

from guard.core.hooks.event_kinds import KINDS, NOT_DONE
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
_AFTER_TOOL = ("tool_used", "tool_failed")
_TOOL_FIELDS = (
    "tool_name",
    "toolName",
    "tool_response",
    "toolResult",
    "error",
)
_COMMANDS, _PATHS = (
    ("command", "cmd"),
    ("file_path", "filePath", "path", "absolute_path", "notebook_path"),
)
_TESTS = (
    *("test", "spec", "check", "jest", "mocha", "ava", "jasmine", "karma", "tox", "nox", "phpunit"),
    *("pest", "ginkgo", "nose", "behave", "trial", "bats", "busted", "cypress", "coverage", "mvn"),
    *("gradle", "tst", "llvm-cov"),
)
_MOST_HEAD, _MOST_TAIL, _MOST_PARTS, _MOST_DEPTH = 1000, 4000, 20, 4
_MOST_DOCUMENT = 60_000
_RUNNING = ("running", "pending", "queued", "starting", "in_progress", "idle")
_ENDED = ("completed", "failed", "killed", "stopped", "cancelled", "canceled", "exited", "error")

Document = dict[str, object]


def event_kind(agent: str, event: str) -> str | None:
    return KINDS.get(agent, {}).get(event)


def read_payload(agent: str, event: str, data: bytes, environ: "Mapping[str, str]") -> Document:
    """Return every field of a HookCall for a known event, as JSON values."""
    return make_payload(agent, event, read_fields(data), environ)


def make_payload(
    agent: str, event: str, fields: Document, environ: "Mapping[str, str]"
) -> Document:
    tasks, unclear = _tasks(fields.get("background_tasks"))
    return {
        "schema": "guard/heard/1",
        "agent": agent,
        "event": event,
        "kind": KINDS[agent][event],
        **moment_fields(),
        "cwd": _line(_folder(agent, fields, environ), _MOST_PATH),
        "session": _session(agent, fields, environ),
        "prompt": _first(fields, "prompt_id", "turn_id") or _prompt_by_text(agent, event, fields),
        "helper": _first(fields, "agent_id", "agentId") or None,
        "helper_type": _first(fields, "agent_type", "agentType"),
        "teammate": _first(fields, "teammate_name") or None,
        "team": _first(fields, "team_name") or None,
        "tool": _first(fields, "tool_name", "toolName"),
        "in_background": _in_background(fields),
        **_tool_use(KINDS[agent][event], fields),
        "source": _first(fields, "source"),
        "detail": _detail(fields),
        "message": _first(fields, "last_assistant_message", "prompt_response"),
        "again": _is_continued(KINDS[agent][event], fields),
        "tasks": tasks,
        "tasks_unclear": unclear,
        "wakeups": _wakeups(fields),
    }


def read_stdin() -> bytes:
    # A text that is too long is read to its end, but only its beginning is kept.
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


def moment_fields() -> Document:
    return {
        "seconds": time.time(),
        "boot_seconds": time.clock_gettime(_BOOT_CLOCK),
        "boot_id": _boot_id(),
    }


def read_fields(data: bytes) -> Document:
    """Return the document that a hook was given; an empty one if it cannot be read."""
    if len(data) > MOST_BYTES:
        return {}
    value = plain_json.parse(data.removeprefix(_BOM).decode("utf-8", "replace"))
    return value if isinstance(value, dict) else {}


def _line(value: object, most: int = _MOST_LINE) -> str:
    # Shortened, and without lone surrogates, which no file can hold; empty if it is no text.
    if not isinstance(value, str):
        return ""
    text = value[:most]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _first(fields: Document, *names: str) -> str:
    return next((text for name in names if (text := _line(fields.get(name)))), "")


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _is_continued(kind: str, fields: Document) -> bool | None:
    if kind != "prompted":
        return _flag(fields.get("stop_hook_active"))
    # Qwen Code reports a prompt also after a tool's result, without a text, and when a hook asks the session to go on.
    text = fields.get("prompt")
    if not isinstance(text, str):
        return None
    return not text.strip() or NOT_DONE in text


def _prompt_by_text(agent: str, event: str, fields: Document) -> str | None:
    # Gemini CLI gives a prompt no id, but its text with every stop: the same while a hook holds the session back.
    text = fields.get("prompt")
    if agent != "gemini" or KINDS[agent][event] != "stopping" or not isinstance(text, str):
        return None
    import hashlib  # Loaded only here: it takes its time.

    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _session(agent: str, fields: Document, environ: "Mapping[str, str]") -> str | None:
    found = _first(fields, "session_id", "sessionId", "sessionID")
    if not found and agent == "claude":
        found = _line(environ.get("CLAUDE_CODE_SESSION_ID"))
    return found or None


def _folder(agent: str, fields: Document, environ: "Mapping[str, str]") -> str:
    # Claude Code names its project; `cwd` is where the agent has gone since, or where a helper works.
    project = environ.get("CLAUDE_PROJECT_DIR") if agent == "claude" else None
    for path in (project, fields.get("cwd")):
        if isinstance(path, str) and _is_folder(path):
            return path
    try:
        return os.getcwd()
    except OSError:
        return ""


def _is_folder(path: str) -> bool:
    return len(path) <= _MOST_PATH and os.path.isabs(path) and os.path.isdir(path)


def _in_background(fields: Document) -> bool:
    given = fields.get("tool_input", fields.get("toolArgs"))
    if not isinstance(given, dict):
        return False
    return given.get("run_in_background") is True or given.get("is_background") is True


def _tool_use(kind: str, fields: Document) -> Document:
    # Of a call that may have run tests, or edited a file: what `read_hook` needs later, shortened.
    nothing: Document = {"tool_document": None, "tested": ""}
    given = fields.get("tool_input", fields.get("toolArgs"))
    if kind not in _AFTER_TOOL or not isinstance(given, dict):
        return nothing
    command = command_in(given)
    is_test = may_run_tests(command)
    fields_kept = _TOOL_FIELDS if is_test else ("tool_name", "toolName", "error")
    kept = {name: given[name] for name in (_COMMANDS if is_test else _PATHS) if name in given}
    if not kept:
        return nothing
    short = {name: _shorten(fields[name]) for name in fields_kept if name in fields}
    document = plain_json.render({**short, "tool_input": _shorten(kept)})
    if len(document) > _MOST_DOCUMENT:
        return nothing
    return {"tool_document": document, "tested": _line(command) if is_test else ""}


def command_in(given: Document) -> str:
    words = given.get("command", given.get("cmd"))
    if isinstance(words, list):
        words = words[-1] if words else ""
    return words if isinstance(words, str) else ""


def may_run_tests(command: str) -> bool:
    """Tell cheaply whether the command may be a test run; `guard.core.tool_calls.test_runs` decides."""
    text = command.lower()
    return any(word in text for word in _TESTS) or "t" in text.split()


def _shorten(value: object, depth: int = 0) -> object:
    if isinstance(value, str):
        if len(value) > _MOST_HEAD + _MOST_TAIL:
            value = f"{value[:_MOST_HEAD]}\n{value[-_MOST_TAIL:]}"
        return _line(value, len(value))
    if isinstance(value, list) and depth < _MOST_DEPTH:
        return [_shorten(item, depth + 1) for item in value[:_MOST_PARTS]]
    if isinstance(value, dict) and depth < _MOST_DEPTH:
        some = list(value.items())[:_MOST_PARTS]
        return {_line(name): _shorten(item, depth + 1) for name, item in some}
    return value if isinstance(value, bool | int) else None


def _detail(fields: Document) -> str:
    error = fields.get("error")
    if isinstance(error, dict):
        return _first(error, "name", "type", "message")
    return _first(fields, "error", "reason", "stopReason", "trigger", "notification_type")


def _tasks(listed: object) -> tuple[list[Document] | None, bool]:
    # The second value tells whether some of the listed tasks could not be understood.
    if not isinstance(listed, list):
        return None, listed is not None
    found = [_task(task) for task in listed[:MOST_LISTED]]
    known = [task for task in found if task is not None]
    return known, len(known) < len(listed)


def _task(task: object) -> Document | None:
    if not isinstance(task, dict):
        return None
    name, status = _line(task.get("id")), _line(task.get("status"))
    # Qwen Code lists only helpers, and does not say that they are.
    kind = _line(task.get("type")) or ("subagent" if _line(task.get("agent_type")) else "")
    if not name or kind not in _TASK_KINDS or status not in (*_RUNNING, *_ENDED):
        return None
    return {
        "id": name,
        "kind": _TASK_KINDS[kind],
        "running": status in _RUNNING,
        "description": _first(task, "description", "command"),
    }


def _wakeups(fields: Document) -> list[Document] | None:
    listed = fields.get("session_crons", fields.get("crons"))
    if not isinstance(listed, list):
        return None
    return [_wakeup(wakeup, number) for number, wakeup in enumerate(listed[:MOST_LISTED], start=1)]


def _wakeup(wakeup: object, number: int) -> Document:
    # Without an id it is known by its description, or by its place in the list.
    fields = wakeup if isinstance(wakeup, dict) else {"id": wakeup}
    description = _first(fields, "description", "schedule", "cron", "prompt")
    name = _first(fields, "id", "cron_id", "job_id", "name") or description or f"wake-up {number}"
    return {"id": name, "description": description}


def _boot_id() -> str | None:
    try:
        with open(_BOOT_ID, "rb", buffering=0) as file:
            return file.read(64).decode("ascii", "replace").strip() or None
    except OSError:
        return None
