"""A helper that is silent for long: what the session says of it and what is seen of it bear each other out."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import commit, run, write
from tests.support.sessions import answering, asked, ending

WINDOW = "GUARD_COMPLETION_CHECK__PROGRESS_WINDOW_SECONDS"
LIMIT = "GUARD_COMPLETION_CHECK__MAX_WAIT_SECONDS"
SHORT = ("--max-probes", "2", "--probe-interval", "0.1", "--format", "json")


@pytest.fixture
def begun(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An iteration in which a process counts as idle after half a second."""
    commit(repository, "first.txt")
    assert run("baseline").code == 0
    monkeypatch.setenv(WINDOW, "0.5")
    return repository


@contextmanager
def silent(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with ending(subprocess.Popen(["sleep", "600"], cwd=folder)) as helper:
        yield helper


def test_it_is_waited_for_and_its_end_ends_the_wait(begun: Path, tmp_path: Path) -> None:
    write(begun / "half.py", "half\n")
    says = answering(tmp_path, "waiting", agents_active=True)
    command = [sys.executable, "-m", "guard", "check", *SHORT, "--probe-command", says]
    with silent(begun) as helper:
        guard = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with ending(guard) as it:
            assert it.stderr is not None
            assert any("waits for helpers, and sleep" in line for line in it.stderr)
            helper.kill()
            out, err = it.communicate(timeout=120)
    assert (it.returncode, json.loads(out)["reason"]) == (10, "rescued"), err
    assert asked(tmp_path) == 2


def test_nothing_is_committed_while_it_is_waited_for(begun: Path, tmp_path: Path) -> None:
    write(begun / "half.py", "half\n")
    says = answering(tmp_path, "waiting", agents_active=True)
    with silent(begun):
        result = run("check", *SHORT, "--no-wait", "--probe-command", says)
    assert (result.code, result.json["reason"]) == (11, "alive"), result.err
    assert (result.json["rescued"], result.json["snapshot"] is not None) == (False, True)


def test_one_that_has_been_silent_for_too_long_is_no_reason_to_wait(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT, "1.5")
    says = answering(tmp_path, "waiting", agents_active=True)
    with silent(begun):
        result = run("check", *SHORT, "--probe-command", says)
    assert (result.code, result.json["status"]) == (10, "timeout"), result.err


def test_without_the_claim_it_holds_nothing(begun: Path, tmp_path: Path) -> None:
    says = answering(tmp_path, "working")
    with silent(begun):
        result = run("check", *SHORT, "--probe-command", says)
    assert (result.code, result.json["reason"]) == (10, "no_commits"), result.err
