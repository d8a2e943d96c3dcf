"""Decide when to stop a run that goes nowhere, and when to let it try again.

Only a genuine stall counts: `timeout`, and `nothing_to_do` when it repeats. The same error, denied permissions and work that
always has to be rescued have counts of their own. An open breaker allows one trial after its cooldown, or at once after a
commit from outside the iterations. A trial that brings work closes it; one that shows again what opened it doubles the
cooldown; any other says nothing for or against, and is handed back to be claimed again at once.

Durations are taken by the boot clock within one boot, and by wall time across boots. A moment that lies in the future was
recorded before the clock was set back: nothing has elapsed then, so the breaker stays open, for one more cooldown at most.
"""
