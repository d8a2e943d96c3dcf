"""The action, run by act on this machine: every repository that it works in is real, and nothing is fetched."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support import ROOT, commit, git, write
from tests.support.npm import Packages

ACTION = ROOT / "tests" / "action"
CACHE = Packages("npm-cache", (), {"@actions/cache": "4.1.0"})
_SECONDS = 500
_SHIPPED = ("action.yml", "pyproject.toml", "README.md", "LICENSE", "guard", "hooks", "schemas")


def definition() -> Any:
    """What the action says of itself."""
    return yaml.safe_load((ROOT / "action.yml").read_text())


@dataclass(frozen=True)
class Ran:
    """What one call of act left."""

    code: int
    log: str
    steps: Any
    environment: str


def prepared(folder: Path, limit: str) -> Path:
    """A checkout with a repository for each of the workflow's steps."""
    checkout = folder / "checkout"
    checkout.mkdir()
    names = ("passing", "failing", "tolerated", "limited", "rescued", "detached", "hostile")
    for name in (*names, "refuted"):
        _repository(checkout / name)
    git(checkout / "detached", "checkout", "-q", "--detach")
    commit(_repository(folder / "upstream"), "second.txt")
    git(folder, "clone", "-q", "--depth", "1", f"file://{folder}/upstream", "checkout/shallow")
    _named(checkout / "shallow")
    write(checkout / "limit.json", limit + "\n")
    answer = json.dumps({"status": "complete", "message": "done"})
    write(checkout / "answer", f"#!/bin/sh\ncat > /dev/null\necho '{answer}'\n").chmod(0o755)
    shutil.copy(ACTION / "hostile.sh", checkout / "hostile.sh")
    git(checkout, "init", "-q", "-b", "main")
    _named(checkout)
    git(checkout, "remote", "add", "origin", "https://github.com/example/project")
    write(checkout / ".github" / "workflows" / "tried.yml", (ACTION / "workflow.yml").read_bytes())
    git(checkout, "add", ".github")
    git(checkout, "commit", "-q", "-m", "Add the workflow")
    return checkout


def _repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    _named(folder)
    commit(folder, "first.txt")
    return folder


def _named(folder: Path) -> None:
    git(folder, "config", "user.name", "Test Author")
    git(folder, "config", "user.email", "author@example.com")


def shipped(folder: Path) -> Path:
    """What a release of the action holds, without what lies around it in a work tree."""
    place = folder / "action"
    place.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for name in _SHIPPED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, place / name)
    return place


def act(
    folder: Path, event: str, document: Mapping[str, Any], library: Path, environ: Mapping[str, str]
) -> Ran:
    """Run the workflow for this event, with nothing of our own environment but what is given."""
    result, home = folder / f"{event}.steps.json", folder / "act"
    write(folder / f"{event}.json", json.dumps(document))
    pin = next(
        line.partition("@")[2].split()[0]
        for line in (ROOT / "action.yml").read_text().splitlines()
        if "actions/cache/restore@" in line
    )
    done = subprocess.run(
        [
            Path(sys.executable).with_name("act"),
            event,
            *("-C", folder / "checkout", "-e", folder / f"{event}.json"),
            *("-P", "ubuntu-latest=-self-hosted", "--pull=false", "--bind"),
            *("--action-cache-path", home / "actions", "--cache-server-path", home / "cache"),
            *("--cache-server-addr", "127.0.0.1"),
            *("--local-repository", f"example/guard@v1={folder / 'action'}"),
            *("--local-repository", f"actions/cache@{pin}={ACTION / 'cache'}"),
            *("--env", f"GUARD_TESTS_STATE={home / 'state'}"),
            *("--env", f"GUARD_TESTS_RESULT={result}"),
            *("--env", f"GUARD_TESTS_CACHE={library}"),
            *("--env", f"GUARD_TESTS_PLACE={folder / 'checkout'}"),
        ],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_SECONDS,
        check=False,
    )
    steps = json.loads(result.read_text()) if result.exists() else None
    planted = Path(f"{result}.env")
    return Ran(done.returncode, done.stdout, steps, planted.read_text() if planted.exists() else "")


def surroundings(home: Path) -> dict[str, str]:
    """What act itself needs to start: a search path, and a home for what it keeps."""
    return {"PATH": os.environ["PATH"], "HOME": str(home)}
