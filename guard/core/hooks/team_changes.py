"""What a call of a hook means for the team of its session.

Hooks are heard late and out of order now and then. A word that is older than what is known of a helper changes nothing; how
old it is goes by the boot clock where both were of the same boot.
"""

from datetime import UTC, datetime

from guard.core.base.moment import Moment
from guard.core.hooks.payload import HookCall
from guard.core.team.change import Alive, Change, Joined, Kind, MemberLeft, Running
from guard.core.team.count import quiet_seconds
from guard.core.team.state import Member, TeamState, may_live

_HELPERS: tuple[Kind, ...] = ("subagent", "teammate")


def moment_of(heard: HookCall) -> Moment:
    """When it was, by both clocks."""
    at = datetime.fromtimestamp(heard.seconds, UTC)
    return Moment(at, heard.boot_seconds, heard.boot_id)


def in_order(all_heard: list[HookCall]) -> list[HookCall]:
    """The same as they happened: within one boot of the machine by the clock that does not jump."""
    began: dict[str | None, float] = {}
    for one in all_heard:
        began[one.boot_id] = min(one.seconds, began.get(one.boot_id, one.seconds))
    return sorted(all_heard, key=lambda one: (began[one.boot_id], one.boot_seconds))


def changes(heard: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    """What it tells of the helpers of its session, on the team as it is known so far."""
    match heard.kind:
        case "helper_started":
            return _started(heard, state)
        case "helper_ended":
            return _ended(heard, state)
        case "teammate_idle":
            return _idle(heard, state)
        case "session_ended":
            return _all_killed(heard, state)
        case "stop_failed":
            return ()
        case _ if heard.helper is not None:
            return _sign(heard, _known(heard.helper, state))
        case _ if heard.tasks is not None or heard.wakeups is not None:
            return (_running(heard, state),)
        case _:
            return ()


def _known(helper: str | None, state: TeamState | None) -> Member | None:
    return state.member(helper) if state is not None and helper is not None else None


def _started(heard: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    """A teammate that was idle is started again for every message: it is the same life."""
    helper, member = heard.helper, _known(heard.helper, state)
    if helper is None:
        return ()
    if member is not None and may_live(member):
        return _sign(heard, member)
    if member is not None and member.left_at is not None and moment_of(heard).now < member.left_at:
        return ()
    return (Joined(helper, "subagent", heard.helper_type, heard.team),)


def _ended(heard: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    """Of a teammate this says that its turn has ended: it becomes idle next."""
    member = _known(heard.helper, state)
    if member is None or _is_of_an_earlier_life(heard, member):
        return ()
    if member.kind == "teammate":
        return _sign(heard, member)
    return (MemberLeft(member.member, "ended", member.incarnation),)


def _idle(heard: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    """Only now is it known for a teammate: it was started like any subagent, and so was its turn's end told."""
    name = heard.helper or heard.teammate
    member = _known(name, state)
    if name is None or (member is not None and _is_old(heard, member)):
        return ()
    idle = Alive(name, idle=True)
    if member is not None and may_live(member) and member.kind == "teammate":
        return (idle,)
    return (Joined(name, "teammate", heard.teammate or heard.helper_type, heard.team), idle)


def _all_killed(heard: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    """Nothing that its program has started outlives it."""
    members = state.members if state is not None else ()
    return tuple(
        MemberLeft(one.member, "killed", one.incarnation)
        for one in members
        if one.counts and one.told_by == "host" and not _is_of_an_earlier_life(heard, one)
    )


def _sign(heard: HookCall, member: Member | None) -> tuple[Change, ...]:
    """A sign of life of whoever is known; none that is older than the last."""
    if member is None or _is_old(heard, member):
        return ()
    return (Alive(member.member),)


def _is_old(heard: HookCall, member: Member) -> bool:
    """Whether it was heard before the last sign of life. A clock that was set back by more than the lease proves nothing."""
    return -member.lease_seconds < quiet_seconds(member.seen, moment_of(heard)) < 0


def _is_of_an_earlier_life(heard: HookCall, member: Member) -> bool:
    return _is_old(heard, member) and moment_of(heard).now < member.joined_at


def _running(heard: HookCall, state: TeamState | None) -> Running:
    running = [one for one in heard.tasks or () if one.running]
    teammates = {one.id for one in running if one.kind == "teammate"}
    if _others_are_known(teammates, state):
        running = [one for one in running if one.id not in teammates]
    members = [Joined(one.id, one.kind, one.description) for one in running]
    members += [Joined(one.id, "scheduled_wakeup", one.description) for one in heard.wakeups or ()]
    return Running(tuple(members), frozenset(_proven(heard)))


def _others_are_known(teammates: set[str], state: TeamState | None) -> bool:
    """The list has teammates by other names than their hooks: with those heard they would count twice, and never be idle."""
    living = [one for one in state.members if may_live(one)] if state is not None else []
    return any(one.kind in _HELPERS and one.member not in teammates for one in living)


def _proven(heard: HookCall) -> list[Kind]:
    """The kinds of which whatever is not in the lists has ended."""
    proven: list[Kind] = ["scheduled_wakeup"] if heard.wakeups is not None else []
    if heard.tasks is None or heard.tasks_unclear:
        return proven
    has_teammates = any(one.kind == "teammate" for one in heard.tasks)
    return [*proven, "background_shell", *(() if has_teammates else _HELPERS)]
