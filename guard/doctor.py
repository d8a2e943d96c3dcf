"""A look at the machine, the repository and the workspace: each check tells what it found and what to type next."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from guard.agent_hooks.folding import fold
from guard.clock import VARIABLE, Clock
from guard.core.registry import GLOBAL_REGISTRY
from guard.core.reports.state import DoctorCheck
from guard.core.text import visible
from guard.errors import GuardError
from guard.files import Folder
from guard.git.call import config_value, git
from guard.git.locate import Repository
from guard.installing.examined import agent_hooks
from guard.installing.git_examined import git_hooks
from guard.invocation import Invocation
from guard.lock import locked
from guard.processes import run

AGENT_CLIS = ("claude", "codex", "gemini", "qwen", "opencode", "copilot")
_OLDEST_GIT = (2, 31)
_NETWORK = re.compile(r"nfs|nfs4|cifs|smb3?|smbfs|9p|afs|ceph|glusterfs|lustre|fuse\..*")
_CLI_SECONDS, _LOCK_SECONDS = 10.0, 2.0

State = Literal["ok", "warning", "problem"]


def check(name: str, state: State, found: str, hint: str | None = None) -> DoctorCheck:
    """One line of the report."""
    return DoctorCheck(name=name, state=state, found=visible(found), hint=hint)


def examine(guard: Invocation) -> Iterator[DoctorCheck]:
    """All checks, in the order in which a person would ask. A check that fails of itself is a problem, not an end."""
    checks: dict[str, Callable[[Invocation], Iterator[DoctorCheck]]] = {
        "python": _python,
        "git": _git,
        "repository": _repository,
        "config": _config,
        "workspace": _workspace,
        "state": _state,
        "git hooks": git_hooks,
        "agent hooks": agent_hooks,
        "agent CLIs": _programs,
        "collectors": _collectors,
        "clock": _clock,
    }
    fold(guard)
    for name, look in checks.items():
        try:
            yield from look(guard)
        except GuardError as error:
            yield check(name, "problem", error.message, error.hint)


def _python(_guard: Invocation) -> Iterator[DoctorCheck]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield check("python", "ok", version)


def _git(guard: Invocation) -> Iterator[DoctorCheck]:
    text = git("--version", environ=guard.environ).stdout.decode(errors="replace").strip()
    numbers = tuple(int(number) for number in re.findall(r"\d+", text)[:2])
    if numbers < _OLDEST_GIT:
        oldest = ".".join(map(str, _OLDEST_GIT))
        yield check("git", "problem", text, f"install git {oldest} or newer")
    else:
        yield check("git", "ok", text)


def _repository(guard: Invocation) -> Iterator[DoctorCheck]:
    repository = guard.repository
    if not repository.git_dir_exists:
        yield check(
            "repository",
            "problem",
            f"{repository.root}: {repository.git_dir} is gone",
            "bring it back before anything else; guard's own state is safe",
        )
        return
    yield check("repository", "ok", str(repository.root))
    yield _identity(guard, repository)


def _identity(guard: Invocation, repository: Repository) -> DoctorCheck:
    """With the user's own configuration, as a commit would have it."""
    keys = ("user.name", "user.email")
    values = [config_value(key, repository.git_dir, guard.environ) for key in keys]
    if all(values):
        return check("identity", "ok", f"{values[0]} <{values[1]}>")
    return check(
        "identity",
        "warning",
        "git knows no user.name or user.email",
        "git config --global user.name NAME; git config --global user.email ADDRESS",
    )


def _config(guard: Invocation) -> Iterator[DoctorCheck]:
    changed = sorted(set(guard.config.origins.values()))
    found = f"from {', '.join(changed)}" if changed else "defaults"
    ignored = guard.config.warnings
    yield check("config", "warning" if ignored else "ok", "; ".join([found, *ignored]))


def _workspace(guard: Invocation) -> Iterator[DoctorCheck]:
    path = guard.workspace.path
    folder = Folder.open(os.fspath(path))
    if folder is None:
        yield _could_be_made(path)
    else:
        with folder:
            yield _usable(folder)
    kind = _file_system(path)
    if kind and _NETWORK.fullmatch(kind):
        yield check(
            "file system",
            "warning",
            f"{path} is on {kind}: locks may not hold between machines",
            "use a local folder: --workspace DIR, or GUARD_WORKSPACE",
        )
    else:
        yield check("file system", "ok", kind or "unknown")


def _could_be_made(path: Path) -> DoctorCheck:
    nearest = next(parent for parent in path.parents if parent.is_dir())
    if os.access(nearest, os.W_OK | os.X_OK):
        return check("workspace", "ok", f"{path} (will be made when it is needed)")
    return check(
        "workspace",
        "problem",
        f"{path} cannot be made: {nearest} is not writable",
        "name another folder: --workspace DIR, or GUARD_WORKSPACE",
    )


def _usable(folder: Folder) -> DoctorCheck:
    """Really written to and really locked: permissions alone do not tell."""
    name = f"doctor.{os.getpid()}.tmp"
    try:
        with locked(folder, _LOCK_SECONDS):
            folder.replace(name, b"guard doctor\n", durable=True)
            folder.remove(name)
    except OSError as error:
        found = f"{folder.path} cannot be written: {error.strerror}"
        return check("workspace", "problem", found, "free some space, or check its permissions")
    return check("workspace", "ok", f"{folder.path} (writable, lockable)")


def _file_system(path: Path) -> str | None:
    """The type of the file system that holds a path, where the machine tells."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.split(" ") for line in file]
    except OSError:
        return None
    here = os.path.realpath(path)
    mounts = {row[4]: row[row.index("-") + 1] for row in rows}
    holding = [
        point for point in mounts if here == point or here.startswith(point.rstrip("/") + "/")
    ]
    return mounts[max(holding, key=len)] if holding else None


def _state(guard: Invocation) -> Iterator[DoctorCheck]:
    """Read from its newest place on; `guard verify` reads all of it."""
    registry = guard.store.view(GLOBAL_REGISTRY)
    active = registry.active_agents if registry else 0
    yield check("state", "ok", f"readable; active agents: {active}", None)


def _programs(guard: Invocation) -> Iterator[DoctorCheck]:
    with ThreadPoolExecutor(len(AGENT_CLIS)) as pool:
        versions = dict(
            zip(AGENT_CLIS, pool.map(lambda name: _version(guard, name), AGENT_CLIS), strict=True)
        )
    found = {name: version for name, version in versions.items() if version}
    if found:
        listed = ", ".join(f"{name} {version}" for name, version in found.items())
        yield check("agent CLIs", "ok", listed)
    else:
        hint = f"install one of {', '.join(AGENT_CLIS)}; any other command works too"
        yield check("agent CLIs", "warning", "none found on PATH", hint)
    if shutil.which("tmux", path=guard.environ.get("PATH")):
        yield check("tmux", "ok", "found")
    else:
        yield check("tmux", "warning", "not found", "install tmux to have agents' sessions watched")


def _version(guard: Invocation, name: str) -> str | None:
    program = shutil.which(name, path=guard.environ.get("PATH"))
    if program is None:
        return None
    try:
        answer = run([program, "--version"], environ=guard.environ, time_limit=_CLI_SECONDS)
    except OSError as error:
        return f"(does not start: {error.strerror})"
    number = re.search(rb"\d+\.\d+[\w.-]*", answer.stdout)
    return number[0].decode() if number else "(version unknown)"


def _collectors(guard: Invocation) -> Iterator[DoctorCheck]:
    """Those of other packages; loaded, because one that cannot be is silent otherwise."""
    from guard.activity.custom import offered, told_of

    repository = guard.repository_if_any
    found = told_of(offered(repository.root if repository else None, tuple(sys.path)))
    sound = [name for name, trouble in found.items() if trouble is None]
    yield check("collectors", "ok", ", ".join(sound) or "only guard's own")
    for name, trouble in found.items():
        if trouble is not None:
            yield check("collectors", "warning", f"{name}: {trouble}", "upgrade or remove it")


def _clock(guard: Invocation) -> Iterator[DoctorCheck]:
    clock, now = guard.clock, guard.clock.now()
    if clock.fixed is not None:
        yield check(
            "clock", "warning", f"stopped at {now.isoformat()} by {VARIABLE}", f"unset {VARIABLE}"
        )
        return
    newest = _newest_update(guard)
    if now < datetime(2025, 1, 1, tzinfo=UTC):
        yield check("clock", "problem", f"it says {now.isoformat()}", "set the machine's clock")
    elif newest and newest > now + timedelta(minutes=5):
        found = f"it says {now.isoformat()}, but the state was changed at {newest.isoformat()}"
        yield check(
            "clock", "warning", found, "set the machine's clock; durations do not depend on it"
        )
    else:
        yield check(
            "clock", "ok", f"{now.isoformat(timespec='seconds')}, boot clock {Clock().boot():.0f} s"
        )


def _newest_update(guard: Invocation) -> datetime | None:
    with suppress(GuardError):
        registry = guard.store.view(GLOBAL_REGISTRY)
        return (
            max((agent.updated_at for agent in registry.agents), default=None) if registry else None
        )
    return None
