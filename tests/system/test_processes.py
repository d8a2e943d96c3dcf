"""Other programs: their time limit, their groups, and the hardened call of git."""

import os
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

from guard.errors import RepositoryProblem
from guard.git.run import git_environment, read_config, run_git
from guard.system.process_identity import is_alive
from guard.system.processes import run
from tests.support import TIME_LIMIT, write
from tests.support import git as plain_git
from tests.support.sessions import until


def test_a_program_is_heard() -> None:
    done = run(
        ["sh", "-c", "echo out; echo err >&2; exit 3"], environ=os.environ, time_limit=TIME_LIMIT
    )
    assert (done.code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")


def test_a_program_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sleep 300 & echo $! > {pid_file}; wait"
    # On a busy machine the shell may not get that far in the first of these.
    for limit in (0.5, 5, 30, 120):
        begun = monotonic()
        assert run(["sh", "-c", script], environ=os.environ, time_limit=limit).code is None
        assert monotonic() - begun < limit + 120
        if pid_file.exists() and pid_file.read_text():
            break
    child = int(pid_file.read_text())
    until(lambda: not _runs(child))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_grandchild_in_its_own_session_does_not_hold_us(tmp_path: Path) -> None:
    begun = monotonic()
    code = "import subprocess; subprocess.Popen(['sleep', '300'], start_new_session=True)"
    done = run([sys.executable, "-c", code], environ=os.environ, time_limit=1)
    assert monotonic() - begun < TIME_LIMIT
    assert done.code in (None, 0)


def test_git_runs_nothing_of_the_repositorys(repository: Path, tmp_path: Path) -> None:
    """Each planted key would leave a file behind."""
    trap = write(tmp_path / "trap", f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    write(repository / "file.txt", "x\n")
    for key in ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "core.askPass"):
        plain_git(repository, "config", key, str(trap))
    for hook in ("post-index-change", "reference-transaction", "pre-commit"):
        write(repository / ".git" / "hooks" / hook, trap.read_text()).chmod(0o755)
    for words in (
        ["status", "--porcelain"],
        ["add", "file.txt"],
        ["diff", "--cached", "--no-ext-diff"],
    ):
        done = run_git(
            *words, environ=os.environ, git_dir=repository / ".git", work_tree=repository
        )
        assert done.code == 0, done.stderr
    assert not (tmp_path / "sprung").exists()


def test_the_callers_git_variables_are_dropped() -> None:
    made = git_environment({"GIT_DIR": "/elsewhere", "GIT_INDEX_FILE": "x", "PATH": "/bin"})
    assert "GIT_DIR" not in made
    assert "GIT_INDEX_FILE" not in made
    assert made["PATH"] == "/bin"


def test_git_that_is_missing_or_slow_is_an_error(tmp_path: Path, repository: Path) -> None:
    with pytest.raises(RepositoryProblem, match="not installed"):
        run_git("status", environ={"PATH": str(tmp_path)})
    slow = write(tmp_path / "bin" / "git", "#!/bin/sh\nsleep 600\n")
    slow.chmod(0o755)
    with pytest.raises(RepositoryProblem, match="took longer"):
        run_git("status", environ={"PATH": f"{slow.parent}:/usr/bin:/bin"}, time_limit=0.3)


def test_a_value_of_gits_configuration(repository: Path) -> None:
    assert read_config("user.name", repository / ".git", os.environ) == "Test Author"
    assert read_config("no.such", repository / ".git", os.environ) is None


STOPPED_AT_THE_START = """
import os, signal, subprocess, sys
from guard.system.processes import run
from guard.system.signals import interrupt_on_termination

whole = subprocess.Popen.__init__

def stopped(self, *words, **more):
    whole(self, *words, **more)
    print(self.pid, flush=True)
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))

subprocess.Popen.__init__ = stopped
with interrupt_on_termination():
    run(["sleep", "300"], environ=os.environ, time_limit=600)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_whoever_stops_guard_just_when_a_program_starts_ends_that_too(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_AT_THE_START, name],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert "KeyboardInterrupt" in done.stderr
    assert not is_alive(int(done.stdout), None)
