"""Run the user's program that prints how much of its limits the coordinator's session has used."""

import shlex
from typing import Any

from pydantic import ValidationError

from guard.context.invocation import Invocation
from guard.coordinator.record import find_event
from guard.core.base.fields import first_problem
from guard.core.base.json_text import loads
from guard.core.coordinator.decide import record_usage
from guard.core.coordinator.requests import Request
from guard.core.coordinator.upkeep_events import UsageChecked
from guard.errors import ConfigProblem, Refused
from guard.system.processes import run
from guard.system.programs import search_program

_SECONDS = 60.0
_MOST_BYTES = 1 << 20
_NAMES = ("session_utilisation", "session_remaining", "session_resets_at")


def ask_usage(guard: Invocation, event_id: str | None = None) -> Request:
    """Return the usage that `coordinator.usage_command` prints as a request.

    For an event id that was used before, return the usage that was recorded then.
    """
    known = find_event(guard, event_id) if event_id is not None else None
    if isinstance(known, UsageChecked):
        return record_usage.parse({name: getattr(known, name) for name in _NAMES})
    command = guard.users_config.settings.coordinator.usage_command
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigProblem(
            f"coordinator.usage_command: {error}", "quote it as in a shell"
        ) from None
    if not words:
        raise ConfigProblem("coordinator.usage_command is not set", "set it, or give --utilisation")
    search = search_program(words[0], guard.environ)
    if search.program is None:
        raise ConfigProblem(
            f"coordinator.usage_command cannot be run: {search.problem}",
            search.hint or "check its path",
        )
    try:
        done = run(
            [search.program, *words[1:]],
            environ=guard.environ,
            time_limit=_SECONDS,
            most_stdout=_MOST_BYTES,
        )
    except OSError as error:
        raise ConfigProblem(
            f"coordinator.usage_command cannot be run: {error.strerror}", "check its path"
        ) from None
    if done.code != 0:
        how = f"took more than {_SECONDS:g} s" if done.code is None else f"ended with {done.code}"
        raise Refused(f"the usage command {how}", "run it by hand to see why")
    return _parse_usage(done.stdout)


def _parse_usage(data: bytes) -> Request:
    try:
        usage: Any = loads(data)
    except ValueError as error:
        raise Refused(
            f"the usage command printed no JSON: {error}", "see `docs/guide/coordinator.md`"
        ) from None
    if not isinstance(usage, dict):
        raise Refused("the usage command printed no JSON object", "see `docs/guide/coordinator.md`")
    # The program may leave out `session_` in the names.
    found = {name: usage.get(name, usage.get(name.removeprefix("session_"))) for name in _NAMES}
    try:
        return record_usage.parse({k: v for k, v in found.items() if v is not None})
    except ValidationError as error:
        raise Refused(
            f"the usage command printed an unexpected document: {first_problem(error)}",
            "see `docs/guide/coordinator.md`",
        ) from None
