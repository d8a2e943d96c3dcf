"""A hook that answers, called as the agents' programs do, in this process; and what was recorded of it."""

import json
import os
from pathlib import Path
from typing import Any

from guard.context.invocation import Invocation
from guard.core.hooks.state import HOOKS, HooksState
from guard.core.log.events import BaseEvent
from guard.hooks import spool
from guard.hooks.agent import payload
from guard.hooks.agent.boundary import answer
from guard.hooks.faults import LOG
from tests.hooks.agent.documents import data

STARTS = dict.fromkeys(("claude", "codex", "gemini", "qwen"), "SessionStart") | {
    "copilot": "sessionStart"
}
STOPS = {
    "claude": "Stop",
    "codex": "Stop",
    "gemini": "AfterAgent",
    "qwen": "Stop",
    "copilot": "agentStop",
}


def document(agent: str, event: str, session: str = "s1", **more: Any) -> bytes:
    """A real document of the agent's program, of this session and from the current folder."""
    names = {"session_id": session} if agent != "copilot" else {"sessionId": session}
    return data(agent, event, **{"cwd": str(Path.cwd()), **names, **more})


def start(agent: str = "claude", session: str = "s1", source: str = "startup", **more: Any) -> str:
    """What is printed at a session's start."""
    event = STARTS[agent]
    return answer(agent, event, document(agent, event, session, source=source, **more), os.environ)


def stop(agent: str = "claude", session: str = "s1", **more: Any) -> dict[str, str]:
    """What is printed when a session wants to stop; empty if nothing is."""
    event = STOPS[agent]
    nothing: dict[str, Any] = {"background_tasks": []} if agent == "claude" else {}
    told = document(agent, event, session, **{**nothing, **more})
    return read(answer(agent, event, told, os.environ))


def read(printed: str) -> dict[str, str]:
    """The answer as the agent's program reads it."""
    assert "\n" not in printed
    assert printed.isascii()
    found: dict[str, str] = json.loads(printed) if printed else {}
    return found


def events(kind: str) -> list[BaseEvent]:
    """All that was recorded of one type, in order."""
    return [entry.event for entry in Invocation().store.entries() if entry.event.type == kind]


def decisions() -> list[tuple[str, str, int]]:
    """What was decided at the stops, why, and how often the session had been asked by then."""
    found: list[Any] = events("stop_decided")
    return [(one.decision, one.reason, one.blocks) for one in found]


def hooks() -> HooksState:
    guard = Invocation()
    view = guard.store.view(HOOKS, guard.worktree_key)
    assert view is not None
    return view


def faults() -> str:
    """What went wrong, as it was noted."""
    path = Path(os.environ["XDG_STATE_HOME"], "guard", LOG)
    return path.read_text() if path.exists() else ""


def observe(agent: str, event: str, session: str = "s1", **more: Any) -> None:
    """Call a hook that only observes: it goes to the spool."""
    told = payload.read_payload(agent, event, document(agent, event, session, **more), os.environ)
    assert spool.put(os.environ, told) is not None
