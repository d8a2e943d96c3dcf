"""Tell what is alive of an iteration, and what it holds back: a verdict, a commit by guard, or nothing."""

from guard.core.check.evidence import Evidence, Living, Policy

SERVER_WINDOW_SECONDS = 10.0


def is_holding(living: Living, policy: Policy) -> bool:
    """Tell whether the verdict waits for it: for a member until it has hung for too long, for a process while it is at work.

    An idle process holds nothing, and a server that was left running is idle as soon as it is quiet.
    """
    window = policy.max_wait_seconds if living.kind == "member" else policy.progress_window_seconds
    if living.serves:
        window = min(window, SERVER_WINDOW_SECONDS)
    return living.idle_seconds < window


def may_go_on(living: Living, policy: Policy) -> bool:
    """Tell whether it may still do something of its own accord; a server only answers."""
    return living.idle_seconds < policy.max_wait_seconds and not living.serves


def may_commit(seen: Evidence, policy: Policy) -> bool:
    """Tell whether guard may commit what was left: not while something is at work, and not while the agent itself lives."""
    return policy.rescue and policy.wait and not is_at_work(seen, policy)


def is_at_work(seen: Evidence, policy: Policy) -> bool:
    """Tell whether anything of the iteration is at work, or its agent lives."""
    busy = any(is_holding(living, policy) for living in seen.living)
    return busy or living_agent(seen, policy) is not None


def living_agent(seen: Evidence, policy: Policy) -> Living | None:
    agents = (living for living in seen.living if living.kind == "agent")
    return next((living for living in agents if may_go_on(living, policy)), None)


def hung_members(seen: Evidence, policy: Policy) -> list[Living]:
    """Return the members that have lived too long without progress, if no member of the team is at work."""
    members = [living for living in seen.living if living.kind == "member"]
    return [] if any(is_holding(living, policy) for living in members) else members


def is_news(before: tuple[Living, ...], now: tuple[Living, ...], policy: Policy) -> bool:
    """Tell whether something has begun or stopped to be at work; with nothing at work, whether something has ended.

    Which processes are at work changes all the time, as a build starts and ends its compilers, and is no news. Members of a
    team are counted by themselves, because a verdict on commits waits for them alone.
    """
    if _team_holds(before, policy) != _team_holds(now, policy):
        return True
    is_busy = any(is_holding(living, policy) for living in before)
    if any(is_holding(living, policy) for living in now) != is_busy:
        return True
    return not is_busy and not {living.name for living in before} <= {living.name for living in now}


def may_answer_anew(before: tuple[Living, ...], now: tuple[Living, ...], policy: Policy) -> bool:
    """Tell whether a session may answer otherwise than it did: something has ended, or its agent goes on."""
    if any(living.kind == "agent" and is_holding(living, policy) for living in now):
        return True
    return not {living.name for living in before} <= {living.name for living in now}


def _team_holds(alive: tuple[Living, ...], policy: Policy) -> bool:
    return any(living.kind == "member" and is_holding(living, policy) for living in alive)
