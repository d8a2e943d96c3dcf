"""Decide the outcome of a session from its last events, its last lines and its exit status."""

import re
from dataclasses import replace
from datetime import datetime

from guard.core.classify.base import StreamEnd
from guard.core.classify.errors import ErrorMeaning, ReportedError
from guard.core.classify.outcome import Classification, Outcome, distinct_names, shorten_line
from guard.core.classify.question import find_question, is_offer
from guard.core.classify.reset_times import reset_time, time_after, time_from_epoch
from guard.core.cost.usage import SessionUsage
from guard.core.tool_calls.agent_loop import LoopFound

_SIGNALS = {
    1: "sighup",
    2: "sigint",
    3: "sigquit",
    4: "sigill",
    6: "sigabrt",
    7: "sigbus",
    8: "sigfpe",
    9: "sigkill",
    11: "sigsegv",
    13: "sigpipe",
    14: "sigalrm",
    15: "sigterm",
    24: "sigxcpu",
    25: "sigxfsz",
}
_EXIT_WORDS = {124: "timed_out", 126: "not_executable", 127: "command_not_found"}
_OK = ReportedError("ok", "completed")
_OUTWEIGHED: frozenset[Outcome] = frozenset({"ok", "question", "denied", "crash", "unknown"})
_DROPPED = re.compile(r"[\d/\\]")
_WORD = re.compile(r"[^\W\d]+(?:['_-][^\W\d]+)*")

_TAIL = 3000
_PERMISSION = re.compile(
    r"\b(?:needs?|requires?|request(?:ed)?|grant(?:ed)?|gives?|without|missing|lack|denied|wait(?:ing)? for|asked for)\b"
    r"[^.\n]{0,60}\b(?:permissions?|approval|authori[sz]ation)\b"
    r"|\bpermissions?\b[^.\n]{0,40}\b(?:denied|required|needed|granted|missing|refused)\b"
    r"|\b(?:please|you (?:can|could|must|need to|have to)) (?:approve|allow|enable|unblock|grant)\b",
    re.IGNORECASE,
)


# An error that has a name comes first, then denied tools, then failures without a name; any other session ended well, perhaps
# with a question. Killed background work outweighs an outcome without a remedy of its own. It does not outweigh a limit that
# the agent must wait for or a login that the user must repeat; then the killed work is listed beside it.
def decide_outcome(
    ending: StreamEnd,
    written: ReportedError | None,
    exit_code: int | None,
    exit_meaning: ErrorMeaning | None,
) -> ReportedError:
    """Return the outcome with its reason and the text that proves it."""
    found = _decide_outcome(ending, written, exit_code, exit_meaning)
    if ending.killed and found.outcome in _OUTWEIGHED:
        return ReportedError("interrupted", "background_work", " ".join(ending.killed[:3]))
    return found


def _decide_outcome(
    ending: StreamEnd,
    written: ReportedError | None,
    exit_code: int | None,
    exit_meaning: ErrorMeaning | None,
) -> ReportedError:
    reported = ending.trouble
    if reported and reported.outcome != "crash":
        return reported
    if exit_meaning:
        error = reported or written or ReportedError("crash", "")
        return replace(error, outcome=exit_meaning.outcome, reason=exit_meaning.reason)
    is_sound = ending.finished and not exit_code and not reported
    if written and written.outcome != "crash" and not is_sound:
        return written
    if (
        ending.denied
        and ending.finished
        and (reported or ending.helpless or is_permission_request(ending.message))
    ):
        return ReportedError("denied", "permissions", ending.message)
    if ending.asked and not reported and not is_offer(ending.message, ending.question):
        return ReportedError("question", "question", ending.question or ending.message[-500:])
    if reported or not is_sound:
        text = (reported.text if reported else "") or (written.text if written else "")
        return ReportedError("crash", _crash_reason(reported, exit_code), text)
    question = find_question(ending.message)
    return ReportedError("question", "question", question) if question else _OK


def _crash_reason(reported: ReportedError | None, exit_code: int | None) -> str:
    if exit_code is not None and (signal := _signal(exit_code)):
        return signal
    if reported and reported.reason:
        return reported.reason
    return _EXIT_WORDS.get(exit_code, f"exit_{exit_code}") if exit_code else "no_result"


def _signal(exit_code: int) -> str | None:
    # A shell reports the signal that ended its child as 128 plus the number.
    if exit_code < 0:
        return _SIGNALS.get(-exit_code, f"signal_{-exit_code}")
    return _SIGNALS.get(exit_code - 128)


def make_classification(
    found: ReportedError,
    ending: StreamEnd,
    session: str | None,
    exit_code: int | None,
    now: datetime,
    usage: SessionUsage | None = None,
    loop: LoopFound | None = None,
) -> Classification:
    is_bad = found.outcome != "ok"
    cost = ending.cost if ending.cost is not None and 0 <= ending.cost <= 1e12 else None
    return Classification(
        outcome=found.outcome,
        reason=shorten_line(found.reason),
        retry_at=_retry_at(found, now),
        session=session,
        killed=distinct_names(list(ending.killed)),
        exit_code=exit_code,
        fingerprint=fingerprint(found) if is_bad else None,
        claim=shorten_line(ending.message) or None,
        cost_usd=cost,
        denied_tools=distinct_names(list(ending.denied)),
        words=(shorten_line(found.text) or None) if is_bad else None,
        usage=usage,
        loop=loop,
    )


def _retry_at(found: ReportedError, now: datetime) -> datetime | None:
    # Fields count before text; of several limits, the one that ends last counts.
    if found.outcome not in ("limited", "transient"):
        return None
    limited = found.outcome == "limited"
    fields = [time_from_epoch(at, now) for at in found.resets] if limited else []
    if found.delay is not None:
        fields.append(time_after(found.delay, now))
    known = [at for at in fields if at]
    return max(known) if known else reset_time(found.text, now)


def fingerprint(found: ReportedError) -> str:
    """Return the words of an error without numbers, paths and ids, so that the same error gives the same text."""
    kept = [token for token in found.text[:4000].split() if not _DROPPED.search(token)]
    words = [word.lower() for word in _WORD.findall(" ".join(kept)) if len(word) <= 30]
    return shorten_line(f"{found.outcome}: {' '.join(words) or found.reason}", 200)


def is_permission_request(message: str) -> bool:
    """Tell whether the end of the message says that permissions are missing."""
    return _PERMISSION.search(message[-_TAIL:]) is not None
