"""Ends agents for real: willing, unwilling, stopped and detached ones; and refuses what is not provably theirs."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from guard.agents import kill
from guard.agents.kill import AgentEnd, end_agent
from guard.agents.liveness import locate
from guard.core.agents.whereabouts import Host, Whereabouts
from guard.errors import Refused
from guard.system import process_table, tmux
from guard.system.host import read_host
from guard.system.process_identity import process_state, start_time
from tests.support.sessions import ending, until
from tests.support.tmux_server import PAUSE, TMUX, TmuxServer, needs_tmux

HERE = read_host()
LONG, SHORT = 90.0, 1.0
STUBBORN = """
import os, signal, sys, time
for name in sys.argv[2:]:
    signal.signal(getattr(signal, name), signal.SIG_IGN)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    time.sleep(600)
"""


def stubborn(file: Path, *ignored: str) -> list[str]:
    """A program that writes its number to the file, once it ignores these signals."""
    return [sys.executable, "-c", STUBBORN, str(file), *ignored]


def written(file: Path) -> tuple[int, str]:
    """The process that wrote its number there."""
    until(file.exists, 90)
    pid = int(file.read_text())
    start = start_time(pid)
    assert start is not None
    return pid, start


def is_gone(process: tuple[int, str]) -> bool:
    return process_state(*process) in ("gone", "reused")


def ended(where: Whereabouts, grace: float = LONG) -> str:
    return end_agent(where, here=HERE, grace_seconds=grace, environ={}).how


def at_process(pid: int) -> Whereabouts:
    where, warnings = locate(None, None, pid)
    assert warnings == []
    return where


def test_a_willing_process_ends_when_asked() -> None:
    with ending(subprocess.Popen(PAUSE, process_group=0)) as process:
        told = end_agent(at_process(process.pid), here=HERE, grace_seconds=LONG)
        assert told == AgentEnd("asked", f"process {process.pid} ended when asked")
        assert process.wait(90) == -signal.SIGTERM


def test_a_process_that_ignores_sigterm_is_forced(tmp_path: Path) -> None:
    argv = stubborn(tmp_path / "pid", "SIGTERM")
    with ending(subprocess.Popen(argv, process_group=0)) as process:
        written(tmp_path / "pid")
        told = end_agent(at_process(process.pid), here=HERE, grace_seconds=SHORT)
        detail = f"process {process.pid} did not end within 1 s and was killed"
        assert told == AgentEnd("forced", detail)
        assert process.wait(90) == -signal.SIGKILL


def test_a_stopped_process_hears_that_it_is_asked() -> None:
    with ending(subprocess.Popen(PAUSE, process_group=0)) as process:
        process.send_signal(signal.SIGSTOP)
        assert ended(at_process(process.pid)) == "asked"
        assert process.wait(90) == -signal.SIGTERM


@pytest.mark.parametrize("own_group", [True, False], ids=["own group", "group of others"])
@pytest.mark.parametrize("apart", ["", "setsid "], ids=["child", "child in a session of its own"])
def test_all_that_it_started_ends_with_it_and_nothing_else(
    tmp_path: Path, own_group: bool, apart: str
) -> None:
    child = shlex.join(stubborn(tmp_path / "child", "SIGTERM"))
    argv = ["sh", "-c", f"{apart}{child} & wait"]
    with (
        ending(subprocess.Popen(PAUSE)) as bystander,
        ending(subprocess.Popen(argv, process_group=0 if own_group else None)) as process,
    ):
        left = written(tmp_path / "child")
        assert ended(at_process(process.pid), SHORT) == "forced"
        assert is_gone(left)
        assert process.wait(90) == -signal.SIGTERM
        assert bystander.poll() is None


def ends_with_its_orphan(script: str, tmp_path: Path) -> None:
    with ending(subprocess.Popen(["sh", "-c", script], process_group=0)) as process:
        orphan = written(tmp_path / "child")
        assert ended(at_process(process.pid)) == "asked"
        assert is_gone(orphan)


def test_an_orphan_in_its_group_ends_with_it(tmp_path: Path) -> None:
    child = shlex.join(stubborn(tmp_path / "child"))
    ends_with_its_orphan(f"({child} &); exec sleep 600", tmp_path)


def test_an_orphan_in_the_session_of_a_child_ends_with_it(tmp_path: Path) -> None:
    orphan = shlex.join(stubborn(tmp_path / "child"))
    leader = shlex.join(["sh", "-c", f"({orphan} &); exec sleep 600"])
    ends_with_its_orphan(f"setsid {leader} & exec sleep 600", tmp_path)


def test_what_it_starts_when_asked_is_forced_too(tmp_path: Path) -> None:
    file = tmp_path / "child"
    start_more = f"setsid {shlex.join(stubborn(file, 'SIGTERM'))} & wait"
    script = f"more() {{ {start_more}; }}; trap more TERM; echo; while :; do sleep 600 & wait; done"
    with ending(
        subprocess.Popen(["sh", "-c", script], process_group=0, stdout=subprocess.PIPE)
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        assert ended(at_process(process.pid), 5) == "forced"
        assert process.wait(90) == -signal.SIGKILL
        # On a machine that has much else to do it may not have come that far.
        assert not file.exists() or process_state(int(file.read_text()), None) == "gone"


def test_what_has_ended_before_is_told_so() -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        where = at_process(process.pid)
        reused = where.model_copy(update={"pid_start": f"1@{HERE.boot_id}"})
        told = end_agent(reused, here=HERE)
        assert told == AgentEnd("gone_before", f"process {process.pid} had ended before")
        assert process.poll() is None
    assert ended(where) == "gone_before"
    assert end_agent(Whereabouts(host=HERE), here=HERE).how == "nothing_recorded"


def test_the_end_of_a_process_that_was_never_seen_is_not_told() -> None:
    refused(Whereabouts(host=HERE, pid=4000000), "never seen")


def test_nothing_of_a_restarted_machine_is_signalled() -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        now = Host(name="a", machine="m", boot_id="new", pid_namespace="n")
        then = now.model_copy(update={"boot_id": "old"})
        where = at_process(process.pid).model_copy(update={"host": then})
        assert end_agent(where, here=now) == AgentEnd("gone_before", "the machine was restarted")
        assert process.poll() is None


def refused(where: Whereabouts, because: str, **environ: str) -> None:
    with pytest.raises(Refused, match=because) as caught:
        end_agent(where, here=HERE, grace_seconds=SHORT, environ=environ)
    assert caught.value.hint


def test_what_is_not_provably_the_agents_is_refused() -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        where = at_process(process.pid)
        refused(where.model_copy(update={"pid_start": None}), "not provably")
        refused(where.model_copy(update={"host": None}), "not recorded on which host")
        elsewhere = Host(name="build-7", machine="m", boot_id="b", pid_namespace="n")
        refused(where.model_copy(update={"host": elsewhere}), "build-7")
        assert process.poll() is None


AS_NOBODY = """
import os, sys
from guard.core.agents.whereabouts import Whereabouts
from guard.agents.kill import end_agent
from guard.errors import Refused
from guard.system.host import read_host
where = Whereabouts.model_validate_json(sys.argv[1])
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
try:
    end_agent(where, here=read_host())
except Refused as error:
    print(error.message)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_process_of_another_user_is_refused() -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        argv = [sys.executable, "-c", AS_NOBODY, at_process(process.pid).model_dump_json()]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
        said = f"process {process.pid} belongs to another user\n"
        assert (done.stdout, done.stderr) == (said, "")
        assert process.poll() is None


def test_what_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_table, "_signal", lambda *_: None)
    monkeypatch.setattr(process_table, "_DEATH_SECONDS", 0.5)
    with ending(subprocess.Popen(PAUSE)) as process:
        why = rf"guard killed process {process.pid} \(sleep\), but it has not ended within 0.5 s"
        refused(at_process(process.pid), why)


def test_guard_does_not_end_where_it_comes_from() -> None:
    for pid in (1, os.getpid(), os.getppid()):
        refused(Whereabouts(host=HERE, pid=pid, pid_start=start_time(pid)), "guard itself")


IN_PIPELINE = """
import os, sys, time
from guard.agents.kill import end_agent
from guard.system.host import read_host
from guard.agents.liveness import locate
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
where, _ = locate(None, None, os.getpgrp())
print(where.pid != os.getpid(), end_agent(where, here=read_host(), grace_seconds=1).how, flush=True)
"""


def test_a_group_that_guard_is_in_too_is_not_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    agent = shlex.join(stubborn(file, "SIGTERM"))
    guard = shlex.join([sys.executable, "-c", IN_PIPELINE, str(file)])
    argv = ["bash", "-c", f"set -m; {agent} | {guard}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
    assert (done.stdout, done.returncode) == ("True forced\n", 0)


@needs_tmux
def test_a_session_is_closed_and_its_neighbours_stay(server: TmuxServer) -> None:
    server.new("agent-1")
    server.new("agent-1-long")
    where, _ = locate("agent-1", server.socket, None)
    told = end_agent(where, here=HERE, grace_seconds=LONG, environ={})
    assert told == AgentEnd("asked", "tmux session agent-1 ended when asked")
    assert server.find("agent-1") is None
    assert server.find("agent-1-long") is not None
    assert ended(where) == "gone_before"


@needs_tmux
@pytest.mark.parametrize("how", ["", "setsid "], ids=["in the pane", "in a session of its own"])
def test_a_process_in_a_pane_that_ignores_the_hangup_is_forced(
    server: TmuxServer, tmp_path: Path, how: str
) -> None:
    child = shlex.join(stubborn(tmp_path / "child", "SIGHUP", "SIGTERM"))
    server.new("agent-1", "sh", "-c", f"{how}{child} & wait")
    left = written(tmp_path / "child")
    where, _ = locate("agent-1", server.socket, None)
    assert ended(where, SHORT) == "forced"
    assert is_gone(left)
    assert server.find("agent-1") is None


@needs_tmux
def test_a_process_in_a_pane_that_hears_only_the_hangup_ends_when_asked(
    server: TmuxServer, tmp_path: Path
) -> None:
    server.new("agent-1", *stubborn(tmp_path / "pid", "SIGTERM"))
    process = written(tmp_path / "pid")
    where, _ = locate("agent-1", server.socket, None)
    assert ended(where, 20) == "asked"
    assert is_gone(process)


@needs_tmux
def test_a_stopped_process_in_a_pane_ends_too(server: TmuxServer, tmp_path: Path) -> None:
    server.new("agent-1", *stubborn(tmp_path / "pid", "SIGHUP"))
    process = written(tmp_path / "pid")
    os.kill(process[0], signal.SIGSTOP)
    where, _ = locate("agent-1", server.socket, None)
    assert ended(where) == "asked"
    assert is_gone(process)


@needs_tmux
def test_a_process_and_its_session_end_together(server: TmuxServer) -> None:
    server.new("agent-1", "sh", "-c", "sleep 600; exec cat")
    with ending(subprocess.Popen(PAUSE, process_group=0)) as process:
        where, _ = locate("agent-1", server.socket, process.pid)
        told = end_agent(where, here=HERE, grace_seconds=LONG, environ={})
        assert told.detail == f"process {process.pid} and tmux session agent-1 ended when asked"
        assert process.wait(90) == -signal.SIGTERM
    assert server.find("agent-1") is None


@needs_tmux
def test_a_session_whose_only_process_is_the_recorded_one_ends(server: TmuxServer) -> None:
    server.new("agent-1")
    pane = next(iter(server.get("agent-1").panes.values()))
    where, _ = locate("agent-1", server.socket, pane)
    assert ended(where) == "asked"
    assert server.find("agent-1") is None


@needs_tmux
def test_a_session_of_dead_panes_is_cleared_away(server: TmuxServer) -> None:
    server.new("other")
    server.tell("set-option", "-g", "remain-on-exit", "on")
    server.new("agent-1")
    where, _ = locate("agent-1", server.socket, None)
    os.kill(next(iter(server.get("agent-1").panes.values())), signal.SIGKILL)
    until(lambda: server.get("agent-1").all_dead, 90)
    assert ended(where) == "gone_before"
    assert server.find("agent-1") is None


@needs_tmux
def test_a_stranger_that_got_the_number_of_a_dead_pane_is_left_alone(
    server: TmuxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.new("stranger")
    stranger = next(iter(server.get("stranger").panes.values()))
    server.tell("set-option", "-g", "remain-on-exit", "on")
    server.new("agent-1")
    server.tell("split-window", "-d", "-t", "=agent-1:", "--", *PAUSE)
    where, _ = locate("agent-1", server.socket, None)
    pane = next(iter(server.get("agent-1").panes.values()))
    os.kill(pane, signal.SIGKILL)
    until(lambda: server.tell("display-message", "-pt", "=agent-1:.0", "#{pane_dead}") == "1", 90)
    program = tmp_path / "tmux"
    program.write_text(f'#!/bin/sh\n{TMUX} "$@" | sed "s|/{pane}/1/|/{stranger}/1/|"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert ended(where) == "asked"
    assert server.find("agent-1") is None
    assert process_state(stranger, start_time(stranger)) == "runs"


@needs_tmux
def test_a_window_that_is_linked_into_another_session_is_left_alone(server: TmuxServer) -> None:
    server.new("stranger")
    server.new("agent-1")
    where, _ = locate("agent-1", server.socket, None)
    (own,), (others,) = server.get("agent-1").own, server.get("stranger").own
    known = [(pid, start_time(pid)) for pid in (own, others)]
    server.tell("link-window", "-d", "-s", "=stranger:0", "-t", "=agent-1:5")
    assert ended(where) == "asked"
    assert [process_state(*one) for one in known] == ["gone", "runs"]
    assert server.find("agent-1") is None
    assert server.get("stranger").own == [others]


@needs_tmux
def test_a_session_that_was_never_seen_is_refused(server: TmuxServer) -> None:
    where, _ = locate("agent-1", server.socket, None)
    refused(where, "never seen")
    server.new("agent-1")
    with pytest.raises(Refused, match="not provably") as caught:
        end_agent(where, here=HERE, environ={})
    assert "guard agent list" in (caught.value.hint or "")
    assert server.find("agent-1") is not None


@needs_tmux
def test_a_process_ends_whose_session_never_came(server: TmuxServer) -> None:
    with ending(subprocess.Popen(PAUSE, process_group=0)) as process:
        where, _ = locate("agent-1", server.socket, process.pid)
        server.new("agent-1")
        refused(where, "never seen")
        assert process.poll() is None
        server.close("agent-1")
        assert ended(where) == "asked"
        assert process.wait(90) == -signal.SIGTERM


@needs_tmux
def test_a_session_that_has_nothing_of_its_own_is_refused(server: TmuxServer) -> None:
    server.new("agent-1")
    where, _ = locate("agent-1", server.socket, None)
    server.tell("new-session", "-d", "-t", "=agent-1", "-s", "somebody-looks")
    refused(where, "is in another session, too")
    assert server.find("agent-1") is not None


@needs_tmux
def test_a_session_made_anew_is_left_alone(server: TmuxServer) -> None:
    server.new("other")
    server.new("agent-1")
    where, _ = locate("agent-1", server.socket, None)
    server.close("agent-1")
    server.new("agent-1")
    assert ended(where) == "gone_before"
    assert server.find("agent-1") is not None


@needs_tmux
def test_a_renamed_session_is_ended_and_the_one_that_took_its_name_is_not(
    server: TmuxServer,
) -> None:
    server.new("agent-1")
    where, _ = locate("agent-1", server.socket, None)
    server.tell("rename-session", "-t", "=agent-1", "called-otherwise")
    server.new("agent-1")
    assert ended(where) == "asked"
    assert server.find("called-otherwise") is None
    assert server.find("agent-1") is not None


@needs_tmux
def test_a_session_that_is_renamed_meanwhile_is_not_taken_for_closed(
    server: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.new("agent-1", "sh", "-c", "trap '' HUP TERM; sleep 600 & wait; exec sleep 600")
    server.tell("set-option", "-g", "remain-on-exit", "on")
    where, _ = locate("agent-1", server.socket, None)

    def rename_instead(session: tmux.Session) -> None:
        if server.find("agent-1") is not None:
            server.tell("rename-session", "-t", session.session_id, "called-otherwise")

    monkeypatch.setattr(tmux, "close_session", rename_instead)
    monkeypatch.setattr(kill, "_CLOSING_SECONDS", 0.5)
    refused(where, "still exists")


@needs_tmux
def test_a_session_that_cannot_be_asked_for_is_refused_before_anything_is_signalled(
    server: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.new("agent-1")
    with ending(subprocess.Popen(PAUSE)) as process:
        where, _ = locate("agent-1", server.socket, process.pid)
        monkeypatch.setenv("PATH", "/proc/nowhere")
        refused(where, "tmux is not installed")
        monkeypatch.undo()
        pid = server.get("agent-1").server_pid
        os.rename(server.socket, f"{server.socket}-away")
        try:
            refused(where, "not on its socket")
        finally:
            os.rename(f"{server.socket}-away", server.socket)
        assert process.poll() is None
    assert server.get("agent-1").server_pid == pid


@needs_tmux
def test_the_callers_own_session_is_refused(server: TmuxServer, tmp_path: Path) -> None:
    server.new("agent-1")
    where, _ = locate("agent-1", server.socket, None)
    found = server.get("agent-1")
    pane = next(iter(found.panes))
    inside = f"{server.socket},{found.server_pid},0"
    refused(where, "guard itself", TMUX=inside, TMUX_PANE=pane)
    assert server.find("agent-1") is not None
    code = f"""
from guard.agents.kill import end_agent
from guard.errors import Refused
from guard.system.host import read_host
from guard.agents.liveness import locate
where, _ = locate("own", {server.socket!r}, None)
try:
    end_agent(where, here=read_host(), environ={{}})
except Refused as error:
    open({str(tmp_path / "said")!r}, "w").write(error.message)
import time; time.sleep(600)
"""
    server.new("own", sys.executable, "-c", code)
    said = tmp_path / "said"
    until(lambda: said.exists() and said.read_text() != "", 90)
    assert said.read_text() == "guard itself was started from tmux session own"
    assert server.find("own") is not None
    assert ended(where) == "asked"
