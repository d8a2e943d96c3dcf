"""For `guard doctor`: whether hooks that are installed are called, each that is due, and what went wrong in them."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from guard.context.invocation import Invocation
from guard.core.base.text import plural
from guard.core.hooks.event_kinds import ANSWERED, KINDS
from guard.core.hooks.events import Calls
from guard.core.hooks.state import HOOKS
from guard.core.log.reports import DoctorCheck, Health
from guard.errors import GuardError
from guard.hooks import faults
from guard.install.base import AgentProgram
from guard.install.trust import HookTrust

_A_DAY = timedelta(days=1)
_MOST_TEXT = 200


def last_called(guard: Invocation, host: AgentProgram) -> HookTrust:
    """When a hook of this agent was last called in this work tree."""
    moments = [one.last_at for one in _calls(guard, host)]
    if not moments:
        return HookTrust("never called here", "start a session here, and look again")
    return HookTrust(f"last called {_ago(max(moments), guard.clock.now())}")


def silent(guard: Invocation, host: AgentProgram) -> Iterator[DoctorCheck]:
    """The hooks that every session calls, and that were never called here, though others were.

    It is only a warning if such a session is over: the first one may still be at work.
    """
    counts = {one.event: one.count for one in _calls(guard, host)}
    kinds = KINDS[host.agent]
    due = [event for event in host.events if kinds[event] in ANSWERED]
    missing = [event for event in due if event not in counts]
    if not counts or not missing:
        return
    heard = {kinds.get(event) for event in counts}
    starts = sum(count for event, count in counts.items() if kinds.get(event) == "session_started")
    is_over = bool(heard & {"stopping", "session_ended"}) or starts > 1
    found = f"{' and '.join(missing)} {'was' if len(missing) == 1 else 'were'} never called here"
    hint = "look at the program's own list of its hooks, and into hooks.log, whether it failed"
    yield line(host, "warning" if is_over else "ok", found, hint if is_over else None)


def noted_faults(guard: Invocation) -> Iterator[DoctorCheck]:
    """What went wrong in hooks of the last day, of all agents and in all work trees."""
    since = (guard.clock.now() - _A_DAY).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = [one for one in faults.lines(guard.environ) if one[:4].isdigit() and one >= since]
    if lines:
        newest = lines[-1] if len(lines[-1]) <= _MOST_TEXT else f"{lines[-1][:_MOST_TEXT]}…"
        found = f"{plural(len(lines), 'line')} in the last day; {newest}"
        hint = f"look into {faults.state_home(guard.environ)}/{faults.LOG}"
        yield DoctorCheck.of("hook faults", "warning", found, hint)


def line(host: AgentProgram, state: Health, found: str, hint: str | None) -> DoctorCheck:
    """What was found of an agent's hooks."""
    return DoctorCheck.of(f"{host.agent} hooks", state, found, hint)


def _calls(guard: Invocation, host: AgentProgram) -> list[Calls]:
    with suppress(GuardError):
        key = guard.workspace.worktree_key
        known = guard.store.view(HOOKS, key) if key else None
        return [one for one in (known.calls if known else ()) if one.agent == host.agent]
    return []


def _ago(moment: datetime, now: datetime) -> str:
    seconds = max(0, int((now - moment).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"
