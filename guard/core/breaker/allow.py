"""Decide whether an iteration may begin, and claim the trial that an open breaker allows."""

from datetime import datetime

from guard.core.base.first_use import dataclass
from guard.core.base.moment import Moment, elapsed_seconds
from guard.core.breaker.events import CooldownRestarted, TrialClaimed
from guard.core.breaker.settings import BreakerSettings
from guard.core.breaker.state import Breaker, BreakerCase, Trial, add_seconds
from guard.core.iteration.facts import Process


@dataclass(frozen=True)
class BreakerPermission:
    """Whether an iteration may begin, and why; a trial has to be claimed first."""

    allowed: bool
    trial: bool
    reason: str
    retry_at: datetime | None = None


def permission(
    state: Breaker,
    settings: BreakerSettings,
    moment: Moment,
    *,
    head: str | None,
    holder_alive: bool,
    handed_over: bool = False,
) -> BreakerPermission:
    """Decide whether an iteration may begin now; `head` is the commit of the work tree, None if it was not read.

    `handed_over` says that the process which holds the trial has started the caller to make it.
    """
    if state.state == "closed":
        return BreakerPermission(True, False, "closed")
    if state.state == "half_open" and handed_over:
        return BreakerPermission(True, True, "handed_over")
    if state.state == "half_open":
        return _next_trial(state.trial, moment, holder_alive)
    if head is not None and state.head is not None and head != state.head:
        return BreakerPermission(True, True, "commit_outside")
    cooled = elapsed_seconds(state.cooling_since, moment) if state.cooling_since else None
    left = min(state.cooldown_seconds, settings.cooldown_max_seconds) - (cooled or 0)
    if left <= 0:
        return BreakerPermission(True, True, "cooldown_over")
    return BreakerPermission(False, False, "cooling_down", add_seconds(moment.now, left))


def _next_trial(trial: Trial | None, moment: Moment, holder_alive: bool) -> BreakerPermission:
    if trial is None:
        return BreakerPermission(True, True, "trial_returned")
    if trial.holder is not None and not holder_alive:
        return BreakerPermission(True, True, "holder_gone")
    since = elapsed_seconds(trial.claimed, moment)
    left = trial.lease_seconds - (since or 0)
    if left <= 0 or (since is None and trial.holder is None):
        return BreakerPermission(True, True, "lease_over")
    return BreakerPermission(False, False, "trial_taken", add_seconds(moment.now, left))


def claim(case: BreakerCase, reason: str, holder: Process | None) -> TrialClaimed:
    return TrialClaimed(
        **case.timed_event_fields(),
        reason=reason,
        holder=holder,
        lease_seconds=case.settings.trial_lease_seconds,
    )


def is_clock_set_back(state: Breaker, moment: Moment) -> bool:
    """Tell whether the cooldown began in what the clocks now call the future: it would last until they are there again."""
    since = state.cooling_since
    return state.state == "open" and since is not None and elapsed_seconds(since, moment) is None


def restart(case: BreakerCase) -> CooldownRestarted:
    return CooldownRestarted(**case.timed_event_fields())
