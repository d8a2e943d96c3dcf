"""Four verbs that tell any story: write, git, commit, run."""

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.fork_client import Prepared

ROOT = Path(__file__).resolve().parents[2]
NOW = "2026-01-31T12:00:00Z"
PATIENT = {
    "GUARD_STORE__LOCK_TIMEOUT_SECONDS": "60",
    "GUARD_COMPLETION_CHECK__GIT_TIMEOUT_SECONDS": "60",
    "GUARD_HOOKS__BASELINE_SECONDS": "50",
    "GUARD_ACTIVITY__COLLECTOR_SECONDS": "60",
}
"""Settings of limits that a busy machine stays below; a test of a limit sets its own."""
TIME_LIMIT = 180
"""Seconds after which a call in a test counts as hung: far more than a busy machine needs for any of them."""


@dataclass(frozen=True)
class Result:
    """How a call of guard ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def write(path: Path, text: str | bytes) -> Path:
    """Write a file, making its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def git(repository: Path, *words: str) -> str:
    """Run git in a repository and return what it printed; its failure fails the test."""
    done = subprocess.run(
        ["git", *words],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
    )
    return done.stdout


def commit(repository: Path, name: str = "file.txt", text: str = "text\n") -> str:
    """Commit one file; the id of the commit."""
    write(repository / name, text)
    git(repository, "add", "--", name)
    git(repository, "commit", "-q", "-m", f"Add {name}")
    return git(repository, "rev-parse", "HEAD").strip()


def new_repository(folder: Path, name: str) -> Path:
    """Make a repository in a new folder, with an identity and one commit of this file."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Another Author")
    git(folder, "config", "user.email", "another@example.com")
    commit(folder, name)
    return folder


def run(
    *words: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    fresh: bool = False,
    script: str | None = None,
) -> Result:
    """Call guard as a person would, or a script with these words; its environment is the test's, with `env` on top.

    The process comes from one that has imported guard; a fresh one is the test's own child, and begins with Python's start.
    """
    told = None if stdin is None else stdin.encode()
    code, *heard = run_with_bytes(*words, cwd=cwd, env=env, stdin=told, fresh=fresh, script=script)
    out, err = (re.sub("\r\n?", "\n", text.decode()) for text in heard)
    return Result(code, out, err)


def run_with_bytes(
    *words: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    fresh: bool = False,
    script: str | None = None,
) -> tuple[int, bytes, bytes]:
    """The same with what it is told and says as it is: the exit code and both outputs."""
    argv, environ = [os.fspath(word) for word in words], {**os.environ, **(env or {})}
    if not fresh and prepared_server().fits(argv, environ):
        return prepared_server().call(
            argv, environ, cwd=cwd, stdin=stdin, timeout=TIME_LIMIT, script=script
        )
    started = ["-m", "guard"] if script is None else ["-c", script]
    done = subprocess.run(
        [sys.executable, *started, *argv],
        cwd=cwd,
        env=environ,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@cache
def prepared_server() -> Prepared:
    """The one of this test process."""
    prepared = Prepared()
    atexit.register(prepared.end)
    return prepared


def tool_folder(folder: Path, *names: str) -> Path:
    """A folder for PATH with git, a shell and these programs, and without guard."""
    folder.mkdir()
    for name in ("git", "sh", *names):
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return folder


def path_without_guard() -> str:
    """PATH without the folders that have a guard in them: the tests may run in an environment that is activated."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not Path(folder, "guard").exists())
