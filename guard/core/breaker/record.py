"""Decide what the end of an iteration, or the user, does to the breaker."""

from guard.core.base.moment import Moment, Stamp, clock_fields
from guard.core.breaker.events import (
    BreakerClosed,
    BreakerEvent,
    BreakerOpened,
    BreakerRecorded,
    TrialReturned,
)
from guard.core.breaker.settings import BreakerSettings as BreakerPolicy
from guard.core.breaker.state import Breaker, BreakerCounts, event_fields, has_brought_work, tally
from guard.core.iteration.events import Status

CAUSES = ("no_commits", "same_error", "denied", "always_rescued")
"""Why iterations open it; a person who trips it gives another word."""


def after_iteration(
    state: Breaker,
    policy: BreakerPolicy,
    *,
    status: Status,
    reason: str,
    fingerprint: str,
    denied: bool,
    rescued: bool,
    moment: Moment,
    stamp: Stamp,
    head: str | None = None,
) -> tuple[BreakerEvent, ...]:
    recorded = BreakerRecorded(
        **event_fields(state, moment, stamp),
        status=status,
        reason=reason,
        fingerprint=fingerprint,
        denied=denied,
        rescued=rescued,
        head=head,
    )
    if state.state == "open":
        return (recorded,)
    is_trial = state.state == "half_open"
    risen = _counts_risen(state.counts, tally(state.counts, recorded))
    cause = _limit_reached(risen, policy) or (_failed_again(state, risen) if is_trial else None)
    if cause is not None:
        cooldown = state.cooldown_seconds * 2
        return (recorded, _open(state, policy, cause, cooldown, moment, stamp.next(), head))
    return (
        (recorded, _settle_trial(state, recorded, moment, stamp.next()))
        if is_trial
        else (recorded,)
    )


def _counts_risen(before: BreakerCounts, after: BreakerCounts) -> dict[str, int]:
    # Each reason to open that this iteration gave, with its count now.
    counts = {
        "no_commits": (before.streak, after.streak),
        "same_error": (before.times(after.fingerprint), after.fingerprint_count),
        "denied": (before.denied_streak, after.denied_streak),
        "always_rescued": (before.rescue_streak, after.rescue_streak),
    }
    return {cause: new for cause, (old, new) in counts.items() if new > old}


def _limit_reached(risen: dict[str, int], policy: BreakerPolicy) -> str | None:
    # The first reason whose count is at its limit; a limit of 0 is never reached.
    limits = {
        "no_commits": policy.stall_limit,
        "same_error": policy.same_error_limit,
        "denied": policy.denied_limit,
        "always_rescued": policy.rescue_limit,
    }
    return next((cause for cause, count in risen.items() if 0 < limits[cause] <= count), None)


def _failed_again(state: Breaker, risen: dict[str, int]) -> str | None:
    # A trial failed if it stalled, or showed again what the breaker opened for.
    if "no_commits" in risen:
        return "no_commits"
    again = state.reason in risen and (state.reason != "same_error" or risen["same_error"] > 1)
    return state.reason if again else None


def _settle_trial(
    state: Breaker, recorded: BreakerRecorded, moment: Moment, stamp: Stamp
) -> BreakerEvent:
    if has_brought_work(recorded):
        return reset(state, reason=recorded.reason or "complete", moment=moment, stamp=stamp)
    return TrialReturned(
        **event_fields(state, moment, stamp),
        reason=recorded.status,
    )


def _open(
    state: Breaker,
    policy: BreakerPolicy,
    reason: str,
    cooldown: float,
    moment: Moment,
    stamp: Stamp,
    head: str | None,
) -> BreakerOpened:
    cooldown = min(max(cooldown, policy.cooldown_seconds), policy.cooldown_max_seconds)
    return BreakerOpened(
        **event_fields(state, moment, stamp),
        **clock_fields(moment),
        reason=reason,
        cooldown_seconds=cooldown,
        head=head,
    )


def trip(
    state: Breaker,
    policy: BreakerPolicy,
    *,
    reason: str,
    moment: Moment,
    stamp: Stamp,
    head: str | None = None,
) -> BreakerOpened:
    """Open the breaker by hand; one that is open already begins its cooldown again."""
    return _open(state, policy, reason, state.cooldown_seconds, moment, stamp, head)


def reset(state: Breaker, *, reason: str, moment: Moment, stamp: Stamp) -> BreakerClosed:
    return BreakerClosed(
        **event_fields(state, moment, stamp),
        reason=reason,
    )
