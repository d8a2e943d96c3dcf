"""Real tmux: sessions told apart by their whole names, by their server and by their start, and answers that tell nothing."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest

from guard.errors import WrongUsage
from guard.system import tmux
from tests.support import TIME_LIMIT, write
from tests.support.sessions import until
from tests.support.tmux_server import TMUX, TmuxServer, needs_tmux

pytestmark = needs_tmux
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.mark.parametrize(
    ("there", "asked"), [("agent-1", "agent-1-long"), ("agent-1-long", "agent-1")]
)
def test_a_name_is_not_taken_for_a_longer_or_shorter_one(
    server: TmuxServer, there: str, asked: str
) -> None:
    server.new(there)
    assert server.find(there) is not None
    assert server.find(asked) is None


@pytest.mark.parametrize(
    "name",
    ["-x", "=q", "@5", "m*n", "a/b/c", "two words", "ümläut-名", "c#5", "f%H", "it's", " lead"],
)
def test_odd_names_are_found_as_they_are(server: TmuxServer, name: str) -> None:
    tmux.check_name(name)
    server.new(name)
    assert server.get(name).name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a:b",
        "a.b",
        "a\nb",
        "a\tb",
        "a\\b",
        "a$HOME",
        "a#S",
        "a#{pid}",
        "a##",
        "a\ud800",
        "x" * 300,
    ],
)
def test_a_name_that_tmux_would_change_is_refused(name: str) -> None:
    with pytest.raises(WrongUsage, match="no tmux session can be called"):
        tmux.check_name(name)


@pytest.mark.parametrize("path", ["/tmp/a\nb", "/tmp/" + "x" * 150])
def test_a_path_that_no_socket_has_is_refused(path: str) -> None:
    with pytest.raises(WrongUsage, match="no tmux socket can have the path"):
        tmux.check_socket(path)


@pytest.mark.parametrize("name", ["a:b", "a.b", "a\nb", "a\\b", "a$HOME", "a#S", "a#{pid}", "a##"])
def test_tmux_really_changes_those_names(server: TmuxServer, name: str) -> None:
    server.new(name)
    assert server.find(name) is None


def test_a_session_tells_its_panes_and_who_they_are(server: TmuxServer) -> None:
    server.new("a")
    server.tell("split-window", "-d", "-t", "=a:", "--", "sleep", "600")
    found = server.get("a")
    told = server.tell("list-panes", "-s", "-t", "=a:", "-F", "#{pane_id} #{pane_pid}").splitlines()
    assert {pane: str(pid) for pane, pid in found.panes.items()} == dict(
        line.split() for line in told
    )
    assert len(found.panes) == 2
    assert str(found.server_pid) == server.tell("display-message", "-p", "#{pid}")


def test_the_panes_of_a_linked_window_are_those_of_nobody_alone(server: TmuxServer) -> None:
    server.new("a")
    server.new("b")
    alone, shown = server.get("a").own, server.get("b").own
    server.tell("link-window", "-d", "-s", "=b:0", "-t", "=a:5")
    found = server.get("a")
    assert list(found.panes.values()) == [*alone, *shown]
    assert (found.own, server.get("b").own) == (alone, [])


def test_a_session_made_anew_is_another_one(server: TmuxServer) -> None:
    server.new("keeps-the-server")
    server.new("a")
    first = server.get("a")
    assert tmux.is_same_session(first.identity, server.get("a").identity)
    server.close("a")
    server.new("a")
    assert not tmux.is_same_session(first.identity, server.get("a").identity)


def test_a_session_of_a_server_that_was_started_anew_is_another_one(server: TmuxServer) -> None:
    server.new("a")
    first = server.get("a")
    server.end()
    server.new("a")
    second = server.get("a")
    assert second.session_id == first.session_id
    assert not tmux.is_same_session(first.identity, second.identity)


def test_no_server_no_socket_and_no_sessions_are_clear_answers(server: TmuxServer) -> None:
    assert tmux.find_session("a", server.socket) is None
    server.new("a")
    server.tell("set-option", "-g", "exit-empty", "off")
    pid = server.get("a").server_pid
    assert tmux.read_server(server.socket).pid == pid
    server.close("a")
    assert tmux.read_server(server.socket) == tmux.Server(answered=True, sessions={}, pid=pid)
    server.end()
    assert Path(server.socket).exists()
    assert tmux.read_server(server.socket) == tmux.Server(answered=False, sessions={})


def test_dead_panes_are_told_from_living_ones(server: TmuxServer) -> None:
    server.new("a", "cat")
    server.tell("set-option", "-g", "remain-on-exit", "on")
    server.tell("split-window", "-d", "-t", "=a:", "--", "sleep", "600")
    assert not server.get("a").all_dead
    pids = list(server.get("a").panes.values())
    os.kill(pids[0], 9)
    until(lambda: "1" in server.tell("list-panes", "-s", "-t", "=a:", "-F", "#{pane_dead}"), 90)
    assert not server.get("a").all_dead
    assert list(server.get("a").panes.values()) == pids[1:]
    os.kill(pids[1], 9)
    until(lambda: server.get("a").all_dead, 90)


def test_without_tmux_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/proc/nowhere")
    with pytest.raises(tmux.TmuxUnknown, match="not installed"):
        tmux.find_session("a", "/tmp/none/s")


def test_a_server_that_does_not_answer_is_unknown(
    server: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.new("a")
    pid = server.get("a").server_pid
    monkeypatch.setattr(tmux, "_SECONDS", 0.5)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(tmux.TmuxUnknown, match="did not answer"):
            tmux.find_session("a", server.socket)
    finally:
        os.kill(pid, signal.SIGCONT)


HOSTILE_SERVER = """
import os, socket, struct, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(5)
print("up", flush=True)
program = os.fsencode(sys.argv[2]) + b"\\0"
while True:
    client, _ = server.accept()
    with client:
        # A message of tmux's own protocol to each who asks: run this shell.
        if client.recv(65536):
            client.sendall(struct.pack("=IHHII", 209, 16 + len(program), 0, 8, 0) + program)
            client.recv(65536)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell who listens")
def test_a_program_that_only_speaks_like_a_server_is_not_asked(
    server: TmuxServer, tmp_path: Path
) -> None:
    """It could make any tmux that asks it run a program, as the control shows."""
    ran = tmp_path / "ran"
    program = write(tmp_path / "program", f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    words = [sys.executable, "-c", HOSTILE_SERVER, server.socket, str(program)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as hostile:
        try:
            assert hostile.stdout is not None
            assert hostile.stdout.readline() == b"up\n"
            with pytest.raises(tmux.TmuxUnknown, match=r"not tmux but .* guard does not ask it"):
                tmux.read_server(server.socket)
            assert not ran.exists()
            control = [TMUX, "-S", server.socket, "list-panes", "-a"]
            subprocess.run(control, timeout=TIME_LIMIT, check=False, capture_output=True)
            assert ran.exists(), "the control shows nothing"
        finally:
            hostile.kill()


ORPHANED_SOCKET = """
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(5)
if os.fork():
    os._exit(0)
print("up", flush=True)
sys.stdin.read()
"""
"""The process that listens ends at once; its socket stays open until the standard input ends."""


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell who listens")
@pytest.mark.parametrize("ends", [True, False], ids=["ends", "stays"])
def test_a_server_that_is_just_ending_is_asked_until_its_socket_is_dead(
    server: TmuxServer, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    words = [sys.executable, "-c", ORPHANED_SOCKET, server.socket]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as orphan:
        assert orphan.stdin is not None
        assert orphan.stdout is not None
        assert orphan.stdout.readline() == b"up\n"
        assert orphan.wait(TIME_LIMIT) == 0
        if ends:
            Timer(0.3, orphan.stdin.close).start()
            assert not tmux.read_server(server.socket).answered
        else:
            monkeypatch.setattr(tmux, "_SECONDS", 0.5)
            with pytest.raises(tmux.TmuxUnknown, match="cannot tell which program listens"):
                tmux.read_server(server.socket)


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell who listens")
def test_a_server_that_runs_from_the_repository_is_not_asked(
    server: TmuxServer, repository: Path
) -> None:
    planted = repository / "bin" / "tmux"
    planted.parent.mkdir()
    shutil.copy2(TMUX, planted)
    words = [str(planted), "-f", "/dev/null", "-S", server.socket]
    subprocess.run([*words, "new-session", "-d", "sleep", "600"], check=True, timeout=TIME_LIMIT)
    try:
        with pytest.raises(tmux.TmuxUnknown, match="is inside the repository"):
            tmux.read_server(server.socket)
    finally:
        subprocess.run([*words, "kill-server"], check=True, timeout=TIME_LIMIT)


def test_a_path_that_is_too_long_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(tmux.TmuxUnknown, match="too long"):
        tmux.find_session("a", str(tmp_path / ("x" * 150)))


@pytest.mark.parametrize(
    "answer",
    [
        "nonsense",
        "1/2/3",
        "1/2/x/4/%0/6/0/a",
        f"{'9' * 5000}/2/$3/4/%0/6/0/a",
        f"1/2/$3/4/%0/{'9' * 5000}/0/a",
    ],
)
def test_an_answer_of_another_kind_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    program = tmp_path / "bin" / "tmux"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with pytest.raises(tmux.TmuxUnknown, match="does not understand"):
        tmux.find_session("a", "/tmp/none/s")


def asked_by_nobody(server: TmuxServer) -> str:
    """What another user is told of session `a`."""
    code = f"""
import os
from guard.system import tmux
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
try:
    print(tmux.find_session("a", {server.socket!r}))
except tmux.TmuxUnknown as unknown:
    print("unknown:", unknown)
"""
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=True)
    return done.stdout.strip()


@AS_ROOT
def test_a_socket_without_permission_is_unknown(server: TmuxServer) -> None:
    server.new("a")
    assert asked_by_nobody(server).startswith("unknown: tmux failed: error connecting")
    os.chmod(server.socket, 0o777)
    assert asked_by_nobody(server) == "unknown: tmux failed: access not allowed"


def test_closing_ends_only_the_session_that_is_meant(server: TmuxServer) -> None:
    for name in ("a", "a-b", "c"):
        server.new(name)
    tmux.close_session(server.get("a"))
    until(lambda: server.find("a") is None, 90)
    assert server.find("a-b") is not None
    assert server.find("c") is not None


def test_a_later_server_does_not_close_a_session_for_an_earlier_one(server: TmuxServer) -> None:
    server.new("a")
    first = server.get("a")
    tmux.close_session(first)
    server.end()
    tmux.close_session(first)
    server.new("a")
    assert server.get("a").session_id == first.session_id
    tmux.close_session(first)
    assert server.find("a") is not None


def test_the_path_of_a_socket_follows_the_rules_of_tmux(tmp_path: Path) -> None:
    uid = os.getuid()
    assert tmux.socket_path("/a/b", {}) == "/a/b"
    assert tmux.socket_path("x", {"TMUX": "/t/s,1,0"}) == f"/tmp/tmux-{uid}/x"
    assert tmux.socket_path(None, {"TMUX": "/t/s,1,0"}) == "/t/s"
    assert tmux.socket_path(None, {}) == f"/tmp/tmux-{uid}/default"
    environ = {"TMUX_TMPDIR": str(tmp_path)}
    assert tmux.socket_path("x", environ) == f"{tmp_path}/tmux-{uid}/x"
    environ = {"TMUX_TMPDIR": str(tmp_path / "missing")}
    assert tmux.socket_path("x", environ) == f"/tmp/tmux-{uid}/x"


def test_a_server_by_its_name_is_the_one_that_tmux_means(
    server: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX_TMPDIR", str(Path(server.socket).parent))
    server.socket = tmux.socket_path("own")
    argv = ["tmux", "-f", "/dev/null", "-L", "own", "new-session", "-d", "-s", "a", "sleep", "600"]
    subprocess.run(argv, check=True, timeout=90)
    try:
        assert tmux.find_session("a", "own") is not None
    finally:
        server.end()
