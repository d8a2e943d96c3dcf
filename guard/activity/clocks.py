"""When this machine slept or was off, from its clocks as they were read whenever somebody looked."""

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.activity.clocks import MACHINE_CLOCKS, machine_key
from guard.core.activity.gaps import Gap, MachineClock, gaps, needed
from guard.core.events.activity import ClocksRead
from guard.errors import GuardError
from guard.system import process_identity as alive
from guard.system.clock import Clock
from guard.system.host import here

EVERY_SECONDS = 600.0
"""So often the clocks are written down while somebody looks, if nothing happens to them."""


def gaps_here(guard: Invocation) -> tuple[Gap, ...]:
    """What is known of this machine; the reading of now is recorded if it tells something."""
    boot = _boot(guard.clock)
    if boot is None:
        return ()
    clock, host = guard.clock, here()
    now = MachineClock(
        at=clock.now(), boot_seconds=clock.boot(), awake_seconds=clock.awake(), boot_id=boot
    )
    machine = host.machine or host.name
    view = guard.store.view(MACHINE_CLOCKS, machine_key(machine))
    before = view.readings if view is not None else ()
    if needed(before, now, EVERY_SECONDS):
        _record(guard, machine, now)
    return gaps((*before, now))


def _boot(clock: Clock) -> str | None:
    """A clock that was stopped for a test has no boot, unless it tells how long its machine slept."""
    if clock.fixed is None:
        return alive.boot_id()
    return None if clock.slept is None else "stopped"


def _record(guard: Invocation, machine: str, now: MachineClock) -> None:
    try:
        with guard.writable_store.change() as change:
            event = ClocksRead(id=new_id(), machine=machine, **dict(now))
            change.append(event)
    except GuardError as error:
        guard.output.warn(f"the clocks could not be recorded: {error.message}")
