"""Waiting for something to happen: every wait ends at a limit, and at once when what it waits for is there."""

import time
from collections.abc import Callable

from guard.core.check.evidence import Living, Policy
from guard.core.check.holding import holds
from guard.git.locate import Repository
from guard.git.refs import head_and_refs_stamp

_PAUSE_SECONDS = 0.2


def until_news(
    repository: Repository,
    stamp: str,
    look: Callable[[], tuple[Living, ...]],
    policy: Policy,
    seconds: float,
    tick: Callable[[float], None],
) -> float:
    """Wait until a ref moves, what lived has ended or gone idle, or the time is over; return how long it took.

    `stamp` is of before the look that led here, so that a commit that landed in between is news. `tick` hears every time how
    many seconds are left.
    """
    begun = time.monotonic()
    before = look()
    while True:
        passed = time.monotonic() - begun
        if passed >= seconds or head_and_refs_stamp(repository) != stamp:
            return passed
        if is_news(before, look(), policy):
            return passed
        tick(seconds - passed)
        time.sleep(min(_PAUSE_SECONDS, max(0.0, seconds - passed)))


def is_news(before: tuple[Living, ...], now: tuple[Living, ...], policy: Policy) -> bool:
    """Whether something is at work now and nothing was, or the other way round; with nothing at work, whether one has ended.

    Which ones are at work changes all the time, as a build starts and ends its compilers; but a team holds what they do not.
    """
    if _team_holds(before, policy) != _team_holds(now, policy):
        return True
    busy = any(holds(one, policy) for one in before)
    if any(holds(one, policy) for one in now) != busy:
        return True
    return not busy and not {one.name for one in before} <= {one.name for one in now}


def _team_holds(living: tuple[Living, ...], policy: Policy) -> bool:
    return any(one.kind == "member" and holds(one, policy) for one in living)
