"""Why a probe's program gave no answer: its output and its end, judged by the rules for an iteration's output."""

import re
from datetime import datetime

from guard.core.answer import ProbeFailure
from guard.core.classify import classify
from guard.core.classify.outcome import Classification, line
from guard.processes import Finished

_NO_SESSION = re.compile(
    r"no conversation found|requires a valid session id|no rollout found|thread not loaded"
    r"|session not found|no saved session found|no session, task, or name matched"
    r"|file not found or invalid format",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TAIL = 4096


def failure_of(
    finished: Finished, agent: str, now: datetime
) -> tuple[ProbeFailure, str, datetime | None]:
    """The failure, in one harmless line, and when it ends if that is known."""
    errors = _ESCAPE.sub("", finished.stderr[-_TAIL:].decode(errors="replace"))
    if _NO_SESSION.search(errors):
        return "no_session", line(_last_line(errors)), None
    found = classify(finished.stdout, finished.stderr, agent, finished.code, now.astimezone())
    match found.outcome:
        case "limited" | "auth":
            return found.outcome, _told(found), found.retry_at
        case "transient":
            return "overloaded", _told(found), found.retry_at
        case "crash" if found.reason == "server_error":
            return "overloaded", _told(found), None
    if finished.code == 0:
        return "unreadable", "there is no answer in the output", None
    said = _last_line(errors) or _told(found)
    return "crashed", line(f"exit code {finished.code}: {said}"), None


def _told(found: Classification) -> str:
    return line(found.fingerprint or found.reason)


def _last_line(text: str) -> str:
    return next((part for part in reversed(text.splitlines()) if part.strip()), "")
