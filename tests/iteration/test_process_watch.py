"""The processes of an iteration: which are its own, and which of them are at work."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from guard.core.hooks.event_kinds import MARK
from guard.core.iteration.facts import Process
from guard.iteration.process_watch import ProcessMark, ProcessWatch
from guard.system.process_table import Stat, list_from_ps, list_processes
from tests.support.sessions import ending, until

BUSY = "while True: sum(range(10000))"
BEATS = "import time\nwhile True: open('beat', 'w').write('x' * 250); time.sleep(20)"
READS = "import time\nwhile True: open('/bin/sh', 'rb').read(4096); time.sleep(0.05)"
SLEEPS = "import time; open('up', 'w').close(); time.sleep(300)"
WRITES = "import time\nwhile True: open('log', 'a').write('x'); time.sleep(0.05)"


@pytest.fixture
def marked(tmp_path: Path) -> ProcessMark:
    return ProcessMark(value=f"run-{tmp_path.name}/1")


@contextmanager
def started(
    marked: ProcessMark, code: str, cwd: Path, start_new_session: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """A helper that ends with the block."""
    environ = {**os.environ, MARK: marked.value or ""}
    helper = subprocess.Popen(
        [sys.executable, "-c", code], env=environ, cwd=cwd, start_new_session=start_new_session
    )
    with ending(helper):
        yield helper


def test_a_marked_process_is_found_in_whatever_session(marked: ProcessMark, tmp_path: Path) -> None:
    with started(marked, BUSY, tmp_path, start_new_session=True) as helper:
        until(
            lambda: (
                [one.process.pid for one in ProcessWatch(marked).look() if one.process]
                == [helper.pid]
            )
        )
        helper.kill()


def test_a_process_with_another_mark_is_not(marked: ProcessMark, tmp_path: Path) -> None:
    other = ProcessMark(value=f"{marked.value}0")
    with started(other, BUSY, tmp_path):
        until(lambda: bool(ProcessWatch(other).look()))
        assert ProcessWatch(marked).look() == ()


def test_one_that_ended_and_was_not_waited_for_is_gone(marked: ProcessMark, tmp_path: Path) -> None:
    with started(marked, "pass", tmp_path):
        until(lambda: ProcessWatch(marked).look() == ())


def test_the_agent_itself_is_told_from_its_helpers(tmp_path: Path) -> None:
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])"
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, process_group=0) as agent:
        try:
            start = next(stat.start for stat in list_processes() if stat.pid == agent.pid)
            watch = ProcessWatch(ProcessMark(agent=Process(pid=agent.pid, start=start)))
            until(lambda: sorted(one.kind for one in watch.look()) == ["agent", "process"])
        finally:
            os.killpg(agent.pid, signal.SIGKILL)


@pytest.mark.parametrize("code", [BUSY, WRITES, READS], ids=["CPU time", "output", "input"])
def test_work_keeps_a_process_from_being_idle(
    code: str, marked: ProcessMark, tmp_path: Path
) -> None:
    with started(marked, code, tmp_path):
        watch = ProcessWatch(marked)
        until(lambda: bool(watch.look()))
        time.sleep(1.5)
        until(lambda: watch.look()[0].idle_seconds < 1)


WAKES = """
import os, time
bell = os.eventfd(0)
os.write(bell, (1).to_bytes(8, "little"))
open("up", "w").close()
while True:
    os.read(bell, 8)
    os.write(bell, (1).to_bytes(8, "little"))
    open("/proc/self/statm", "rb", 0).read(30)
    time.sleep(0.2)
"""


def test_a_note_that_it_is_alive_is_no_sign_of_an_agents_work(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", BEATS], cwd=tmp_path, process_group=0) as agent:
        try:
            until((tmp_path / "beat").exists)
            start = next(stat.start for stat in list_processes() if stat.pid == agent.pid)
            watch = ProcessWatch(ProcessMark(agent=Process(pid=agent.pid, start=start)))
            until(lambda: watch.look()[0].idle_seconds >= 25)
        finally:
            os.killpg(agent.pid, signal.SIGKILL)


def test_the_wake_ups_of_an_event_loop_are_no_sign_of_work(
    marked: ProcessMark, tmp_path: Path
) -> None:
    with started(marked, WAKES, tmp_path):
        until((tmp_path / "up").exists)
        watch = ProcessWatch(marked)
        until(lambda: bool(watch.look()) and watch.look()[0].idle_seconds >= 3)


LISTENS = "import socket, time\nwith socket.create_server(('127.0.0.1', 0)): time.sleep(300)"
PARENT = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {LISTENS!r}])"
BOTH = f"""
import subprocess, sys
subprocess.Popen(['sleep', '300'])
subprocess.run([sys.executable, '-c', {LISTENS!r}])
"""


@pytest.mark.parametrize(
    ("code", "serving"),
    [(LISTENS, [True]), (PARENT, [True, True]), (BOTH, [False, False, True]), (SLEEPS, [False])],
    ids=["a server", "its parent too", "a parent with other children", "no server"],
)
def test_a_server_is_known_by_its_port(
    code: str, serving: list[bool], marked: ProcessMark, tmp_path: Path
) -> None:
    with started(marked, code, tmp_path, start_new_session=True) as parent:
        try:
            watch = ProcessWatch(marked)
            until(lambda: sorted(one.serves for one in watch.look()) == serving)
        finally:
            os.killpg(parent.pid, signal.SIGKILL)


def test_what_a_probe_left_is_not_the_agents(tmp_path: Path) -> None:
    marked = ProcessMark(root=tmp_path, since=time.time() - 1)
    probe = {**os.environ, "GUARD_PROBE": "1"}
    with (
        ending(subprocess.Popen(["sleep", "600"], cwd=tmp_path, env=probe)) as left,
        ending(subprocess.Popen(["sleep", "600"], cwd=tmp_path)) as helper,
    ):
        until(lambda: len(ProcessWatch(ProcessMark(root=tmp_path, since=0.0)).look()) == 1)
        (found,) = ProcessWatch(marked).look()
        assert found.process is not None
        assert found.process.pid == helper.pid != left.pid


def _has_begun(stat: Stat) -> bool:
    return stat.started_by < time.time()


def test_what_begins_by_itself_while_a_probe_runs_is_not_the_agents(tmp_path: Path) -> None:
    watch = ProcessWatch(ProcessMark(root=tmp_path, since=time.time() - 1))
    child = "import subprocess, time; input(); subprocess.Popen(['sleep', '600']); print(); time.sleep(600)"
    with ending(
        subprocess.Popen(
            [sys.executable, "-uc", child],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        )
    ) as helper:
        assert helper.stdin is not None
        assert helper.stdout is not None
        until(lambda: any(_has_begun(stat) for stat in list_processes() if stat.pid == helper.pid))
        with watch.probing():
            helper.stdin.write(b"\n")
            helper.stdin.flush()
            helper.stdout.readline()
            left = subprocess.Popen(["sleep", "600"], cwd=tmp_path, env={})
        with ending(left):
            found = {one.process.pid for one in watch.look() if one.process}
            assert helper.pid in found
            assert len(found) == 2
            assert left.pid not in found
        os.killpg(helper.pid, signal.SIGKILL)


def test_a_process_that_sleeps_is_idle_since_it_was_first_seen(
    marked: ProcessMark, tmp_path: Path
) -> None:
    with started(marked, SLEEPS, tmp_path):
        until((tmp_path / "up").exists)
        begun, watch = time.monotonic(), ProcessWatch(marked)
        assert watch.look()[0].idle_seconds == 0
        until(lambda: watch.look()[0].idle_seconds >= 1)
        assert watch.look()[0].idle_seconds <= time.monotonic() - begun


def test_an_earlier_check_is_gone_on_from(marked: ProcessMark, tmp_path: Path) -> None:
    with started(marked, SLEEPS, tmp_path):
        until((tmp_path / "up").exists)
        first = ProcessWatch(marked)
        until(lambda: bool(first.look()) and first.look()[0].idle_seconds >= 1)
        seen = first.look()
        second = ProcessWatch(marked)
        second.recall(seen, seconds_ago=300)
        assert second.look()[0].idle_seconds >= 300
        third = ProcessWatch(marked)
        third.recall([seen[0].model_copy(update={"moved": seen[0].moved + 1})], seconds_ago=300)
        assert third.look()[0].idle_seconds < 60


def test_without_a_mark_those_count_that_began_in_the_work_tree_since(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    since = time.time()
    marked = ProcessMark(root=tmp_path, since=since - 1)
    with ending(subprocess.Popen(["sleep", "600"], cwd=inside)) as helper:
        until(
            lambda: (
                [one.process.pid for one in ProcessWatch(marked).look() if one.process]
                == [helper.pid]
            )
        )
        assert ProcessWatch(ProcessMark(root=tmp_path, since=time.time() + 600)).look() == ()
        assert ProcessWatch(ProcessMark(root=tmp_path / "elsewhere", since=since - 1)).look() == ()


@pytest.mark.parametrize("between", ["cat", "(cd / && exec cat)"], ids=["inside", "elsewhere"])
def test_what_reads_guards_output_is_not_the_agents(between: str, repository: Path) -> None:
    code = f"""
import os, sys, time
from pathlib import Path
from guard.iteration.process_watch import ProcessMark, ProcessWatch
watch = ProcessWatch(ProcessMark(root=Path({str(repository)!r}), since={time.time()!r}))
until = time.monotonic() + 60
while (found := watch.look()) and time.monotonic() < until:
    time.sleep(0.1)
print([one.name for one in found])
"""
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" | {between} | tee out.txt', sys.executable, code],
        cwd=repository, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_ps_tells_the_same_of_a_process_as_far_as_it_goes(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], process_group=0) as helper:
        try:
            time.sleep(1.2)
            helper.send_signal(signal.SIGSTOP)
            [ours] = [stat for stat in list_processes() if stat.pid == helper.pid]
            [theirs] = [stat for stat in list_from_ps() if stat.pid == helper.pid]
        finally:
            helper.kill()
    assert (theirs.parent, theirs.group) == (ours.parent, ours.group) == (os.getpid(), helper.pid)
    assert abs(theirs.started_at - ours.started_at) < 2
    assert abs(theirs.cpu_seconds - ours.cpu_seconds) < 2
