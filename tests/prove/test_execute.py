"""Commands that count by exit code or by their own JUnit files, and commands that do harm."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from guard.prove import bounded_run
from guard.system.process_table import list_processes
from tests.support import write
from tests.support.checks import Checkout
from tests.support.sessions import until

PYTHON = sys.executable
SUITE = '<testsuite><testcase classname="A" name="ok"/>{more}</testsuite>'


def left_over(word: str) -> list[int]:
    """List the processes that have this word on their command line."""
    found = []
    for process in list_processes():
        try:
            words = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in words and process.pid != os.getpid():
            found.append(process.pid)
    return found


@pytest.mark.parametrize(
    ("command", "code"),
    [("true", 0), ("exit 3", 3), ("kill -TERM $$", -15), ("no-such-program-at-all", 127)],
)
def test_the_exit_code_is_the_commands_own(checkout: Checkout, command: str, code: int) -> None:
    ran = checkout.run(command, kind="exit")
    assert (ran.end, ran.exit_code, ran.granularity) == ("exited", code, "exit")
    assert ran.is_green == (code == 0)


def test_a_folder_that_is_gone_cannot_be_run_in(checkout: Checkout) -> None:
    checkout.folder.rmdir()
    ran = checkout.run("true", kind="exit")
    assert (ran.end, ran.exit_code) == ("cannot_start", None)
    assert str(checkout.folder) in (ran.detail or "")


def test_the_environment_is_the_users_without_guard_git_and_the_session(checkout: Checkout) -> None:
    environ = {
        "GIT_DIR": "/proc/nowhere",
        "GUARD_STATE": "x",
        "CLAUDECODE": "1",
        "MINE": "kept",
    }
    ran = checkout.run("env; readlink /proc/self/fd/0", kind="exit", environ=environ)
    lines = ran.tail.splitlines()
    assert {"CI=1", "GUARD_SLOT=0", "MINE=kept"} <= set(lines)
    assert f"TMPDIR={checkout.scratch / 'tmp'}" in lines
    assert not any(line.startswith(("GIT_", "GUARD_STATE", "CLAUDECODE")) for line in lines)
    assert lines[-1] == os.devnull


def test_variables_that_name_the_work_tree_name_the_checkout(checkout: Checkout) -> None:
    for folder, text in ((checkout.project, "exit 0"), (checkout.folder, "exit 3")):
        write(folder / "bin/check", f"#!/bin/sh\n{text}\n").chmod(0o755)
    write(checkout.project / ".venv/bin/tool", "")
    project = str(checkout.project)
    environ = {
        "OLDPWD": project,
        "GITHUB_WORKSPACE": f"{project}/bin",
        "PATH": f"{project}/.venv/bin:{project}/bin:{os.environ['PATH']}",
        "HOME": project,
        "MINE": f"see {project}",
    }
    for command in ("$OLDPWD/bin/check", "$GITHUB_WORKSPACE/check", "check"):
        assert checkout.run(command, kind="exit", environ=environ).exit_code == 3, command
    lines = checkout.run("env", kind="exit", environ=environ).tail.splitlines()
    assert {f"HOME={project}", f"MINE=see {project}"} <= set(lines)
    # In what is printed the checkout's own paths are as the project has them.
    assert any(line.startswith(f"PATH={project}/.venv/bin:bin:") for line in lines)


def test_much_output_is_drained_and_only_its_end_is_kept(checkout: Checkout) -> None:
    ran = checkout.run(
        "head -c 300000000 /dev/zero | tr '\\0' 'x'; echo; echo the end", kind="exit"
    )
    assert ran.exit_code == 0
    assert len(ran.tail) <= 64 * 1024
    assert ran.tail.endswith("the end")


def test_what_it_prints_cannot_drive_the_terminal(checkout: Checkout) -> None:
    ran = checkout.run("printf '\\033[2Jgone\\n'", kind="exit")
    assert ran.tail == "\\x1b[2Jgone"


ESCAPES = {
    "in the background": "sleep {n} &",
    "without hangup": "nohup sleep {n} >/dev/null 2>&1 &",
    "in a session of its own": "setsid sleep {n} &",
    "twice forked, without the environment": "env -i setsid sh -c 'setsid sleep {n} & exit' >/dev/null 2>&1 & sleep 0.2",
    "holding every lent descriptor": '(for n in 3 4 5 6 7 8; do eval "exec $n<&-"; done; setsid sleep {n}) &',
    "holding the output": "(trap '' TERM HUP; sleep {n}) &",
}


@pytest.mark.parametrize("command", ESCAPES.values(), ids=ESCAPES)
def test_nothing_that_it_starts_outlives_it(
    checkout: Checkout, command: str, request: pytest.FixtureRequest
) -> None:
    number = f"99{abs(hash(request.node.name)) % 10**7:07d}"
    ran = checkout.run(f"{command.format(n=number)}\necho started", kind="exit")
    assert (ran.end, ran.exit_code) == ("exited", 0)
    assert ran.tail.endswith("started")
    assert left_over(f"sleep\0{number}") == []


@pytest.mark.parametrize(
    "wait",
    ["sleep 987001", "exec >&- 2>&-; sleep 987001", "trap '' TERM; while :; do sleep 987001; done"],
)
def test_a_command_that_hangs_is_ended_at_its_time_limit(checkout: Checkout, wait: str) -> None:
    ran = checkout.run(f"setsid sleep 987001 & echo begun; {wait}", kind="exit", seconds=1)
    assert (ran.end, ran.exit_code, ran.is_green) == ("timeout", None, False)
    assert "1 s" in (ran.detail or "")
    assert left_over("987001") == []


def test_a_command_that_kills_or_stops_its_supervisor_is_not_green(checkout: Checkout) -> None:
    orphan = "env -i setsid sh -c 'setsid sleep 987002 & exit' >/dev/null 2>&1"
    ran = checkout.run(f"{orphan}; kill -KILL $PPID; setsid sleep 987002", kind="exit")
    assert ran.exit_code == -signal.SIGKILL
    assert left_over("987002") == []
    ran = checkout.run(f"{orphan}; kill -STOP $PPID; true", kind="exit", seconds=1)
    assert (ran.end, ran.is_green) == ("timeout", False)
    assert left_over("987002") == []


def test_a_command_that_fills_the_disk_is_ended(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The disk is the test machine's own, so only the figure is played: it falls when the command has written.
    filled = checkout.folder / "filled"
    monkeypatch.setattr(
        bounded_run.BoundedRun, "_free_bytes", lambda _: 10 if filled.exists() else 10**12
    )
    for command in ("touch filled; sleep 987003", "touch filled; true"):
        ran = checkout.run(command, kind="exit")
        assert (ran.end, ran.is_green) == ("disk_full", False)
        filled.unlink()
    assert left_over("987003") == []


def test_progress_says_how_long_and_how_many(checkout: Checkout) -> None:
    lines: list[str] = []
    test = "import time\ndef test_a(): assert 0\ndef test_b(): time.sleep(3)\n"
    checkout.run(f"{PYTHON} -m pytest", {"test_x.py": test}, progress=lines.append)
    assert any(line.endswith(", 1 test, 1 failed") for line in lines), lines


def test_ctrl_c_ends_the_command(checkout: Checkout) -> None:
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom guard.prove.execute import Order, execute\n"
        "folder, scratch = map(Path, sys.argv[1:])\n"
        "order = Order('setsid sleep 987004 & sleep 987004', folder, folder, os.environ, scratch, 600, '0', kind='exit')\n"
        "execute(order, print)\n"
    )
    words = [PYTHON, "-c", program, str(checkout.folder), str(checkout.scratch)]
    for number in (signal.SIGINT, signal.SIGKILL):
        with subprocess.Popen(
            words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        ) as process:
            until(lambda: len(left_over("sleep\000987004")) >= 2)
            process.send_signal(number)
            process.wait()
        until(lambda: left_over("sleep\000987004") == [])


def test_two_commands_at_once_end_only_their_own(checkout: Checkout, tmp_path: Path) -> None:
    done: list[str] = []

    def run_short() -> None:
        until((checkout.folder / "up").exists)
        other = Checkout(checkout.folder, tmp_path / "other", checkout.project)
        other.scratch.mkdir()
        done.append(other.run("setsid sleep 987005 & true", kind="exit").end)
        write(checkout.folder / "go", "")

    thread = threading.Thread(target=run_short)
    thread.start()
    ran = checkout.run("touch up; while ! [ -e go ]; do sleep 0.05; done; echo whole", kind="exit")
    thread.join()
    assert (ran.exit_code, ran.tail, done) == (0, "whole", ["exited"])


def test_a_junit_file_of_the_command_names_the_tests(checkout: Checkout) -> None:
    bad = '<testcase classname="A" name="bad"><failure message="no"/></testcase>'
    suite = SUITE.format(more=bad)
    ran = checkout.run(f"mkdir -p out; echo '{suite}' > out/r.xml", junit="out/*.xml")
    assert {name: test.state for name, test in ran.tests.items()} == {
        "A::ok": "passed",
        "A::bad": "failed",
    }
    # Failures in the report outrank exit code 0.
    assert (ran.exit_code, ran.is_green) == (0, False)


HOSTILE = {
    "it is missing": "true",
    "it is an old one": "touch -d 2030-01-01 out/r.xml 2>/dev/null; true",
    "it is a link": "ln -sf ../green.xml out/r.xml",
    "it is a pipe": "rm -f out/r.xml; mkfifo out/r.xml",
    "it is cut off": "head -c 30 green.xml > out/r.xml",
    "it is empty": ": > out/r.xml",
    "it has entities": """printf '<!DOCTYPE a [<!ENTITY b "c">]><testsuite><testcase name="&b;"/></testsuite>' > out/r.xml""",
    "it is something else": "echo '<html><testcase name=\"a\"/></html>' > out/r.xml",
}


@pytest.mark.parametrize("command", HOSTILE.values(), ids=HOSTILE)
def test_a_report_that_is_not_this_runs_own_is_not_green(checkout: Checkout, command: str) -> None:
    files = {"out/r.xml": SUITE.format(more=""), "green.xml": SUITE.format(more="")}
    ran = checkout.run(command, files, junit="out/*.xml")
    assert (ran.granularity, ran.exit_code, ran.is_green) == ("tests", 0, False)
    assert ran.detail


@pytest.mark.parametrize("pattern", ["../*.xml", "/tmp/*.xml", "up/*.xml"])
def test_a_report_is_looked_for_in_the_checkout_only(checkout: Checkout, pattern: str) -> None:
    outside = write(checkout.folder.parent / "r.xml", SUITE.format(more=""))
    (checkout.folder / "up").symlink_to("..")
    ran = checkout.run("true", junit=pattern)
    assert not ran.is_green
    assert outside.exists()
