"""Decide what a hook call means for the team of its session.

Hook calls arrive late and out of order now and then. A call that is older than what is known of a helper changes nothing; the
boot clock tells the order where both are of the same boot.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from guard.core.base.moment import Moment
from guard.core.hooks.payload import HookCall
from guard.core.team.change import Alive, Change, Joined, Kind, MemberLeft, Running, Teller
from guard.core.team.count import quiet_seconds
from guard.core.team.state import Member, TeamState, may_live

_HELPERS: tuple[Kind, ...] = ("subagent", "teammate")


def call_moment(call: HookCall) -> Moment:
    at = datetime.fromtimestamp(call.seconds, UTC)
    return Moment(at, call.boot_seconds, call.boot_id)


def sort_calls(calls: Sequence[HookCall]) -> list[HookCall]:
    """Sort calls as they happened: within one boot of the machine by the clock that does not jump."""
    began: dict[str | None, float] = {}
    for call in calls:
        began[call.boot_id] = min(call.seconds, began.get(call.boot_id, call.seconds))
    return sorted(calls, key=lambda call: (began[call.boot_id], call.boot_seconds))


def team_changes(call: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    match call.kind:
        case "helper_started":
            return _start(call, state)
        case "helper_ended":
            return _end(call, state)
        case "teammate_idle":
            return _mark_idle(call, state)
        case "session_ended":
            return _kill_all(call, state)
        case "stop_failed":
            return ()
        case _ if call.helper is not None:
            return _sign_of_life(call, _find_member(call.helper, state))
        case _ if call.tasks is not None or call.wakeups is not None:
            return (_listed_members(call, state),)
        case _:
            return ()


def _find_member(helper: str | None, state: TeamState | None) -> Member | None:
    return state.member(helper) if state is not None and helper is not None else None


def _start(call: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    # A teammate that was idle is started again for every message: it is the same life.
    helper, member = call.helper, _find_member(call.helper, state)
    if helper is None:
        return ()
    if member is not None and may_live(member):
        return _sign_of_life(call, member)
    if member is not None and member.left_at is not None and call_moment(call).now < member.left_at:
        return ()
    return (Joined(helper, "subagent", call.helper_type, call.team, "hook"),)


def _end(call: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    # Of a teammate this says that its turn has ended: it becomes idle next.
    member = _find_member(call.helper, state)
    if member is None or _is_of_an_earlier_life(call, member):
        return ()
    if member.kind == "teammate":
        return _sign_of_life(call, member)
    return (MemberLeft(member.member, "ended", member.incarnation),)


def _mark_idle(call: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    # Only now it is known for a teammate: its start, and the end of its turn, look like those of any subagent.
    name = call.helper or call.teammate
    member = _find_member(name, state)
    if name is None or (member is not None and _is_old(call, member)):
        return ()
    idle = Alive(name, idle=True)
    if member is not None and may_live(member) and member.kind == "teammate":
        return (idle,)
    teller: Teller = member.told_by if member is not None and member.counts else "hook"
    about = call.teammate or call.helper_type
    return (Joined(name, "teammate", about, call.team, teller), idle)


def _kill_all(call: HookCall, state: TeamState | None) -> tuple[Change, ...]:
    # Nothing that an agent CLI has started outlives it.
    members = state.members if state is not None else ()
    return tuple(
        MemberLeft(member.member, "killed", member.incarnation)
        for member in members
        if member.counts
        and member.told_by != "command"
        and not _is_of_an_earlier_life(call, member)
    )


def _sign_of_life(call: HookCall, member: Member | None) -> tuple[Change, ...]:
    if member is None or _is_old(call, member):
        return ()
    return (Alive(member.member),)


def _is_old(call: HookCall, member: Member) -> bool:
    # A clock set back by more than the lease proves nothing.
    return -member.lease_seconds < quiet_seconds(member.seen, call_moment(call)) < 0


def _is_of_an_earlier_life(call: HookCall, member: Member) -> bool:
    return _is_old(call, member) and call_moment(call).now < member.joined_at


def _listed_members(call: HookCall, state: TeamState | None) -> Running:
    running = [task for task in call.tasks or () if task.running]
    teammates = {task.id for task in running if task.kind == "teammate"}
    if _has_other_teammates(teammates, state):
        running = [task for task in running if task.id not in teammates]
    members = [Joined(task.id, task.kind, task.description) for task in running]
    members += [
        Joined(wakeup.id, "scheduled_wakeup", wakeup.description) for wakeup in call.wakeups or ()
    ]
    return Running(tuple(members), frozenset(_listed_kinds(call)))


def _has_other_teammates(teammates: set[str], state: TeamState | None) -> bool:
    # The list has teammates by other names than their hooks: they would count twice, and never be idle.
    living = [member for member in state.members if may_live(member)] if state is not None else []
    return any(member.kind in _HELPERS and member.member not in teammates for member in living)


def _listed_kinds(call: HookCall) -> list[Kind]:
    # Members of these kinds have ended unless they are in the lists.
    proven: list[Kind] = ["scheduled_wakeup"] if call.wakeups is not None else []
    if call.tasks is None or call.tasks_unclear:
        return proven
    has_teammates = any(task.kind == "teammate" for task in call.tasks)
    return [*proven, "background_shell", *(() if has_teammates else _HELPERS)]
