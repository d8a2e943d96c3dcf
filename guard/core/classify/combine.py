"""One outcome from all that a session left behind: its last events, its last lines, its exit status.

An error that has a name comes first, then denied tools, then failures without a name; what is left ended well, perhaps with a
question. Background work that was killed outweighs an end that has no remedy of its own: a limit still has to be waited
for, a login still has to be mended, and what was killed is listed beside it.
"""

import re
from dataclasses import replace
from datetime import datetime

from guard.core.classify import reset_times as times
from guard.core.classify.base import StreamEnd
from guard.core.classify.errors import ErrorMeaning, ReportedError
from guard.core.classify.outcome import Classification, Outcome, line, names
from guard.core.classify.questions import asks, pleads

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
_OUTWEIGHED: frozenset[Outcome] = frozenset({"ok", "question", "denied", "crash", "unknown"})
_DROPPED = re.compile(r"[\d/\\]")
_WORD = re.compile(r"[^\W\d]+(?:['_-][^\W\d]+)*")


def decide(
    ending: StreamEnd,
    written: ReportedError | None,
    exit_code: int | None,
    exit_meaning: ErrorMeaning | None,
) -> ReportedError:
    """What it comes to: an outcome with its reason and the text that it rests on."""
    found = _outcome(ending, written, exit_code, exit_meaning)
    if ending.killed and found.outcome in _OUTWEIGHED:
        return ReportedError("interrupted", "background_work", " ".join(ending.killed[:3]))
    return found


def _outcome(
    ending: StreamEnd,
    written: ReportedError | None,
    exit_code: int | None,
    exit_meaning: ErrorMeaning | None,
) -> ReportedError:
    reported = ending.trouble
    if reported and reported.outcome != "crash":
        return reported
    if exit_meaning:
        said = reported or written or ReportedError("crash", "")
        return replace(said, outcome=exit_meaning.outcome, reason=exit_meaning.reason)
    is_sound = ending.finished and not exit_code and not reported
    if written and written.outcome != "crash" and not is_sound:
        return written
    if (
        ending.denied
        and ending.finished
        and (reported or ending.helpless or pleads(ending.message))
    ):
        return ReportedError("denied", "permissions", ending.message)
    if ending.asked and not reported:
        return _question(ending)
    if reported or not is_sound:
        text = (reported.text if reported else "") or (written.text if written else "")
        return ReportedError("crash", _crash_reason(reported, exit_code), text)
    return _question(ending) if asks(ending.message) else ReportedError("ok", "completed")


def _question(ending: StreamEnd) -> ReportedError:
    return ReportedError("question", "question", ending.message[-500:])


def _crash_reason(reported: ReportedError | None, exit_code: int | None) -> str:
    if exit_code is not None and (signal := _signal(exit_code)):
        return signal
    if reported and reported.reason:
        return reported.reason
    return _EXIT_WORDS.get(exit_code, f"exit_{exit_code}") if exit_code else "no_result"


def _signal(exit_code: int) -> str | None:
    """The name of the signal that ended the process, itself or a shell around it."""
    if exit_code < 0:
        return _SIGNALS.get(-exit_code, f"signal_{-exit_code}")
    return _SIGNALS.get(exit_code - 128)


def classification(
    found: ReportedError,
    ending: StreamEnd,
    session: str | None,
    exit_code: int | None,
    now: datetime,
) -> Classification:
    """The outcome with all that goes with it, bounded and harmless."""
    is_bad = found.outcome != "ok"
    cost = ending.cost if ending.cost is not None and 0 <= ending.cost <= 1e12 else None
    return Classification(
        outcome=found.outcome,
        reason=line(found.reason),
        retry_at=_retry_at(found, now),
        session=session,
        killed=names(list(ending.killed)),
        exit_code=exit_code,
        fingerprint=fingerprint(found) if is_bad else None,
        claim=line(ending.message) or None,
        cost_usd=cost,
        denied_tools=names(list(ending.denied)),
    )


def _retry_at(found: ReportedError, now: datetime) -> datetime | None:
    """Fields before text, and of several limits the one that ends last."""
    if found.outcome not in ("limited", "transient"):
        return None
    limited = found.outcome == "limited"
    fields = [times.from_epoch(at, now) for at in found.resets] if limited else []
    if found.delay is not None:
        fields.append(times.after(found.delay, now))
    known = [at for at in fields if at]
    return max(known) if known else times.reset_in(found.text, now)


def fingerprint(found: ReportedError) -> str:
    """The same for the same error: its words, without numbers, paths and ids."""
    kept = [token for token in found.text[:4000].split() if not _DROPPED.search(token)]
    words = [word.lower() for word in _WORD.findall(" ".join(kept)) if len(word) <= 30]
    return line(f"{found.outcome}: {' '.join(words) or found.reason}", 200)
