"""Handle one hook call: spool or answer the call of an agent CLI, or pass git's call on to git's hooks.

For an agent the exit code is always 0. To some agent CLIs another one means that the session must go on, and a fault of guard
must never trap a session: it is noted, and the session goes on or stops as it was about to.
"""

import os

from guard.core.hooks.event_kinds import ANSWERED, KINDS, PROBE
from guard.hooks import faults, spool
from guard.hooks.agent.journal import note_call
from guard.hooks.agent.payload import event_kind, make_payload, read_fields, read_stdin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OFF = ("", "0", "false")


def call(words: "Sequence[str]", environ: "Mapping[str, str]") -> int:
    """Handle the call that the words after `guard hook` name; return the exit code."""
    if environ.get(PROBE, "").lower() not in _OFF:
        return 0
    environ = {name: value for name, value in environ.items() if name != PROBE}
    if list(words[:1]) == ["git"]:
        from guard.hooks.git.call import call as call_git_hook

        return call_git_hook(words[1:], environ)
    try:
        _call(words, environ)
    except BaseException as error:
        # The boundary: also a Ctrl-C in the agent's terminal must not look like an answer.
        faults.tell(environ, f"guard hook {' '.join(words)}: {type(error).__name__}: {error}")
    return 0


def _call(words: "Sequence[str]", environ: "Mapping[str, str]") -> None:
    kind = event_kind(*words) if len(words) == 2 else None
    if kind is None:
        faults.tell(environ, f"guard hook {' '.join(words)}: {_problem(words)}")
        return
    agent, event = words
    data = read_stdin()
    if kind not in ANSWERED:
        fields = read_fields(data)
        payload = make_payload(agent, event, fields, environ)
        spool.put(environ, payload)
        note_call(payload, fields, environ)
        return
    try:
        fields = read_fields(data)
        note_call(make_payload(agent, event, fields, environ), fields, environ)
    except Exception as error:  # The answer matters more.
        faults.note(environ, f"{agent} {event}: {type(error).__name__}: {error}")
    _answer(agent, event, data, environ)


def _answer(agent: str, event: str, data: bytes, environ: "Mapping[str, str]") -> None:
    from importlib import import_module

    from guard.system.startup import prepare

    prepare()
    answer = import_module("guard.hooks.agent.boundary").answer
    text: str = answer(agent, event, data, environ)
    view = memoryview(text.encode())
    while view:
        view = view[os.write(1, view) :]


def _problem(words: "Sequence[str]") -> str:
    if len(words) != 2:
        return "an agent and an event are wanted"
    if words[0] not in KINDS:
        return f"this guard knows the agents {', '.join(KINDS)}"
    return "this guard does not know this event"
