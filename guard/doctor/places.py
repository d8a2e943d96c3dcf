"""Check the repository, the settings, and the workspace with the state."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.agents.registry import GLOBAL_REGISTRY
from guard.core.log.reports import DoctorCheck
from guard.errors import StateProblem
from guard.git.locate import Repository
from guard.git.obstacles import GitObstacle, refuse_obstacles
from guard.git.reader import missing_error
from guard.git.run import read_config
from guard.store.lock import hold_lock
from guard.system.private_files import Folder

_NETWORK = re.compile(r"nfs|nfs4|cifs|smb3?|smbfs|9p|afs|ceph|glusterfs|lustre|fuse\..*")
_LOCK_SECONDS = 2.0


def repository(guard: Invocation) -> Iterator[DoctorCheck]:
    repository = guard.repository
    if not repository.git_dir_exists:
        yield DoctorCheck.of(
            "repository",
            "problem",
            f"{repository.root}: {_what_is_gone(repository)}",
            "bring it back before anything else; guard's own state is safe",
        )
        return
    try:
        refuse_obstacles(repository, ("update-ref", "HEAD"))
    except GitObstacle as error:
        yield DoctorCheck.of("repository", "problem", error.message, error.hint)
        return
    yield DoctorCheck.of("repository", "ok", str(repository.root))
    yield _identity(guard, repository)


def _what_is_gone(repository: Repository) -> str:
    # As long as it is there, something else must have come between.
    if repository.git_dir.is_dir():
        return missing_error(repository).message
    return f"{repository.git_dir} is gone"


def _identity(guard: Invocation, repository: Repository) -> DoctorCheck:
    keys = ("user.name", "user.email")
    values = [read_config(key, repository.git_dir, guard.environ) for key in keys]
    if all(values):
        return DoctorCheck.of("identity", "ok", f"{values[0]} <{values[1]}>")
    return DoctorCheck.of(
        "identity",
        "warning",
        "git knows no user.name or user.email",
        "git config --global user.name NAME; git config --global user.email ADDRESS",
    )


def config(guard: Invocation) -> Iterator[DoctorCheck]:
    changed = sorted(set(guard.config.origins.values()))
    found = f"from {', '.join(changed)}" if changed else "defaults"
    ignored = guard.config.warnings
    yield DoctorCheck.of("config", "warning" if ignored else "ok", "; ".join([found, *ignored]))


def trust(guard: Invocation) -> Iterator[DoctorCheck]:
    """Tell whether the settings that the user trusts are still there; nothing where the user trusts none."""
    known = guard.trust
    if known is None or (known.record is None and known.problem is None):
        return
    edited = [warning for warning in guard.config.warnings if "you trust" in warning]
    if edited:
        hint = "look at `guard trust --show`, then run `guard trust`"
        yield DoctorCheck.of("trust", "warning", "; ".join(edited), hint)
    elif known.record is not None:
        found = f"the project's settings as in commit {known.record.commit[:12]}"
        yield DoctorCheck.of("trust", "ok", found)


def workspace(guard: Invocation) -> Iterator[DoctorCheck]:
    path = guard.workspace.path
    folder = Folder.open(path)
    if folder is None:
        yield _check_can_be_made(path)
    else:
        with folder:
            yield _check_usable(folder)
    yield from _check_log(guard)
    kind = _file_system(path)
    if kind and _NETWORK.fullmatch(kind):
        yield DoctorCheck.of(
            "file system",
            "warning",
            f"{path} is on {kind}: locks may not hold between machines",
            "use a local folder: --workspace DIR, or GUARD_WORKSPACE",
        )
    else:
        yield DoctorCheck.of("file system", "ok", kind or "unknown")


def _check_log(guard: Invocation) -> Iterator[DoctorCheck]:
    try:
        guard.store.refuse_lost_log()
    except StateProblem as error:
        yield DoctorCheck.of("log", "problem", error.message, error.hint)


def _check_can_be_made(path: Path) -> DoctorCheck:
    nearest = next(parent for parent in path.parents if parent.is_dir())
    if os.access(nearest, os.W_OK | os.X_OK):
        return DoctorCheck.of("workspace", "ok", f"{path} (will be made when it is needed)")
    return DoctorCheck.of(
        "workspace",
        "problem",
        f"{path} cannot be made: {nearest} is not writable",
        "name another folder: --workspace DIR, or GUARD_WORKSPACE",
    )


def _check_usable(folder: Folder) -> DoctorCheck:
    # The check writes and locks a real file, because permissions alone prove nothing.
    name = f"doctor.{os.getpid()}.tmp"
    try:
        with hold_lock(folder, _LOCK_SECONDS):
            folder.replace(name, b"guard doctor\n", durable=True)
            folder.remove(name)
    except OSError as error:
        found = f"{folder.path} cannot be written: {error.strerror}"
        return DoctorCheck.of(
            "workspace", "problem", found, "free some space, or check its permissions"
        )
    return DoctorCheck.of("workspace", "ok", f"{folder.path} (writable, lockable)")


def _file_system(path: Path) -> str | None:
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


def state(guard: Invocation) -> Iterator[DoctorCheck]:
    """Read the newest part of the state; `guard verify` reads all of it."""
    registry = guard.store.view(GLOBAL_REGISTRY)
    active = registry.active_agents if registry else 0
    yield DoctorCheck.of("state", "ok", f"readable; active agents: {active}", None)
