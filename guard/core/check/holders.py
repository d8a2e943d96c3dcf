"""What is alive of an iteration, and what it holds back: a verdict, a commit by guard, or nothing."""

from guard.core.check.evidence import Evidence, Living, Policy


def is_holding(living: Living, policy: Policy) -> bool:
    """Whether the verdict has to wait for it: a member until it has hung for too long, a process while it is at work.

    An idle process, such as a server that was left running, holds nothing.
    """
    window = policy.max_wait_seconds if living.kind == "member" else policy.progress_window_seconds
    return living.idle_seconds < window


def may_go_on(living: Living, policy: Policy) -> bool:
    """Whether something idle may still come to life: not if it has hung for too long."""
    return living.idle_seconds < policy.max_wait_seconds


def may_commit(seen: Evidence, policy: Policy) -> bool:
    """Whether guard may commit what was left: never under the hands of something that is at work, or of the agent itself."""
    busy = any(is_holding(one, policy) for one in seen.living) or living_agent(seen, policy)
    return policy.rescue and policy.wait and not busy


def living_agent(seen: Evidence, policy: Policy) -> Living | None:
    """The agent's own process, if it lives and may go on."""
    agents = (one for one in seen.living if one.kind == "agent")
    return next((one for one in agents if may_go_on(one, policy)), None)


def hung_members(seen: Evidence, policy: Policy) -> list[Living]:
    """Members that have lived without progress for too long, while none of their team does anything."""
    members = [one for one in seen.living if one.kind == "member"]
    return [] if any(is_holding(one, policy) for one in members) else members


def is_news(before: tuple[Living, ...], now: tuple[Living, ...], policy: Policy) -> bool:
    """Whether something is at work now and nothing was, or the other way round; with nothing at work, whether one has ended.

    Which ones are at work changes all the time, as a build starts and ends its compilers; but a team holds what they do not.
    """
    if _team_holds(before, policy) != _team_holds(now, policy):
        return True
    is_busy = any(is_holding(living, policy) for living in before)
    if any(is_holding(living, policy) for living in now) != is_busy:
        return True
    return not is_busy and not {living.name for living in before} <= {living.name for living in now}


def _team_holds(alive: tuple[Living, ...], policy: Policy) -> bool:
    return any(living.kind == "member" and is_holding(living, policy) for living in alive)
