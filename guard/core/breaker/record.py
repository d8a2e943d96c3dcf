"""Decide what the end of an iteration, or the user, does to the breaker."""

from dataclasses import replace

from guard.core.breaker.events import (
    BreakerClosed,
    BreakerEvent,
    BreakerOpened,
    BreakerRecorded,
    TrialReturned,
)
from guard.core.breaker.settings import BreakerSettings
from guard.core.breaker.state import Breaker, BreakerCase, BreakerCounts, has_brought_work, tally

CAUSES = ("no_commits", "same_error", "denied", "always_rescued", "refuted")
"""Why iterations open it; a person who trips it gives another word."""


def after_iteration(case: BreakerCase, recorded: BreakerRecorded) -> tuple[BreakerEvent, ...]:
    """Return the recorded end of an iteration, and the event that it leads to, if any."""
    state = case.state
    if state.state == "open":
        return (recorded,)
    is_trial = state.state == "half_open"
    risen = _counts_risen(state.counts, tally(state.counts, recorded))
    cause = _limit_reached(risen, case.settings)
    cause = cause or (_trial_failure_cause(state, risen) if is_trial else None)
    later = replace(case, stamp=case.stamp.next())
    if cause is not None:
        return (recorded, _open(later, cause, state.cooldown_seconds * 2, recorded.head))
    return (recorded, _settle_trial(later, recorded)) if is_trial else (recorded,)


def _counts_risen(before: BreakerCounts, after: BreakerCounts) -> dict[str, int]:
    # Each reason to open that this iteration gave, with its count now.
    counts = {
        "no_commits": (before.streak, after.streak),
        "same_error": (before.times(after.fingerprint), after.fingerprint_count),
        "denied": (before.denied_streak, after.denied_streak),
        "always_rescued": (before.rescue_streak, after.rescue_streak),
        "refuted": (before.refuted_streak, after.refuted_streak),
    }
    return {cause: new for cause, (old, new) in counts.items() if new > old}


def _limit_reached(risen: dict[str, int], settings: BreakerSettings) -> str | None:
    # The first reason whose count is at its limit; a limit of 0 is never reached.
    limits = {
        "no_commits": settings.stall_limit,
        "same_error": settings.same_error_limit,
        "denied": settings.denied_limit,
        "always_rescued": settings.rescue_limit,
        "refuted": settings.refuted_limit,
    }
    return next((cause for cause, count in risen.items() if 0 < limits[cause] <= count), None)


def _trial_failure_cause(state: Breaker, risen: dict[str, int]) -> str | None:
    # A trial failed if it stalled, or showed again what the breaker opened for.
    if "no_commits" in risen:
        return "no_commits"
    again = state.reason in risen and (state.reason != "same_error" or risen["same_error"] > 1)
    return state.reason if again else None


def _settle_trial(case: BreakerCase, recorded: BreakerRecorded) -> BreakerEvent:
    if has_brought_work(recorded):
        return reset(case, recorded.reason or "complete")
    return TrialReturned(**case.event_fields(), reason=recorded.status)


def _open(case: BreakerCase, reason: str, cooldown: float, head: str | None) -> BreakerOpened:
    limits = case.settings
    return BreakerOpened(
        **case.timed_event_fields(),
        reason=reason,
        cooldown_seconds=min(max(cooldown, limits.cooldown_seconds), limits.cooldown_max_seconds),
        head=head,
    )


def trip(case: BreakerCase, reason: str, head: str | None = None) -> BreakerOpened:
    """Open the breaker by hand; one that is open already begins its cooldown again."""
    return _open(case, reason, case.state.cooldown_seconds, head)


def reset(case: BreakerCase, reason: str) -> BreakerClosed:
    return BreakerClosed(**case.event_fields(), reason=reason)
