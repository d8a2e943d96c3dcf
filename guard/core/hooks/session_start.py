"""What the start of a session means: whether it is one, and whether the iteration that is open is over with its session."""

from datetime import datetime

from guard.core.hooks.event_kinds import KINDS, STARTS
from guard.core.hooks.payload import HookCall
from guard.core.hooks.state import HookSession, HooksState
from guard.core.iteration.run import OpenIteration


def is_new_session(call: HookCall) -> bool:
    """Whether a session begins with it that can be known again: no helper's, and none that goes on."""
    return call.session is not None and call.helper is None and call.source in STARTS


def has_begun_iteration(opened: OpenIteration | None, known: HookSession | None) -> bool:
    """Whether the open iteration began with this very session."""
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
    """When the session ended with which the open iteration began; None if that is not known to be over.

    It is if its end was call, and also if its program is `gone`: not every program tells an end, and none that is killed.
    """
    for known in hooks.sessions if hooks is not None else ():
        if has_begun_iteration(opened, known) and (known.ended or gone):
            return _last_heard(hooks, known) or now
    return None


def _last_heard(hooks: HooksState | None, known: HookSession) -> datetime | None:
    """The newest end of any session of the agent, or where no end is told its newest word: this one ended no later."""
    agent = known.agent
    calls = [one for one in (hooks.calls if hooks is not None else ()) if one.agent == agent]
    ends = [one.last_at for one in calls if KINDS[agent].get(one.event) == "session_ended"]
    return max(ends if known.ended else [one.last_at for one in calls], default=None)
