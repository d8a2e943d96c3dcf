"""Events of the breaker of a work tree.

Limits and cooldowns are settings, and a fold may depend on the log alone: so the outcome of an iteration and what it led to
are events of their own, and the second says by which figures.
"""

from typing import Literal

from guard.core.base.fields import BootSeconds, Id, Line
from guard.core.iteration.facts import Process, Seconds, Status
from guard.core.log.events import BaseEvent


class _BreakerEvent(BaseEvent):
    worktree: Id


class _TimedBreakerEvent(_BreakerEvent):
    """Begins something that ends by the clock, and says when it began by the clock that does not jump."""

    boot_seconds: BootSeconds
    boot_id: Line | None


class BreakerRecorded(_BreakerEvent):
    """How an iteration ended, as far as the breaker counts it."""

    type: Literal["breaker_recorded"] = "breaker_recorded"
    status: Status
    reason: Line
    fingerprint: Line
    """What names the error, or nothing."""
    denied: bool
    rescued: bool
    head: Line | None
    """The commit that the work tree stood at when it ended; None if it was not read."""


class BreakerOpened(_TimedBreakerEvent):
    """No iteration may begin from here on, until the cooldown is over."""

    type: Literal["breaker_opened"] = "breaker_opened"
    reason: Line
    cooldown_seconds: Seconds
    head: Line | None


class CooldownRestarted(_TimedBreakerEvent):
    """The clocks stood before the opening: they were set back, so the cooldown counts from here, once, and not for years."""

    type: Literal["breaker_cooldown_restarted"] = "breaker_cooldown_restarted"


class TrialClaimed(_TimedBreakerEvent):
    """One process may run one iteration, and by its outcome the breaker closes or opens again."""

    type: Literal["breaker_trial_claimed"] = "breaker_trial_claimed"
    reason: Line
    """What earned the trial: the cooldown is over, a commit from outside, or an earlier trial that came to nothing."""
    holder: Process | None
    lease_seconds: Seconds


class TrialReturned(_BreakerEvent):
    """The trial said nothing for or against: another one may be claimed at once."""

    type: Literal["breaker_trial_returned"] = "breaker_trial_returned"
    reason: Line


class BreakerClosed(_BreakerEvent):
    """Iterations may run again, and every count begins anew."""

    type: Literal["breaker_closed"] = "breaker_closed"
    reason: Line


BreakerEvent = (
    BreakerRecorded
    | BreakerOpened
    | CooldownRestarted
    | TrialClaimed
    | TrialReturned
    | BreakerClosed
)
