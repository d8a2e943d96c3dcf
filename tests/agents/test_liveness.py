"""Whether an agent is still there: real sessions, real processes, numbers that were reused, and answers that tell nothing."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from guard.agents.liveness import LivenessLook, locate, look, look_all, watched_processes
from guard.core.agents.whereabouts import Host, Whereabouts
from guard.errors import WrongUsage
from guard.system.host import read_host
from guard.system.process_identity import start_time
from tests.support.sessions import ending, until
from tests.support.tmux_server import PAUSE, TmuxServer, needs_tmux

HERE = read_host()
OLD, YOUNG = 3600.0, 1.0


def seen(where: Whereabouts, age: float = OLD, host: Host = HERE) -> tuple[str, str]:
    found = look(where, age_seconds=age, here=host)
    return found.state, found.detail


def in_session(server: TmuxServer, name: str = "agent-1") -> Whereabouts:
    where, warnings = locate(name, server.socket, None)
    assert warnings == []
    return where


def test_nothing_recorded_tells_nothing() -> None:
    expected = ("unknown", "nothing is recorded of its session or process")
    assert seen(Whereabouts()) == expected
    assert seen(Whereabouts(host=HERE)) == expected


def test_a_process_is_alive_until_it_ends() -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        where, warnings = locate(None, None, process.pid)
        assert warnings == []
        assert seen(where) == ("alive", f"process {process.pid} runs")
    assert seen(where) == ("ended", f"process {process.pid} has ended")


def test_a_process_that_nobody_waited_for_has_ended() -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        where, _ = locate(None, None, process.pid)
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert seen(where) == ("ended", f"process {process.pid} has ended")
        bare = where.model_copy(update={"pid_start": None})
        assert seen(bare) == ("unknown", f"process {process.pid} was never seen")


def test_a_number_without_a_start_tells_nothing() -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        where = Whereabouts(host=HERE, pid=process.pid)
        detail = f"there is a process {process.pid}, but when it started was not recorded"
        assert seen(where) == ("unknown", detail)
    assert seen(where) == ("unknown", f"process {process.pid} was never seen")


def test_starts_told_by_different_sources_are_not_compared() -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        ticks, _, boot = (start_time(process.pid) or "").partition("@")
        for other in (f"Mon Jan 5 10:00:00 2026@{boot}", f"{ticks}@?"):
            where = Whereabouts(host=HERE, pid=process.pid, pid_start=other)
            assert seen(where)[0] == "unknown"


REUSE = """
import subprocess
from guard.system.host import read_host
from guard.agents.liveness import locate, look

first = subprocess.Popen(["sleep", "600"])
where, warnings = locate(None, None, first.pid)
assert not warnings
print(look(where, age_seconds=0, here=read_host()).state)
first.kill()
first.wait()
with open("/proc/sys/kernel/ns_last_pid", "w") as file:
    file.write(str(first.pid - 1))
second = subprocess.Popen(["sleep", "600"])
found = look(where, age_seconds=0, here=read_host())
second.kill()
second.wait()
print(second.pid == first.pid, found.state, found.detail.replace(str(first.pid), "N"))
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare"
)
def test_a_reused_number_is_not_mistaken_in_a_namespace_of_its_own() -> None:
    argv = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", REUSE]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    reused = "True ended process number N belongs to another process now"
    assert done.stdout.splitlines() == ["alive", reused]


HIDDEN = """
import os, subprocess
from guard.system.process_identity import start_time
from guard.core.agents.whereabouts import Whereabouts
from guard.system.host import read_host
from guard.agents.liveness import look

{hide}
at = read_host()
Whereabouts(host=at)
process = subprocess.Popen(["sleep", "600"])
start = start_time(process.pid)
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
print(start_time(process.pid) is None)
for pid, known in ((process.pid, start), (process.pid, None), (4000000, start)):
    where = Whereabouts(host=at, pid=pid, pid_start=known)
    print(look(where, age_seconds=0, here=read_host()).state)
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare"
)
@pytest.mark.parametrize("option", ["1", "2"])
def test_a_process_that_is_hidden_from_us_has_not_ended(option: str) -> None:
    mount = ["mount", "-t", "proc", "-o", f"hidepid={option}", "proc", "/proc"]
    code = HIDDEN.format(hide=f"subprocess.run({mount!r}, check=True)")
    argv = ["unshare", "--pid", "--fork", "--mount", sys.executable, "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.split() == ["True", "unknown", "unknown", "ended"]


FOREIGN = """
import subprocess
from guard.core.agents.whereabouts import Whereabouts
from guard.system.host import read_host
from guard.agents.liveness import look

process = subprocess.Popen(["sleep", "600"])
print(look(Whereabouts(host=read_host(), pid=process.pid, pid_start="1@x"), age_seconds=0, here=read_host()).state)
process.kill()
process.wait()
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare"
)
def test_a_namespace_that_sees_the_numbers_of_another_tells_nothing() -> None:
    argv = ["unshare", "--pid", "--fork", sys.executable, "-c", FOREIGN]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
    assert (done.stderr, done.stdout) == ("", "unknown\n")


def test_where_ps_cannot_run_a_process_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        where = Whereabouts(host=HERE, pid=process.pid, pid_start="1@x")
        real = os.path.exists
        monkeypatch.setattr("os.path.exists", lambda p: p != "/proc/self/stat" and real(p))
        monkeypatch.setenv("PATH", "/proc/nowhere")
        assert seen(where)[0] == "unknown"


def test_another_host_tells_nothing_and_a_restarted_one_has_ended_all() -> None:
    host = Host(name="build-7", machine="m", boot_id="b", pid_namespace="n")
    where = Whereabouts(host=host, pid=4000000, pid_start="1@b", tmux_session="a")
    assert seen(where) == ("unknown", "another host: build-7")
    container = host.model_copy(update={"pid_namespace": "pid:[2]"})
    assert seen(where, host=container) == ("unknown", "another container of build-7")
    restarted = host.model_copy(update={"boot_id": "c"})
    assert seen(where, host=restarted) == ("ended", "the machine was restarted")
    assert seen(where.model_copy(update={"host": None}))[0] == "unknown"


@needs_tmux
def test_a_session_is_alive_until_it_is_killed(server: TmuxServer) -> None:
    server.new("agent-1")
    server.new("agent-1-long")
    where = in_session(server)
    assert seen(where) == ("alive", "tmux session agent-1 exists")
    server.close("agent-1")
    assert seen(where, YOUNG) == ("ended", "tmux session agent-1 does not exist any more")


@needs_tmux
@pytest.mark.parametrize("gone", ["agent-1", "agent-1-long"])
def test_two_agents_with_similar_sessions_are_told_apart(server: TmuxServer, gone: str) -> None:
    names = ["agent-1", "agent-1-long"]
    for name in names:
        server.new(name)
    places = [(in_session(server, name), OLD) for name in names]
    server.close(gone)
    found = look_all(places, here=HERE)
    assert [one.state for one in found] == ["ended" if name == gone else "alive" for name in names]


@needs_tmux
def test_a_session_made_anew_is_not_the_old_one(server: TmuxServer) -> None:
    server.new("other")
    server.new("agent-1")
    where = in_session(server)
    server.close("agent-1")
    server.new("agent-1")
    assert seen(where) == ("ended", "tmux session agent-1 is another one now")


@needs_tmux
def test_a_renamed_session_is_the_same_one(server: TmuxServer) -> None:
    server.new("agent-1")
    where = in_session(server)
    server.tell("rename-session", "-t", "=agent-1", "called-otherwise")
    assert seen(where) == ("alive", "tmux session called-otherwise exists")
    panes = server.get("called-otherwise").panes.values()
    assert set(panes) <= {pid for pid, _ in watched_processes([where], here=HERE)}
    server.new("agent-1")
    assert seen(where) == ("alive", "tmux session called-otherwise exists")
    server.close("called-otherwise")
    assert seen(where) == ("ended", "tmux session agent-1 is another one now")


@needs_tmux
def test_a_server_that_was_started_anew_has_not_the_old_session(server: TmuxServer) -> None:
    server.new("agent-1")
    where = in_session(server)
    server.end()
    assert seen(where) == ("ended", "tmux session agent-1 does not exist any more")
    server.new("agent-1")
    assert seen(where) == ("ended", "tmux session agent-1 is another one now")


@needs_tmux
def test_a_server_whose_socket_was_deleted_still_has_its_sessions(server: TmuxServer) -> None:
    server.new("agent-1")
    where = in_session(server)
    pid = server.get("agent-1").server_pid
    os.unlink(server.socket)
    detail = f"tmux server {pid} of session agent-1 runs, but not on its socket"
    assert seen(where) == ("unknown", detail)
    os.kill(pid, signal.SIGUSR1)
    until(lambda: Path(server.socket).exists(), 90)
    until(lambda: seen(where)[0] == "alive", 90)


@needs_tmux
def test_an_empty_server_on_a_replaced_socket_tells_no_end(server: TmuxServer) -> None:
    server.new("agent-1")
    where = in_session(server)
    pid = server.get("agent-1").server_pid
    os.unlink(server.socket)
    server.new("other")
    server.tell("set-option", "-g", "exit-empty", "off")
    server.close("other")
    detail = f"tmux server {pid} of session agent-1 runs, but not on its socket"
    assert seen(where) == ("unknown", detail)


@needs_tmux
def test_a_server_that_outlives_its_sessions_tells_their_end(server: TmuxServer) -> None:
    server.new("agent-1")
    server.tell("set-option", "-g", "exit-empty", "off")
    where = in_session(server)
    server.close("agent-1")
    assert seen(where) == ("ended", "tmux session agent-1 does not exist any more")


@needs_tmux
def test_a_session_of_dead_panes_has_ended(server: TmuxServer) -> None:
    server.new("agent-1", "cat")
    server.tell("set-option", "-g", "remain-on-exit", "on")
    where = in_session(server)
    os.kill(next(iter(server.get("agent-1").panes.values())), signal.SIGKILL)
    until(lambda: seen(where) == ("ended", "all panes of tmux session agent-1 are dead"), 90)


@needs_tmux
def test_the_process_decides_where_a_shell_is_left_behind(server: TmuxServer) -> None:
    server.new("agent-1", "sh")
    with ending(subprocess.Popen(PAUSE)) as process:
        where, warnings = locate("agent-1", server.socket, process.pid)
        assert warnings == []
        assert seen(where)[0] == "alive"
    assert seen(where) == ("ended", f"process {process.pid} has ended")


@needs_tmux
def test_the_session_decides_where_the_process_was_never_seen(server: TmuxServer) -> None:
    server.new("agent-1")
    with ending(subprocess.Popen(PAUSE)) as process:
        where = in_session(server).model_copy(update={"pid": process.pid})
        assert seen(where)[0] == "alive"
        never = where.model_copy(update={"pid": 4000000})
        assert seen(never)[0] == "alive"
        server.close("agent-1")
        assert seen(where)[0] == "ended"


@needs_tmux
def test_a_session_that_comes_later_is_waited_for_and_learnt(server: TmuxServer) -> None:
    where, warnings = locate("agent-1", server.socket, None)
    assert warnings == [f"there is no tmux session agent-1 on {server.socket} yet"]
    assert seen(where, YOUNG) == ("unknown", "tmux session agent-1 was never seen yet")
    assert seen(where, OLD) == ("ended", "tmux session agent-1 was never seen")
    server.new("agent-1")
    found = look(where, age_seconds=YOUNG, here=HERE)
    assert found.state == "alive"
    assert found.learnt == in_session(server)
    server.close("agent-1")
    assert seen(found.learnt, YOUNG)[0] == "ended"


@needs_tmux
def test_a_session_that_comes_later_is_learnt_while_the_process_runs(server: TmuxServer) -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        where, _ = locate("agent-1", server.socket, process.pid)
        found = look(where, age_seconds=OLD, here=HERE)
        assert (found.state, found.learnt) == ("alive", None)
        server.new("agent-1")
        found = look(where, age_seconds=OLD, here=HERE)
        assert (found.state, found.detail) == ("alive", f"process {process.pid} runs")
        assert found.learnt == locate("agent-1", server.socket, process.pid)[0]


@needs_tmux
def test_how_long_a_session_is_waited_for_is_a_knob(server: TmuxServer) -> None:
    where, _ = locate("agent-1", server.socket, None)
    for grace, state in ((10.0, "unknown"), (4.0, "ended")):
        assert look(where, age_seconds=5, here=HERE, start_grace=grace).state == state


@needs_tmux
def test_without_tmux_a_session_is_unknown(
    server: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.new("agent-1")
    where = in_session(server)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/proc/nowhere")
        assert seen(where) == ("unknown", "tmux is not installed")
        unseen, warnings = locate("agent-1", server.socket, None)
        assert warnings == ["tmux session agent-1 was not looked for: tmux is not installed"]
        assert unseen.tmux_identity is None
    assert seen(where)[0] == "alive"


def test_a_process_that_is_not_there_is_refused() -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        for pid in (4000000, process.pid):
            with pytest.raises(WrongUsage, match=f"there is no process {pid}") as caught:
                locate(None, None, pid)
            assert caught.value.hint == "give the pid of the running agent"


def test_a_process_whose_start_nobody_tells_is_recorded_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        real = os.path.exists
        monkeypatch.setattr("os.path.exists", lambda p: p != "/proc/self/stat" and real(p))
        monkeypatch.setenv("PATH", "/proc/nowhere")
        where, warnings = locate(None, None, process.pid)
    assert (where.pid, where.pid_start) == (process.pid, None)
    assert warnings == [f"the start time of process {process.pid} is not known"]


@pytest.mark.parametrize("pid", [-1, 0, 1, 2**40])
def test_a_number_that_cannot_be_an_agents_is_refused(pid: int) -> None:
    with pytest.raises(WrongUsage):
        locate(None, None, pid)


@pytest.mark.parametrize(("name", "socket"), [("a.b", None), ("a", "/" + "x" * 600)])
def test_what_tmux_could_not_have_is_refused(name: str, socket: str | None) -> None:
    with pytest.raises(WrongUsage):
        locate(name, socket, None)


@needs_tmux
def test_the_processes_to_wait_for_are_the_server_and_those_of_the_panes(
    server: TmuxServer,
) -> None:
    server.new("agent-1")
    where = in_session(server)
    with ending(subprocess.Popen(PAUSE)) as process:
        other, _ = locate(None, None, process.pid)
        found = watched_processes([where, where, other, Whereabouts()], here=HERE)
    session = server.get("agent-1")
    assert [pid for pid, _ in found] == [*session.panes.values(), session.server_pid, process.pid]
    never_seen = where.model_copy(update={"pid": process.pid})
    assert watched_processes([never_seen], here=HERE) == found[:-1]


@needs_tmux
def test_the_end_of_a_server_is_waited_for_that_nobody_can_ask(
    server: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.new("agent-1")
    where = in_session(server)
    pid = server.get("agent-1").server_pid
    monkeypatch.setenv("PATH", "/proc/nowhere")
    assert watched_processes([where], here=HERE) == [(pid, start_time(pid))]


@needs_tmux
def test_a_thousand_agents_ask_each_server_once(
    server: TmuxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.new("agent-1")
    where = in_session(server)
    real, asked = shutil.which("tmux"), tmp_path / "asked"
    program = tmp_path / "bin" / "tmux"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho x >> "{asked}"\nexec {real} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    process, _ = locate(None, None, os.getppid())
    began = time.monotonic()
    found = look_all([(where, OLD), (process, OLD)] * 500, here=HERE)
    assert {one.state for one in found} == {"alive"}
    assert isinstance(found[0], LivenessLook)
    assert len(asked.read_text().splitlines()) == 1
    assert time.monotonic() - began < 180
