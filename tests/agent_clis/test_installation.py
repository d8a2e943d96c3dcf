"""Where the agent CLIs come from: one installation for all workers, and a counted reason where there is none."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import ROOT, npm, write

Npm = Callable[[str], dict[str, str]]
_WORKS = "mkdir -p node_modules/.bin; cd node_modules/.bin; touch claude codex gemini qwen node"
_ALL = (npm.CLAUDE_AND_CODEX, npm.GEMINI, npm.QWEN)
_FAILS = "echo 'npm error code ENOTFOUND' >&2; echo 'npm error host' >&2; exit 1"


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """What the stand-in for npm was called with, one line each."""
    return write(tmp_path / "calls", "")


@pytest.fixture
def npm_that(tmp_path: Path, calls: Path) -> Npm:
    """An environment with a stand-in for npm that does something."""

    def make(does: str) -> dict[str, str]:
        program = write(tmp_path / "bin" / "npm", f'#!/bin/sh\necho "$@" >> {calls}\n{does}\n')
        program.chmod(0o755)
        return {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(tmp_path / "home")}

    return make


def _install(environ: dict[str, str]) -> Path:
    return npm.install(npm.CLAUDE_AND_CODEX, environ)


@pytest.mark.parametrize("packages", _ALL, ids=lambda packages: packages.folder)
def test_the_pinned_versions_go_into_the_users_cache(
    packages: npm.Packages, npm_that: Npm, calls: Path
) -> None:
    environ = npm_that(_WORKS)
    programs = npm.install(packages, environ)
    cache = Path(environ["HOME"], ".cache/guard-tests")
    assert programs == cache / packages.folder / "node_modules/.bin"
    for package, version in packages.pins.items():
        assert f"{package}@{version}" in calls.read_text()


def test_one_that_cannot_be_installed_takes_no_other_with_it(npm_that: Npm) -> None:
    _install(npm_that(_WORKS))
    with pytest.raises(npm.Unavailable):
        npm.install(npm.QWEN, npm_that(_FAILS))
    assert (_install(npm_that(_FAILS)) / "claude").exists()


def test_an_installation_without_its_programs_is_none(npm_that: Npm) -> None:
    """As where npm may not run the packages' scripts: Node comes by one."""
    with pytest.raises(npm.Unavailable, match=r"^npm install brought no program node$"):
        npm.install(npm.QWEN, npm_that(f"{_WORKS}; rm node"))


def test_workers_that_come_at_once_install_once(npm_that: Npm, calls: Path) -> None:
    environ = npm_that(f"sleep 0.2; {_WORKS}")
    with ThreadPoolExecutor(4) as workers:
        list(workers.map(_install, [environ] * 4))
    assert len(calls.read_text().splitlines()) == 1


def test_other_pins_are_installed_anew(
    npm_that: Npm, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = npm_that(_WORKS)
    _install(environ)
    monkeypatch.setitem(npm.CLAUDE_AND_CODEX.pins, "@openai/codex", "99.0.0")
    _install(environ)
    assert "@openai/codex@99.0.0" in calls.read_text().splitlines()[1]


def test_a_failure_is_told_once_per_test_run(npm_that: Npm, calls: Path) -> None:
    environ = npm_that(_FAILS)
    for test_run in ("first", "first", "second"):
        with pytest.raises(
            npm.Unavailable, match=r"^npm install failed: npm error code ENOTFOUND$"
        ):
            _install({**environ, "PYTEST_XDIST_TESTRUNUID": test_run})
    assert len(calls.read_text().splitlines()) == 2


def test_an_installation_that_failed_halfway_is_not_used(npm_that: Npm) -> None:
    with pytest.raises(npm.Unavailable):
        _install(npm_that(f"{_WORKS}; {_FAILS}"))
    with pytest.raises(npm.Unavailable):
        _install(npm_that(_FAILS))


def test_a_cache_that_cannot_be_made_is_a_reason(npm_that: Npm, tmp_path: Path) -> None:
    write(tmp_path / "home" / ".cache", "a file")
    with pytest.raises(npm.Unavailable, match=r"guard-tests/npm: Not a directory$"):
        _install(npm_that(_WORKS))


@pytest.mark.parametrize(
    ("required", "code", "says"),
    [("", 0, ("4 skipped",)), ("1", 1, ("2 skipped", "2 errors"))],
    ids=["skipped and counted", "an error where they are required"],
)
def test_without_npm_the_tests_are(
    required: str,
    code: int,
    says: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    (tmp_path / "git").symlink_to(shutil.which("git") or "git")
    test = "tests/agent_clis/test_scripted_model.py::test_a_session_does_what_the_script_says"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-n", "0", "-p", "no:cacheprovider", test],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path), "GUARD_TESTS_REQUIRE_AGENTS": required},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stdout
    for words in (*says, *(f"{' and '.join(packages.pins)} cannot be" for packages in _ALL)):
        assert words in done.stdout
    assert "cannot be installed: npm is not installed" in done.stdout
