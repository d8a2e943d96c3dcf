"""Read a job's variables and event, and write the files with which a step answers the runner."""

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from guard.core.github.escape import output_file

_MOST_EVENT_BYTES = 25 * 1024 * 1024
_OURS = "GUARD_ACTION_"
_STEP_FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
FOLDER = "completion-guard"


@dataclass(frozen=True)
class JobEnvironment:
    """The job that a step runs in; its variables and its event may be missing or malformed."""

    environ: Mapping[str, str]

    @property
    def folder(self) -> Path:
        above = self.environ.get("RUNNER_TEMP") or self.environ.get("TMPDIR") or "/tmp"  # noqa: S108
        return Path(above, FOLDER)

    @property
    def state(self) -> Path:
        # A cache may bring this folder, guard's workspace, from an earlier run.
        return self.folder / "state"

    @property
    def repository(self) -> str | None:
        return self.environ.get("GITHUB_REPOSITORY") or None

    @cached_property
    def event(self) -> Mapping[str, Any]:
        """Return the document of the event; empty if it cannot be read."""
        try:
            with open(self.environ.get("GITHUB_EVENT_PATH") or os.devnull, "rb") as file:
                found = json.loads(file.read(_MOST_EVENT_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def pull_request(self) -> int | None:
        number = _at(self.event, "pull_request", "number")
        return number if type(number) is int and number > 0 else None

    @property
    def sha(self) -> str | None:
        """Return the commit that people see: the head of a pull request, not the merge that is checked out."""
        head = _at(self.event, "pull_request", "head", "sha")
        return head if isinstance(head, str) else self.environ.get("GITHUB_SHA") or None

    @property
    def from_fork(self) -> bool:
        """Tell whether the commits come from another repository, so that the job may not write to this one."""
        if self.pull_request is None:
            return False
        return _at(self.event, "pull_request", "head", "repo", "full_name") != self.repository

    @property
    def page(self) -> str | None:
        server, run = self.environ.get("GITHUB_SERVER_URL"), self.environ.get("GITHUB_RUN_ID")
        if not (server and run and self.repository and run.isdecimal()):
            return None
        return f"{server}/{self.repository}/actions/runs/{run}"

    def cache_key(self, name: str, work_tree: str) -> str:
        """Return the name of this job's state in the cache; a digest, because its parts may hold any character."""
        variables = ("RUNNER_OS", "GITHUB_WORKFLOW", "GITHUB_JOB")
        parts = [*(self.environ.get(variable, "") for variable in variables), name, work_tree]
        digest = sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()
        return f"guard-state-1-{digest[:24]}-"

    @property
    def run(self) -> str:
        words = (self.environ.get(name, "") for name in ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"))
        return "-".join(word if word.isdecimal() else "0" for word in words)

    @property
    def step_files(self) -> tuple[Path, ...]:
        return tuple(Path(self.environ[name]) for name in _STEP_FILES if self.environ.get(name))

    def agent_environ(self) -> dict[str, str]:
        """Return the variables for the agent, without the action's inputs and the files of its step."""
        return {
            name: text
            for name, text in self.environ.items()
            if name not in _STEP_FILES and not name.startswith(_OURS)
        }


def _at(found: object, *keys: str) -> object:
    for key in keys:
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found


def write_outputs(job: JobEnvironment, values: Mapping[str, str]) -> None:
    _write(job, "GITHUB_OUTPUT", output_file(values, f"guard_{secrets.token_hex(16)}"))


def write_summary(job: JobEnvironment, text: str) -> None:
    _write(job, "GITHUB_STEP_SUMMARY", text)


def empty_files(paths: Iterable[Path]) -> list[str]:
    """Empty these files, and return the names of those that were not empty."""
    found = []
    for path in paths:
        with suppress(OSError):
            if path.is_symlink() or path.stat().st_size:
                found.append(path.name)
                replace_file(path, b"")
    return found


def _write(job: JobEnvironment, name: str, text: str) -> None:
    if path := job.environ.get(name):
        replace_file(Path(path), text.encode())


def replace_file(path: Path, data: bytes) -> None:
    """Put a new file in the place of the old one: a process that has the old file open, or made it a link, writes elsewhere."""
    other = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with other.open("xb") as file:
        file.write(data)
    os.replace(other, path)
