"""Decide when to stop a run that goes nowhere, and when to let it try again.

Only a genuine stall counts: `timeout`, and `nothing_to_do` when it repeats. The same error, denied permissions and work that
always has to be rescued have counts of their own. An open breaker allows one trial after its cooldown, or at once after a
commit from outside the iterations. A trial that brings work closes it; one that shows again what opened it doubles the
cooldown; any other says nothing for or against, and is handed back to be claimed again at once.

Durations are taken by the boot clock within one boot, and by wall time across boots. A moment that lies in the future was
recorded before the clock was set back: nothing has elapsed then, so the breaker stays open, for one more cooldown at most.
"""

from guard.core.base.moment import Moment, Stamp
from guard.core.breaker.allow import (
    BreakerPermission,
    claim,
    is_clock_set_back,
    permission,
    restart,
)
from guard.core.breaker.record import CAUSES, after_iteration, reset, trip
from guard.core.breaker.settings import BreakerSettings as BreakerPolicy
from guard.core.breaker.state import BREAKER, Breaker, BreakerFold, BreakerState, Happening, Trial

__all__ = [
    "BREAKER",
    "CAUSES",
    "Breaker",
    "BreakerFold",
    "BreakerPermission",
    "BreakerPolicy",
    "BreakerState",
    "Happening",
    "Moment",
    "Stamp",
    "Trial",
    "after_iteration",
    "claim",
    "is_clock_set_back",
    "permission",
    "reset",
    "restart",
    "trip",
]
