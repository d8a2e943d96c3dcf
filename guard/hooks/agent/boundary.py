"""Answer an agent's hook call; a fault in guard is noted, and lets the session start or stop.

Guard's own modules are loaded inside of the boundary, because even loading them can fail.
"""

import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from guard.core.hooks.event_kinds import ANSWERED, KINDS
from guard.hooks import faults
from guard.hooks.watchdog import TimeIsUp, Watchdog
from guard.system.signals import handle_signals, interrupt_on_termination

if TYPE_CHECKING:
    from guard.context.invocation import Invocation
    from guard.core.hooks.payload import HookCall

_LIMIT_SECONDS = {"session_started": 20.0, "stopping": 40.0}
"""The defaults of the settings: they hold until the settings are read, and if they cannot be."""
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHOW_MESSAGES = ("claude", "codex", "gemini", "qwen")
_MOST_TEXT = 300
NOTHING = ""
"""To every agent CLI it means: start, or stop, as you were about to."""


def answer(agent: str, event: str, data: bytes, environ: Mapping[str, str]) -> str:
    """Return what to print for the agent CLI; an empty text lets the session start or stop."""
    kind = KINDS.get(agent, {}).get(event, "")
    if kind not in ANSWERED:
        return NOTHING
    try:
        with interrupt_on_termination(), Watchdog(_LIMIT_SECONDS[kind]) as watchdog:
            return _answer(agent, event, data, environ, watchdog)
    except BaseException as error:  # Also a signal, and the end of the memory.
        with handle_signals(_STOP_SIGNALS, lambda _number, _frame: None):
            return _let_go(agent, event, kind, error, environ)


def render_block(agent: str, reason: str) -> str:
    # OpenCode has no answer that makes the agent go on.
    return NOTHING if agent == "opencode" else json.dumps({"decision": "block", "reason": reason})


def render_message(agent: str, text: str) -> str:
    if not text or agent not in _SHOW_MESSAGES:
        return NOTHING
    return json.dumps({"systemMessage": text.replace("\n", " ")})


def _answer(
    agent: str, event: str, data: bytes, environ: Mapping[str, str], watchdog: Watchdog
) -> str:
    from guard.core.hooks.payload import parse_call
    from guard.hooks.agent.payload import read_payload

    call = parse_call(read_payload(agent, event, data, environ))
    _note_lost_folder(call, environ)
    guard = _invocation(call, environ)
    from guard.snapshots.last_resort import save_before_abort

    def has_worked() -> bool:
        return call.kind == "stopping" and _is_guarded(guard)

    with save_before_abort(guard, whatever=has_worked):
        return _decide(guard, call, watchdog)


def _decide(guard: "Invocation", call: "HookCall", watchdog: Watchdog) -> str:
    from guard.hooks.ingest import ingest_hooks

    if not _is_in_repository(guard, call):
        return NOTHING
    limits, begins = guard.users_config.settings.hooks, call.kind == "session_started"
    watchdog.set_limit(limits.baseline_seconds if begins else limits.time_limit_seconds)
    ingest_hooks(guard)
    if begins:
        from guard.hooks.agent.session_start import record_session_start

        record_session_start(guard, call)
        return NOTHING
    from guard.hooks.agent.stop import decide_stop

    decision = decide_stop(guard, call, watchdog.seconds_left)
    if decision is None:
        return NOTHING
    if decision.decision == "blocked":
        return render_block(call.agent, decision.text)
    return render_message(call.agent, decision.message)


def _note_lost_folder(call: "HookCall", environ: Mapping[str, str]) -> None:
    # Nothing is decided in such a folder: the user should not have to guess why.
    if not os.path.isdir(call.cwd):
        problem = (
            f"the folder {call.cwd!r} is gone, or its name is not UTF-8: nothing is decided there"
        )
        faults.note(environ, f"{call.agent} {call.event}: {problem}")


def _invocation(call: "HookCall", environ: Mapping[str, str]) -> "Invocation":
    from pathlib import Path

    from guard.context.invocation import Invocation
    from guard.context.output import Output

    class FaultOutput(Output):
        """Notes warnings as faults: agent CLIs do not show what a hook writes to stderr."""

        def warn(self, message: str) -> None:
            faults.note(environ, f"{call.agent} {call.event}: warning: {message}")

    config = environ.get("GUARD_CONFIG")
    return Invocation(
        repo=Path(call.cwd),
        config_file=Path(config) if config else None,
        output=FaultOutput(-1),
        environ=environ,
    )


def _is_in_repository(guard: "Invocation", call: "HookCall") -> bool:
    # Outside of every repository there is nothing to do; a broken repository is a fault.
    from guard.errors import RepositoryProblem

    try:
        guard.repository  # noqa: B018
    except RepositoryProblem:
        folder = os.path.realpath(call.cwd)
        while not os.path.lexists(os.path.join(folder, ".git")):
            if folder == os.path.dirname(folder):
                return False
            folder = os.path.dirname(folder)
        raise
    return True


def _is_guarded(guard: "Invocation") -> bool:
    """Tell whether guard has recorded anything about the work tree; where it cannot tell, it has."""
    from guard.errors import GuardError, RepositoryProblem

    try:
        return os.path.lexists(guard.workspace.path)
    except GuardError as error:
        return not isinstance(error, RepositoryProblem)


def _let_go(
    agent: str, event: str, kind: str, error: BaseException, environ: Mapping[str, str]
) -> str:
    # Where a decision was wanted, the user is told of the fault; the agent never is.
    reason = "guard could not describe the fault"
    with suppress(Exception):
        reason = _describe(error)
    faults.note(environ, f"{agent} {event}: {reason}")
    if kind != "stopping":
        return NOTHING
    with suppress(Exception):
        return render_message(agent, f"guard could not decide, and lets the session stop: {reason}")
    return NOTHING


def _describe(error: BaseException) -> str:
    # An error that guard did not expect is described with the file and line of its origin.
    from guard.core.base.text import escape
    from guard.errors import GuardError

    if isinstance(error, GuardError):
        return escape(error.message)
    if isinstance(error, TimeIsUp):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return "guard was told to end"
    if isinstance(error, OSError):
        return escape(str(error))
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename if trace is not None else "?"
    line = trace.tb_lineno if trace is not None else 0
    text = escape(str(error))[:_MOST_TEXT]
    return f"a bug in guard: {type(error).__name__}: {text} ({os.path.basename(file)}:{line})"
