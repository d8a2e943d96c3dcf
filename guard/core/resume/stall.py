"""Tell one silence of an agent (a stall) from the next, and decide whether it may get one more prompt.

A stall goes on from prompt to prompt until the agent is seen at work again. The prompt itself leaves traces (the terminal
echoes it, the process reads it, a file appears in the inbox): those are not the agent's work, and begin no new stall.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

from guard.core.activity.assess import CLOCK_SKEW, Signal
from guard.core.activity.noise import PROMPT_ECHO
from guard.core.activity.sources import SourceName
from guard.core.base.text import plural

if TYPE_CHECKING:
    from guard.core.activity.state import SentResume

MAX_PER_STALL = 2
PAUSE_MINUTES = 15.0
_NO_ECHO: frozenset[SourceName] = frozenset(
    {"TELEMETRY_EVENT", "GIT_COMMIT", "CONTRACT_CLAIMED", "TEST_EXECUTION", "DEVLOG_CREATED"}
)
"""Sources whose signs no prompt causes by itself, however soon after it."""

BudgetAnswer = Literal["due", "paused", "spent"]


@dataclass(frozen=True, slots=True)
class Stall:
    """One silence of an agent."""

    name: str
    """A digest of the agent's incarnation and of its last sign."""
    sent: int
    """How many prompts were sent in it."""
    last_sent: datetime | None


@dataclass(frozen=True, slots=True)
class Budget:
    """How many prompts one silence may get, and how far apart."""

    max_per_stall: int = MAX_PER_STALL
    pause: timedelta = timedelta(minutes=PAUSE_MINUTES)


@dataclass(frozen=True, slots=True)
class ResumePermission:
    """Whether a prompt may be sent now, and why."""

    answer: BudgetAnswer
    reason: str


def current_stall(
    incarnation: int,
    since: datetime,
    sent: Sequence["SentResume"],
    signals: Iterable[Signal],
    now: datetime,
) -> Stall:
    """The silence that the agent is in, by its signs since the last prompt, or by all that are known."""
    own = [resume for resume in sent if resume.incarnation == incarnation]
    last = own[-1] if own else None
    newest = max((signal.at for signal in signals if _is_own_work(signal, last, now)), default=None)
    name = _digest(incarnation, newest or since)
    if last is not None and newest is None:
        name = last.stall
    ours = [resume.at for resume in own if resume.stall == name]
    return Stall(name, len(ours), ours[-1] if ours else None)


def _is_own_work(sign: Signal, last: "SentResume | None", now: datetime) -> bool:
    # A weak sign, or one in the future, shows no work after the last prompt.
    if sign.tier == 3 or sign.at > now + CLOCK_SKEW:
        return False
    if last is None:
        return True
    return sign.at > (last.at if sign.source in _NO_ECHO else last.at + PROMPT_ECHO)


def _digest(incarnation: int, seen: datetime) -> str:
    return sha256(f"{incarnation}\n{seen.isoformat()}".encode()).hexdigest()


def permission(stall: Stall, budget: Budget, now: datetime) -> ResumePermission:
    if stall.sent >= budget.max_per_stall:
        sent = f"{plural(stall.sent, 'prompt')} did not bring it back"
        return ResumePermission("spent", f"{sent}, and no more are sent: a person is needed")
    # Without `abs`, a clock that was set back far would hold prompts back for ever.
    if stall.last_sent is not None and abs(now - stall.last_sent) < budget.pause:
        until = stall.last_sent + budget.pause
        return ResumePermission(
            "paused", f"it was sent one; the next may follow at {until:%H:%M:%S} UTC"
        )
    return ResumePermission(
        "due", f"prompt {stall.sent + 1} of {budget.max_per_stall} in this silence"
    )
