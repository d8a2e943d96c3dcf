"""Four verbs that tell any story: write, git, commit, run."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOW = "2026-01-31T12:00:00Z"
TIME_LIMIT = 60


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


def run(
    *words: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> Result:
    """Call guard as a person would; its environment is the test's, with `env` on top."""
    done = subprocess.run(
        [sys.executable, "-m", "guard", *(os.fspath(word) for word in words)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def path_without_guard() -> str:
    """PATH without the folders that have a guard in them: the tests may run in an environment that is activated."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not Path(folder, "guard").exists())
