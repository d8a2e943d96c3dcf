"""The boundary of the hooks that answer: whatever goes wrong in guard lets the session go, and is noted.

Guard's own modules are loaded inside of it, because even that can fail.
"""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from guard.core.hooks.event_kinds import ANSWERED, KINDS
from guard.hooks import faults
from guard.hooks.agent import answers
from guard.hooks.watchdog import TimeIsUp, Watchdog
from guard.system.signals import handled, terminated_like_interrupted

if TYPE_CHECKING:
    from guard.context.invocation import Invocation
    from guard.core.hooks.payload import HookCall
    from guard.core.hooks.settings import HooksSettings

_LIMIT_SECONDS = {"session_started": 20.0, "stopping": 40.0}
"""The defaults of the settings: they hold until the settings are read, and if they cannot be."""
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def answer(agent: str, event: str, data: bytes, environ: Mapping[str, str]) -> str:
    """What to print for the agent's program; nothing lets the session start, or stop."""
    kind = KINDS.get(agent, {}).get(event, "")
    if kind not in ANSWERED:
        return answers.NOTHING
    try:
        with terminated_like_interrupted(), Watchdog(_LIMIT_SECONDS[kind]) as watchdog:
            return _answered(agent, event, data, environ, watchdog)
    except BaseException as error:  # Also a signal, and the end of the memory.
        with handled(_STOPPING, lambda _number, _frame: None):
            return _let_go(agent, event, kind, error, environ)


def _answered(
    agent: str, event: str, data: bytes, environ: Mapping[str, str], watchdog: Watchdog
) -> str:
    from guard.hooks.ingest import fold

    heard = _heard(agent, event, data, environ)
    _note_lost_folder(heard, environ)
    guard = _invocation(heard, environ)
    watchdog.limit(_seconds(heard, guard.users_config.settings.hooks))
    if not _in_repository(guard, heard):
        return answers.NOTHING
    fold(guard)
    if heard.kind == "session_started":
        from guard.hooks.agent.session_start import started

        started(guard, heard)
        return answers.NOTHING
    from guard.hooks.agent.stop import decided

    return decided(guard, heard, watchdog.left)


def _heard(agent: str, event: str, data: bytes, environ: Mapping[str, str]) -> "HookCall":
    from guard.core.base.fields import parsed
    from guard.core.hooks.payload import HookCall
    from guard.hooks import plain_json
    from guard.hooks.agent import payload as document

    told = document.read(agent, event, data, environ)
    return parsed(HookCall, plain_json.written(told).encode())


def _note_lost_folder(heard: "HookCall", environ: Mapping[str, str]) -> None:
    """Where the session's folder cannot be told in UTF-8, or is gone, nothing is decided: that should not be a riddle."""
    if not os.path.isdir(heard.cwd):
        why = (
            f"the folder {heard.cwd!r} is gone, or its name is not UTF-8: nothing is decided there"
        )
        faults.note(environ, f"{heard.agent} {heard.event}: {why}")


def _invocation(heard: "HookCall", environ: Mapping[str, str]) -> "Invocation":
    """The call of guard that it is: in the session's folder, by the machine's own clock."""
    from pathlib import Path

    from guard.context.invocation import Invocation
    from guard.context.output import Output

    class Noted(Output):
        """Nobody reads what a hook writes to stderr."""

        def warn(self, message: str) -> None:
            faults.note(environ, f"{heard.agent} {heard.event}: warning: {message}")

    config = environ.get("GUARD_CONFIG")
    return Invocation(
        repo=Path(heard.cwd),
        config_file=Path(config) if config else None,
        output=Noted(-1),
        environ=environ,
    )


def _seconds(heard: "HookCall", settings: "HooksSettings") -> float:
    if heard.kind == "session_started":
        return settings.baseline_seconds
    return settings.time_limit_seconds


def _in_repository(guard: "Invocation", heard: "HookCall") -> bool:
    """Outside of every repository there is nothing to guard; one that is broken is a fault."""
    from guard.errors import RepositoryProblem

    try:
        guard.repository  # noqa: B018
    except RepositoryProblem:
        folder = os.path.realpath(heard.cwd)
        while not os.path.lexists(os.path.join(folder, ".git")):
            if folder == os.path.dirname(folder):
                return False
            folder = os.path.dirname(folder)
        raise
    return True


def _let_go(
    agent: str, event: str, kind: str, error: BaseException, environ: Mapping[str, str]
) -> str:
    """The fault is noted; the user is told where a decision was wanted, and the agent never."""
    why = "its reason could not be told"
    with suppress(Exception):
        why = _why(error)
    faults.note(environ, f"{agent} {event}: {why}")
    if kind != "stopping":
        return answers.NOTHING
    with suppress(Exception):
        return answers.message(agent, f"guard could not decide, and lets the session stop: {why}")
    return answers.NOTHING


def _why(error: BaseException) -> str:
    """In one line; what guard did not expect with its place."""
    from guard.core.base.text import visible
    from guard.errors import GuardError

    if isinstance(error, GuardError):
        return visible(error.message)
    if isinstance(error, TimeIsUp):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return "guard was told to end"
    if isinstance(error, OSError):
        return visible(str(error))
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = trace.tb_frame.f_code.co_filename if trace is not None else "?"
    line = trace.tb_lineno if trace is not None else 0
    said = visible(str(error))[:300]
    return f"a bug in guard: {type(error).__name__}: {said} ({os.path.basename(place)}:{line})"
