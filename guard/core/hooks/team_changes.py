"""What a call of a hook means for the team of its session.

Hooks are call late and out of order now and then. A word that is older than what is known of a helper changes nothing; how
old it is goes by the boot clock where both were of the same boot.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from guard.core.base.moment import Moment
from guard.core.hooks.payload import HookCall
from guard.core.team.change import Alive, Change, Joined, Kind, MemberLeft, Running
from guard.core.team.count import quiet_seconds
from guard.core.team.state import Member, TeamState, may_live

_HELPERS: tuple[Kind, ...] = ("subagent", "teammate")


def call_moment(call: HookCall) -> Moment:
    """When it was, by both clocks."""
    at = datetime.fromtimestamp(call.seconds, UTC)
    return Moment(at, call.boot_seconds, call.boot_id)


def sort_calls(calls: Sequence[HookCall]) -> list[HookCall]:
    """The same as they happened: within one boot of the machine by the clock that does not jump."""
    began: dict[str | None, float] = {}
    for one in calls:
        began[one.boot_id] = min(one.seconds, began.get(one.boot_id, one.seconds))
    return sorted(calls, key=lambda one: (began[one.boot_id], one.boot_seconds))


def team_changes(call: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    """What it tells of the helpers of its session, on the team as it is known so far."""
    match call.kind:
        case "helper_started":
            return _started(call, state)
        case "helper_ended":
            return _ended(call, state)
        case "teammate_idle":
            return _idle(call, state)
        case "session_ended":
            return _all_killed(call, state)
        case "stop_failed":
            return ()
        case _ if call.helper is not None:
            return _sign(call, _known(call.helper, state))
        case _ if call.tasks is not None or call.wakeups is not None:
            return (_running(call, state),)
        case _:
            return ()


def _known(helper: str | None, state: TeamState | None) -> Member | None:
    return state.member(helper) if state is not None and helper is not None else None


def _started(call: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    """A teammate that was idle is started again for every message: it is the same life."""
    helper, member = call.helper, _known(call.helper, state)
    if helper is None:
        return ()
    if member is not None and may_live(member):
        return _sign(call, member)
    if member is not None and member.left_at is not None and call_moment(call).now < member.left_at:
        return ()
    return (Joined(helper, "subagent", call.helper_type, call.team),)


def _ended(call: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    """Of a teammate this says that its turn has ended: it becomes idle next."""
    member = _known(call.helper, state)
    if member is None or _is_of_an_earlier_life(call, member):
        return ()
    if member.kind == "teammate":
        return _sign(call, member)
    return (MemberLeft(member.member, "ended", member.incarnation),)


def _idle(call: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    """Only now is it known for a teammate: it was started like any subagent, and so was its turn's end told."""
    name = call.helper or call.teammate
    member = _known(name, state)
    if name is None or (member is not None and _is_old(call, member)):
        return ()
    idle = Alive(name, idle=True)
    if member is not None and may_live(member) and member.kind == "teammate":
        return (idle,)
    return (Joined(name, "teammate", call.teammate or call.helper_type, call.team), idle)


def _all_killed(call: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    """Nothing that its program has started outlives it."""
    members = state.members if state is not None else ()
    return tuple(
        MemberLeft(one.member, "killed", one.incarnation)
        for one in members
        if one.counts and one.told_by == "host" and not _is_of_an_earlier_life(call, one)
    )


def _sign(call: HookCall, member: Member | None) -> tuple[Change, ...]:
    """A sign of life of whoever is known; none that is older than the last."""
    if member is None or _is_old(call, member):
        return ()
    return (Alive(member.member),)


def _is_old(call: HookCall, member: Member) -> bool:
    """Whether it was call before the last sign of life. A clock that was set back by more than the lease proves nothing."""
    return -member.lease_seconds < quiet_seconds(member.seen, call_moment(call)) < 0


def _is_of_an_earlier_life(call: HookCall, member: Member) -> bool:
    return _is_old(call, member) and call_moment(call).now < member.joined_at


def _running(call: HookCall, state: TeamState | None) -> Running:
    running = [one for one in call.tasks or () if one.running]
    teammates = {one.id for one in running if one.kind == "teammate"}
    if _others_are_known(teammates, state):
        running = [one for one in running if one.id not in teammates]
    members = [Joined(one.id, one.kind, one.description) for one in running]
    members += [Joined(one.id, "scheduled_wakeup", one.description) for one in call.wakeups or ()]
    return Running(tuple(members), frozenset(_proven(call)))


def _others_are_known(teammates: set[str], state: TeamState | None) -> bool:
    """The list has teammates by other names than their hooks: with those call they would count twice, and never be idle."""
    living = [one for one in state.members if may_live(one)] if state is not None else []
    return any(one.kind in _HELPERS and one.member not in teammates for one in living)


def _proven(call: HookCall) -> list[Kind]:
    """The kinds of which whatever is not in the lists has ended."""
    proven: list[Kind] = ["scheduled_wakeup"] if call.wakeups is not None else []
    if call.tasks is None or call.tasks_unclear:
        return proven
    has_teammates = any(one.kind == "teammate" for one in call.tasks)
    return [*proven, "background_shell", *(() if has_teammates else _HELPERS)]
