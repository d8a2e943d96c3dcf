"""Whether the times of files can tell what changed while a session was not there."""

from guard.core.base.moment import Moment
from guard.core.hooks.state import HookSession

_SET_BACK_SECONDS = 1.0
"""By less than this the clocks differ without anybody having set one."""


def was_set_back(known: HookSession, moment: Moment) -> bool:
    """Whether the wall clock was set back since the session began or was resumed: then the times of files say nothing."""
    if known.started_at is None:
        return False
    passed = (moment.now - known.started_at).total_seconds()
    boot = known.started_boot
    if boot is None or boot.id != moment.boot_id:
        return passed < 0
    return passed < moment.boot_seconds - boot.seconds - _SET_BACK_SECONDS
