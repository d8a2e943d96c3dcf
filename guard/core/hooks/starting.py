"""What the start of a session means: whether it is one, and whether the iteration that is open is over with its session."""

from datetime import datetime

from guard.core.hooks.heard import Heard
from guard.core.hooks.state import Hooks, HookSession
from guard.core.hooks.vocabulary import KINDS, STARTS
from guard.core.runs import OpenIteration


def is_real_start(heard: Heard) -> bool:
    """Whether a session begins with it that can be known again: no helper's, and none that goes on."""
    return heard.session is not None and heard.helper is None and heard.source in STARTS


def began_it(opened: OpenIteration | None, known: HookSession | None) -> bool:
    """Whether the open iteration began with this very session."""
    return (
        opened is not None
        and opened.supervisor is None
        and known is not None
        and known.began
        and known.session is not None
        and opened.session == known.session
    )


def over_since(opened: OpenIteration | None, hooks: Hooks | None, now: datetime) -> datetime | None:
    """When the session ended with which the open iteration began; None if that is not known to be over."""
    for known in hooks.sessions if hooks is not None else ():
        if known.ended and began_it(opened, known):
            return _last_end(hooks, known.agent) or now
    return None


def _last_end(hooks: Hooks | None, agent: str) -> datetime | None:
    """The newest end of any session of the agent: this one ended no later."""
    ends = [
        calls.last_at
        for calls in (hooks.calls if hooks is not None else ())
        if calls.agent == agent and KINDS[agent].get(calls.event) == "session_ended"
    ]
    return max(ends, default=None)
