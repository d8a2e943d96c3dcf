"""The real agent CLIs from npm: pinned, and installed once into the user's cache, where they stay between test runs."""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import write

_SECONDS = 600
_OPTIONS = (
    "--no-audit",
    "--no-fund",
    "--no-save",
    "--loglevel=error",
    "--fetch-retries=5",
    "--fetch-retry-mintimeout=1000",
)


@dataclass(frozen=True)
class Packages:
    """What is installed together, in a folder of its own: one that cannot be installed takes no other with it."""

    folder: str
    programs: tuple[str, ...]
    pins: dict[str, str]


CLAUDE_AND_CODEX = Packages(
    "npm",
    ("claude", "codex"),
    {"@anthropic-ai/claude-code": "2.1.325", "@openai/codex": "0.166.0"},
)
GEMINI = Packages("npm-gemini", ("gemini",), {"@google/gemini-cli": "0.61.0"})
# Qwen Code needs Node 22, and npm itself is often older.
QWEN = Packages("npm-qwen", ("qwen", "node"), {"@qwen-code/qwen-code": "0.24.4", "node": "22.23.3"})


class Unavailable(Exception):
    """The CLIs are not here and cannot be installed."""


def install(packages: Packages, environ: Mapping[str, str]) -> Path:
    """The folder with the programs; the first process installs, the others wait for it."""
    npm = shutil.which("npm", path=environ.get("PATH", ""))
    if npm is None:
        raise Unavailable("npm is not installed")
    cache = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", ""), ".cache")
    folder = Path(cache, "guard-tests", packages.folder).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{folder}: {error.strerror}") from None
    with _locked(folder / "install.lock"):
        if _missing(packages, folder) or _read(folder / "installed.json") != packages.pins:
            _install_once(npm, packages, folder, environ)
    return folder / "node_modules" / ".bin"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _missing(packages: Packages, folder: Path) -> list[str]:
    programs = folder / "node_modules" / ".bin"
    return [name for name in packages.programs if not (programs / name).exists()]


def _install_once(npm: str, packages: Packages, folder: Path, environ: Mapping[str, str]) -> None:
    """Install whole or not at all; what failed for one worker of a test run is not tried again by the others."""
    test_run = environ.get("PYTEST_XDIST_TESTRUNUID", "")
    failure = _read(folder / "failed.json")
    if test_run and failure.get("test_run") == test_run:
        raise Unavailable(failure["reason"])
    (folder / "installed.json").unlink(missing_ok=True)
    try:
        _install(npm, packages, folder, environ)
    except Unavailable as error:
        write(folder / "failed.json", json.dumps({"test_run": test_run, "reason": str(error)}))
        raise
    write(folder / "installed.json", json.dumps(packages.pins))


def _install(npm: str, packages: Packages, folder: Path, environ: Mapping[str, str]) -> None:
    pinned = [f"{name}@{version}" for name, version in packages.pins.items()]
    try:
        done = subprocess.run(
            [npm, "install", "--prefix", str(folder), *_OPTIONS, *pinned],
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm install took more than {_SECONDS} s") from None
    if done.returncode != 0:
        raise Unavailable(f"npm install failed: {done.stderr.partition(os.linesep)[0]}")
    if missing := _missing(packages, folder):
        raise Unavailable(f"npm install brought no program {', '.join(missing)}")


def _read(path: Path) -> dict[str, str]:
    """What was written there; a file that is missing or torn says nothing."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
