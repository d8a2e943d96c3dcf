"""Check the system that guard runs on, and the programs that it uses."""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec

from guard.context.invocation import Invocation
from guard.core.agents.registry import GLOBAL_REGISTRY
from guard.core.log.reports import DoctorCheck, Health
from guard.errors import GuardError
from guard.git.run import run_git
from guard.system.clock import VARIABLE, Clock
from guard.system.processes import run
from guard.system.programs import installed_inside, search_program

AGENT_CLIS = ("claude", "codex", "gemini", "qwen", "opencode", "copilot")
_USED_FOR = {"tmux": "to watch agents' sessions"}
_EXTRAS = {
    "web": ("starlette", "`guard dashboard`"),
    "fleet": ("psycopg", "several machines"),
    "notify": ("apprise", "notices by other services"),
}
"""By extra of the package, a module that it brings, and what it is for."""
_OLDEST_GIT = (2, 31)
_CLI_SECONDS = 10.0
_MOST_BYTES = 65536


def python(guard: Invocation) -> Iterator[DoctorCheck]:
    version = ".".join(map(str, sys.version_info[:3]))
    inside = None
    with suppress(GuardError):
        inside = installed_inside(guard.environ) if guard.repository_if_any else None
    if inside is None:
        yield DoctorCheck.of("python", "ok", version)
    else:
        found = f"{version}; guard is installed inside the repository ({inside}), where an agent can change it"
        hint = "install guard elsewhere, such as with `pipx install completion-guard` or `uv tool install`"
        yield DoctorCheck.of("python", "warning", found, hint)


def git_version(guard: Invocation) -> Iterator[DoctorCheck]:
    text = run_git("--version", environ=guard.environ).stdout.decode(errors="replace").strip()
    numbers = tuple(int(number) for number in re.findall(r"\d+", text)[:2])
    if numbers < _OLDEST_GIT:
        oldest = ".".join(map(str, _OLDEST_GIT))
        yield DoctorCheck.of("git", "problem", text, f"install git {oldest} or newer")
    else:
        yield DoctorCheck.of("git", "ok", text)


def programs(guard: Invocation) -> Iterator[DoctorCheck]:
    searches = {name: search_program(name, guard.environ) for name in (*AGENT_CLIS, "tmux")}
    found = {name: search.program for name, search in searches.items() if search.program}
    clis = [name for name in AGENT_CLIS if name in found]
    with ThreadPoolExecutor(len(AGENT_CLIS)) as pool:
        versions = list(pool.map(lambda name: _version(found[name], guard.environ), clis))
    if clis:
        listed = (f"{name} {version}" for name, version in zip(clis, versions, strict=True))
        yield DoctorCheck.of("agent CLIs", "ok", ", ".join(listed))
    else:
        hint = f"install one of {', '.join(AGENT_CLIS)}; any other command works too"
        yield DoctorCheck.of("agent CLIs", "warning", "none found on PATH", hint)
    for name in AGENT_CLIS:
        if searches[name].refused:
            yield DoctorCheck.of(
                "agent CLIs", "warning", searches[name].problem, searches[name].hint
            )
    if "tmux" in found:
        yield DoctorCheck.of("tmux", "ok", "found")
    elif searches["tmux"].refused:
        yield DoctorCheck.of("tmux", "warning", searches["tmux"].problem, searches["tmux"].hint)
    absent = [name for name, search in searches.items() if not (search.program or search.refused)]
    # That there is no agent CLI at all has been said.
    yield from _not_installed([name for name in absent if clis or name == "tmux"])


def _not_installed(programs: Sequence[str]) -> Iterator[DoctorCheck]:
    missing = [f"{name} ({_USED_FOR[name]})" if name in _USED_FOR else name for name in programs]
    missing += [
        f"the extra {extra} ({used_for})"
        for extra, (module, used_for) in _EXTRAS.items()
        if find_spec(module) is None
    ]
    if missing:
        yield DoctorCheck.of("not installed", "ok", ", ".join(missing))


def _version(program: str, environ: Mapping[str, str]) -> str:
    # In the root folder: in the repository some of them read its settings, which name programs.
    try:
        answer = run(
            [program, "--version"],
            environ=environ,
            time_limit=_CLI_SECONDS,
            cwd=os.sep,
            most_stdout=_MOST_BYTES,
            most_stderr=_MOST_BYTES,
            leaves_nothing=True,
        )
    except OSError as error:
        return f"(does not start: {error.strerror})"
    number = re.search(rb"\d{1,9}\.\d{1,9}[\w.-]{0,40}", answer.stdout)
    return number[0].decode() if number else "(version unknown)"


def collectors(guard: Invocation) -> Iterator[DoctorCheck]:
    """Load the collectors of other packages, because otherwise a broken one goes unnoticed."""
    from guard.activity.plugins import find_plugins, plugin_troubles

    repository = guard.repository_if_any
    found = plugin_troubles(find_plugins(repository.root if repository else None, tuple(sys.path)))
    sound = [name for name, trouble in found.items() if trouble is None]
    yield DoctorCheck.of("collectors", "ok", ", ".join(sound) or "only guard's own")
    for name, trouble in found.items():
        if trouble is not None:
            yield DoctorCheck.of(
                "collectors", "warning", f"{name}: {trouble}", "upgrade or remove it"
            )


def clock(guard: Invocation) -> Iterator[DoctorCheck]:
    yield DoctorCheck.of("clock", *_judge_clock(guard))


def _judge_clock(guard: Invocation) -> tuple[Health, str, str | None]:
    now = guard.clock.now()
    if guard.clock.fixed is not None:
        return "warning", f"stopped at {now.isoformat()} by {VARIABLE}", f"unset {VARIABLE}"
    if now < datetime(2025, 1, 1, tzinfo=UTC):
        return "problem", f"it says {now.isoformat()}", "set the machine's clock"
    newest = _newest_update(guard)
    if newest and newest > now + timedelta(minutes=5):
        found = f"it says {now.isoformat()}, but the state was changed at {newest.isoformat()}"
        return "warning", found, "set the machine's clock; durations do not depend on it"
    now_text = now.isoformat(timespec="seconds")
    return "ok", f"{now_text}, boot clock {Clock().boot():.0f} s", None


def _newest_update(guard: Invocation) -> datetime | None:
    with suppress(GuardError):
        registry = guard.store.view(GLOBAL_REGISTRY)
        return (
            max((agent.updated_at for agent in registry.agents), default=None) if registry else None
        )
    return None
