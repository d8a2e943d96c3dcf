"""Why a probe's program gave no answer: its output and its end, judged by the rules for an iteration's output."""

import re
from datetime import datetime

from guard.core.classify import reader
from guard.core.classify.outcome import line
from guard.core.probe.answer import ProbeFailure
from guard.system.processes import Finished

_NO_SESSION = re.compile(
    r"no conversation found|requires a valid session id|no rollout found|thread not loaded"
    r"|session not found|no saved session found|no session, task, or name matched"
    r"|file not found or invalid format",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TAIL = 4096
_KILLED = -15


def failure_of(
    finished: Finished, agent: str, now: datetime
) -> tuple[ProbeFailure, str, datetime | None]:
    """The failure, in one harmless line, and when it ends if that is known.

    A program that did not end was killed, and what it printed before may tell why it took so long.
    """
    errors = _ESCAPE.sub("", finished.stderr[-_TAIL:].decode(errors="replace"))
    if _NO_SESSION.search(errors):
        return "no_session", line(_last_line(errors)), None
    words = reader(agent)
    words.feed(finished.stdout)
    words.feed_error(finished.stderr)
    found = words.finish(_KILLED if finished.code is None else finished.code, now.astimezone())
    told = words.told or line(found.reason)
    match found.outcome:
        case "limited" | "auth":
            return found.outcome, told, found.retry_at
        case "transient":
            return "overloaded", told, found.retry_at
        case "crash" if found.reason == "server_error":
            return "overloaded", told, None
    if finished.code == 0:
        return "unreadable", "there is no answer in the output", None
    reported = words.told if words.format else ""
    said = reported or _last_line(errors) or told
    return "crashed", line(f"exit code {finished.code}: {said}"), None


def _last_line(text: str) -> str:
    return next((part for part in reversed(text.splitlines()) if part.strip()), "")
