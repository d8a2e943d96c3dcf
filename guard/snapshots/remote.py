"""Push snapshots from the shadow repository to a remote of the user's, and fetch those of other machines.

Snapshots hold what is ignored, too, such as `.env` files: so the remote has to be private, and nothing is pushed unless the
user's own configuration names one. Git's configuration of the user and of the project has no say: agents can edit both.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from guard.context.invocation import Invocation
from guard.core.base.text import is_id
from guard.core.rescue.redact import redact
from guard.errors import GuardError, StoreUnavailable, WrongUsage
from guard.git.run import run_git
from guard.snapshots.inventory import open_shelf
from guard.snapshots.project import Site
from guard.snapshots.shadow import OPTIONS, REFS, SHADOW_FOLDER, open_shadow
from guard.system.host import machine_id
from guard.system.processes import Finished

_NAME = "guard"
_PROTOCOLS = "file:ssh:https:http"
_SETTINGS = {
    "core.sshCommand": "ssh -o BatchMode=yes",
    "fetch.unpackLimit": "1",
    "http.followRedirects": "false",
    "push.gpgSign": "false",
}
_LINE = re.compile(
    r"(?P<oid>[0-9a-f]{40,64})\t(?P<ref>refs/guard/(?P<machine>[\w-]+)/(?P<id>[\w-]+))"
)
_BATCH = 100


def push_snapshots(guard: Invocation) -> None:
    """Push what the remote does not have; a failure is a warning, because the snapshots are safe here."""
    if not guard.users_config.settings.rescue.remote:
        return
    place = guard.workspace.path
    if not (place / SHADOW_FOLDER).is_dir():
        return
    try:
        with open_shelf(place, guard.environ, time_limit=_time_limit(guard)):
            machine = machine_id(guard.environ) or "unknown"
            done = _run(
                guard, "push", "--quiet", "--no-verify", _NAME, f"{REFS}/*:refs/guard/{machine}/*"
            )
    except GuardError as error:
        guard.output.warn(f"the snapshots were not pushed to the remote: {error.message}")
        return
    if done.code != 0:
        guard.output.warn(f"the snapshots were not pushed to the remote: {_message(guard, done)}")


def fetch_snapshots(guard: Invocation) -> tuple[str, ...]:
    """Fetch the snapshots of all machines that are not here yet; return their ids."""
    if not guard.users_config.settings.rescue.remote:
        raise WrongUsage(
            "no remote for snapshots is configured",
            "set rescue.remote in your own configuration, or GUARD_RESCUE__REMOTE",
        )
    guard.prepare_workspace()
    site = Site(guard.repository, guard.workspace.path, guard.environ, _time_limit(guard))
    project = site.project()
    with open_shadow(
        guard.workspace.path, guard.environ, project.deadline, project.object_format()
    ) as shadow:
        known = set(shadow.call("for-each-ref", "--format=%(refname)", REFS).decode().split())
        listed = _require(guard, _run(guard, "ls-remote", "--quiet", _NAME, "refs/guard/*"))
        wanted = {
            found["id"]: found["ref"]
            for found in map(_LINE.fullmatch, listed.stdout.decode(errors="replace").splitlines())
            if found and is_id(found["id"]) and f"{REFS}/{found['id']}" not in known
        }
        specs = [f"{ref}:{REFS}/{identity}" for identity, ref in sorted(wanted.items())]
        words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", _NAME)
        for start in range(0, len(specs), _BATCH):
            _require(guard, _run(guard, *words, *specs[start : start + _BATCH]))
    return tuple(sorted(wanted))


def _run(guard: Invocation, *words: str) -> Finished:
    return run_git(
        *OPTIONS,
        *(word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")),
        *words,
        environ=guard.environ,
        git_dir=guard.workspace.path / SHADOW_FOLDER,
        time_limit=_time_limit(guard),
        extra=_variables(guard.users_config.settings.rescue.remote),
    )


def _variables(remote: str) -> Mapping[str, str]:
    # In the environment, because an address may have a password and every user can read command lines.
    return {
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"remote.{_NAME}.url",
        "GIT_CONFIG_VALUE_0": remote,
    }


def _require(guard: Invocation, done: Finished) -> Finished:
    if done.code != 0:
        raise StoreUnavailable(
            f"cannot read the remote for snapshots: {_message(guard, done)}",
            "check rescue.remote, the network and your key; guard changed nothing",
        )
    return done


def _message(guard: Invocation, done: Finished) -> str:
    remote = guard.users_config.settings.rescue.remote
    parts = urlsplit(remote) if "://" in remote else None
    secrets = (
        tuple(part for part in (parts.password, parts.netloc.rpartition("@")[0]) if part)
        if parts
        else ()
    )
    if done.code is None:
        return f"it took longer than {_time_limit(guard):g} s"
    return redact(done.message, secrets)


def _time_limit(guard: Invocation) -> float:
    return guard.users_config.settings.rescue.time_limit_seconds
