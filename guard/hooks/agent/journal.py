"""Keep what the calls of a session's tools were, a line for each, so that guard can tell what the session repeats.

Results are kept as hashes, but for their lines with figures: times that were measured, and exit codes, mean something. One
file for each session lies in the state home, in a folder for each work tree. A file that has grown long becomes the old one,
and the old one before it is forgotten. This imports only the standard library, and little of it.
"""

import os

from guard.core.hooks.event_kinds import MARK
from guard.hooks import plain_json
from guard.hooks.faults import state_home
from guard.hooks.spool import digest, find_root, open_folder, work_tree_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from guard.hooks.agent.payload import Document

FOLDER = "calls.d"
SUFFIX, OLD = ".log", ".log.old"
MOST_BYTES = 128 * 1024
MOST_FILES = 64
_LINE = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_SHOWN = 1000
_MOST_READ = 16 * 1024
_DIGITS = "0123456789"
_PASSING = ("duration", "elapsed", "pgid", "pid", "timestamp", "returndisplay")
"""Parts of a result whose names contain one of these differ from call to call."""
_PASSING_LINE = "Process Group PGID:"
_SAID_OF_COMMANDS = ("description", "explanation", "justification")
_SHOWN = ("command", "cmd", "file_path", "filePath", "path", "absolute_path", "notebook_path")
_FLAGS = ("is_error", "success", "resultType", "exit_code", "exitCode", "interrupted")
_MOST_DEPTH = 8


def note_call(call: "Document", fields: "Document", environ: "Mapping[str, str]") -> None:
    """Add a line to the journal of the session, if the call means something for what it repeats."""
    entry = _entry(call, fields)
    home = state_home(environ) if entry is not None else None
    root = find_root(home, str(call["cwd"])) if home is not None else None
    if entry is None or home is None or root is None:
        return
    entry |= {
        "seconds": call["seconds"],
        "moment": call["boot_seconds"],
        "mark": environ.get(MARK, ""),
        "agent": call["agent"],
        "lane": call["helper"] or "",
    }
    name = journal_name(call["session"] or call["agent"])
    _append(os.path.join(home, FOLDER, work_tree_key(root)), name, plain_json.render(entry))


def journal_name(session: object) -> str:
    return f"{digest(str(session).encode('utf-8', 'replace'))}{SUFFIX}"


def _append(path: str, name: str, line: str) -> None:
    folder = open_folder(path)
    try:
        descriptor = os.open(name, _LINE, 0o600, dir_fd=folder)
        size = os.fstat(descriptor).st_size
        if size == 0:
            _remove_oldest(folder)
        if size > MOST_BYTES:
            os.close(descriptor)
            old = name.removesuffix(SUFFIX) + OLD
            os.rename(name, old, src_dir_fd=folder, dst_dir_fd=folder)
            descriptor = os.open(name, _LINE, 0o600, dir_fd=folder)
        try:
            # In one piece, because hooks of several helpers write at the same time.
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)
    finally:
        os.close(folder)


def _remove_oldest(folder: int) -> None:
    # A session that has just begun makes room for itself.
    names = os.listdir(folder)
    if len(names) <= MOST_FILES:
        return
    times = {name: os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime for name in names}
    for name in sorted(names, key=lambda name: times[name])[: -MOST_FILES // 2]:
        os.unlink(name, dir_fd=folder)


def _entry(call: "Document", fields: "Document") -> "Document | None":
    match call["kind"]:
        case "tool_used" | "tool_failed":
            return _call_entry(call, fields)
        case "prompted" if not call["again"] and call["helper"] is None:
            return {"what": "began"}
        case "session_started" | "compacting":
            return {"what": "began"}
        case "helper_started" | "helper_ended":
            return {"what": call["kind"]}
        case "stopping" if call["message"]:
            return {"what": "message", "text": call["message"]}
    return None


def _call_entry(call: "Document", fields: "Document") -> "Document | None":
    tool = call["tool"] or fields.get("tool")
    if not isinstance(tool, str) or not tool:
        return None
    given = _first(fields, "tool_input", "toolArgs", "args")
    result = _first(fields, "tool_response", "toolResult", "output")
    name = _first(fields, "tool_use_id", "tool_call_id", "callID", "timestamp")
    answer: Document = {"output": _short_result([result, fields.get("error")])}
    if isinstance(result, dict):
        answer |= {flag: result[flag] for flag in _FLAGS if flag in result}
        answer["error"] = bool(result.get("error"))
    return {
        "what": "call",
        "tool_use_id": name[:200] if isinstance(name, str) else "",
        "tool_name": tool,
        "tool_input": _short_input(given if isinstance(given, dict) else {"input": given}),
        "tool_response": _plain(answer),
        "error": bool(fields.get("error")) or call["kind"] == "tool_failed",
        "in_background": call["in_background"],
    }


def _first(fields: "Document", *names: str) -> object:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _short_input(given: "Document") -> "Document":
    # What can be shown and what tells an edit or a wait, and the hash of it all.
    has_command = "command" in given or "cmd" in given
    names = [name for name in (*given, *_SHOWN) if name in given]
    kept = {
        name: _head(value)
        for name in (*names[:1], *_SHOWN)
        if isinstance(value := given.get(name), str | list)
    }
    whole = {
        name: value
        for name, value in given.items()
        if not (has_command and name in _SAID_OF_COMMANDS)
    }
    return {**kept, "hash": digest(plain_json.render(whole).encode("utf-8", "replace"))}


def _head(value: object) -> object:
    if isinstance(value, list):
        return [_head(item) for item in value[:20] if isinstance(item, str)]
    return value[:_MOST_SHOWN] if isinstance(value, str) else ""


def _short_result(result: object) -> str:
    plain: list[str] = []
    figures: list[str] = []
    for text in _texts(result, 0):
        head, middle, tail = text, "", ""
        if len(text) > 2 * _MOST_READ:
            head, middle, tail = (
                text[:_MOST_READ],
                text[_MOST_READ:-_MOST_READ],
                text[-_MOST_READ:],
            )
        plain.append(middle)
        for line in (*head.split("\n"), *tail.split("\n")):
            if line.startswith(_PASSING_LINE):
                continue
            has_figures = any(digit in line for digit in _DIGITS)
            (figures if has_figures else plain).append(line)
    kept = "\n".join(figures)
    if len(kept) > 2 * _MOST_SHOWN:
        plain.append(kept[_MOST_SHOWN:-_MOST_SHOWN])
        kept = f"{kept[:_MOST_SHOWN]}\n{kept[-_MOST_SHOWN:]}"
    # The figures come first, because some tools begin a result with their exit code.
    return f"{kept}\n{digest(chr(10).join(plain).encode('utf-8', 'replace'))}"


def _texts(value: object, depth: int) -> "Iterator[str]":
    if isinstance(value, dict) and depth < _MOST_DEPTH:
        for name, item in value.items():
            if not any(word in name.lower() for word in _PASSING):
                yield from _texts(item, depth + 1)
    elif isinstance(value, list) and depth < _MOST_DEPTH:
        for item in value:
            yield from _texts(item, depth + 1)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, bool | int):
        yield plain_json.render(value)


def _plain(answer: "Document") -> "Document":
    return {
        name: value[: 4 * _MOST_SHOWN] if isinstance(value, str) else value
        for name, value in answer.items()
        if isinstance(value, str | bool | int)
    }
