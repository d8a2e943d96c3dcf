"""Decide what the start of a session means: whether a session begins, and whether the open iteration is over."""

from datetime import datetime

from guard.core.hooks.event_kinds import KINDS, STARTS
from guard.core.hooks.payload import HookCall
from guard.core.hooks.state import HookSession, HooksState
from guard.core.iteration.run import OpenIteration


def is_new_session(call: HookCall) -> bool:
    """Tell whether a session with an id begins with this call: not a helper's, and not one that goes on."""
    return call.session is not None and call.helper is None and call.source in STARTS


def has_begun_iteration(opened: OpenIteration | None, known: HookSession | None) -> bool:
    return (
        opened is not None
        and opened.supervisor is None
        and known is not None
        and known.began
        and known.session is not None
        and opened.session == known.session
    )


def session_end(
    opened: OpenIteration | None, hooks: HooksState | None, now: datetime, *, gone: bool = False
) -> datetime | None:
    """Return when the session that began the open iteration ended; None if it may still run.

    It has ended if a hook reported so, and also if its agent CLI is `gone`: not every CLI reports an end, and none that is
    killed.
    """
    for known in hooks.sessions if hooks is not None else ():
        if has_begun_iteration(opened, known) and (known.ended or gone):
            return _last_heard(hooks, known) or now
    return None


def _last_heard(hooks: HooksState | None, known: HookSession) -> datetime | None:
    # The session ended no later than the last call of any session of its agent.
    agent = known.agent
    calls = [call for call in (hooks.calls if hooks is not None else ()) if call.agent == agent]
    ends = [call.last_at for call in calls if KINDS[agent].get(call.event) == "session_ended"]
    return max(ends if known.ended else [call.last_at for call in calls], default=None)
