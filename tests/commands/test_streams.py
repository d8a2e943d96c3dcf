"""Standard streams that nobody reads, that are full, or that are closed: the verdict stands, and the agent runs on."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import commit, git, run, write
from tests.support.sessions import script, until

COMMIT = "echo done > done.txt && git add done.txt && git commit -q -m 'feat: done'"
TIME_LIMIT = 120


@pytest.fixture(autouse=True)
def begun(repository: Path) -> Path:
    """A repository with one commit."""
    commit(repository, "first.txt")
    return repository


@pytest.fixture(autouse=True)
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`guard` as a shell finds it."""
    script(tmp_path / "bin" / "guard", f'exec {shlex.quote(sys.executable)} -m guard "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash; its exit code is that of the first command of a pipeline."""
    return subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT,
    )


def statuses() -> list[str]:
    """The verdicts in the log."""
    events = run("log", "--type", "check_made", "--format", "json").json["events"]
    return [event["status"] for event in events]


def test_an_ignored_hangup_ends_neither_guard_nor_the_agent(begun: Path) -> None:
    agent = f"echo up > up; while [ ! -e hung-up ]; do sleep 0.1; done; sleep 1; {COMMIT}"
    words = [sys.executable, "-m", "guard", "run", "--no-probe", "--", "sh", "-c", agent]
    with subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as guard:
        until((begun / "up").exists)
        guard.send_signal(signal.SIGHUP)
        write(begun / "hung-up", "")
        assert guard.wait(TIME_LIMIT) == 0
    assert git(begun, "log", "-1", "--format=%s") == "feat: done\n"


def test_without_room_for_its_output_the_agent_is_judged_all_the_same() -> None:
    agent = f"head -c 1000000 /dev/zero; sleep 1; echo more; {COMMIT}"
    done = shell(f"ulimit -f 200; guard run --no-probe -- sh -c {shlex.quote(agent)} | cat")
    assert done.returncode == 0, done.stderr
    assert statuses() == ["complete"]
