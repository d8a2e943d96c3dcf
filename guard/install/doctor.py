"""For `guard doctor`: whether each agent's hooks are installed as they should be, trusted, and called."""

import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.base.text import plural
from guard.core.log.reports import DoctorCheck
from guard.errors import GuardError
from guard.install import merge as merging
from guard.install import opencode
from guard.install import settings_file as writing
from guard.install.agents import HOSTS, Scope, file_of, scopes
from guard.install.base import AgentProgram
from guard.install.doctor_calls import last_called, line, noted_faults, silent
from guard.install.jsonc import parse
from guard.install.trust import HookTrust, trust


def agent_hooks(guard: Invocation) -> Iterator[DoctorCheck]:
    """One line for each scope that an agent has guard's hooks in; one for an agent that is here and has none."""
    repository = guard.repository_if_any
    root = repository.root if repository else None
    for host in HOSTS.values():
        lines = list(_of_host(guard, host, root))
        yield from lines
        if lines:
            yield from silent(guard, host)
        if not lines and shutil.which(host.agent, path=guard.environ.get("PATH", "")):
            yield line(host, "ok", "not installed", f"guard install {host.agent}")
    yield from noted_faults(guard)


def _of_host(guard: Invocation, host: AgentProgram, root: Path | None) -> Iterator[DoctorCheck]:
    for scope in scopes(host):
        if scope == "user" or root is not None:
            with suppress(FileNotFoundError):
                yield _of_scope(guard, host, scope, root)


def _of_scope(
    guard: Invocation, host: AgentProgram, scope: Scope, root: Path | None
) -> DoctorCheck:
    """FileNotFoundError if this scope has no hooks of guard's."""
    path = file_of(host, scope, root, guard.environ)
    try:
        real = writing.real(path, None if scope == "user" else root)
        text = writing.read(real)
        program = _program(host, text or "")
        if text is None or program is None:
            raise FileNotFoundError(path)
        standings = [
            _installed(guard, host, scope, text, program),
            trust(host, scope, real, root, guard.environ),
            last_called(guard, host),
        ]
    except (GuardError, ValueError) as error:
        told = error.message if isinstance(error, GuardError) else f"{path}: {error}"
        return line(host, "warning", f"{scope}: {told}", "mend the file")
    found = "; ".join(standing.told for standing in standings if standing)
    hint = next((standing.hint for standing in standings if standing and standing.hint), None)
    return line(host, "warning" if hint else "ok", f"{scope}: {found}", hint)


def _program(host: AgentProgram, text: str) -> str | None:
    """What the hooks in a file call; None if there are none of guard's."""
    if host.agent == opencode.HOST.agent:
        return opencode.command_in(text) if opencode.is_ours(text) else None
    if not text.strip():
        return None
    hooks = merging.present(text, host).values()
    programs = Counter(host.program(one) for found in hooks for one in found)
    return programs.most_common(1)[0][0] if programs else None


def _installed(
    guard: Invocation, host: AgentProgram, scope: Scope, text: str, program: str
) -> HookTrust:
    again = f"guard install {host.agent}" + ("" if scope == "project" else f" --{scope}")
    if not _exists(guard, program):
        return HookTrust(f"they call {program}, which is not there", again)
    if host.agent == opencode.HOST.agent:
        is_current = text == opencode.plugin(program)
    elif parse(text).root.data.get("disableAllHooks") is True:
        return HookTrust("switched off", "take `disableAllHooks` out of the file")
    else:
        present = merging.present(text, host)
        called = {*present, *merging.covered(text, host)}
        missing = [event for event in host.events if event not in called]
        if missing:
            return HookTrust(f"missing: {', '.join(missing)}", again)
        is_current = merging.installed(text, host, program) == text
    if not is_current:
        return HookTrust("of another version of guard", again)
    return HookTrust(f"installed, {plural(len(host.events), 'event')}")


def _exists(guard: Invocation, program: str) -> bool:
    words = shlex.split(program)
    name = next((word for word in words if "=" not in word and word != "env"), "")
    if "/" in name:
        return os.path.isfile(name) and os.access(name, os.X_OK)
    return shutil.which(name, path=guard.environ.get("PATH", "")) is not None
