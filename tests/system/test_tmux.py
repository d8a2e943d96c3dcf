"""Real tmux: sessions told apart by their whole names, by their server and by their start, and answers that tell nothing."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from guard.errors import WrongUsage
from guard.system import tmux
from tests.support.sessions import until
from tests.support.tmux_server import TmuxServer, needs_tmux

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
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(tmux.TmuxUnknown, match="not installed"):
        tmux.find_session("a", "/tmp/none/s")


def test_a_server_that_does_not_answer_is_unknown(
    server: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tmux, "_SECONDS", 0.5)
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(server.socket)
        mute.listen(1)
        with pytest.raises(tmux.TmuxUnknown, match="did not answer"):
            tmux.find_session("a", server.socket)


def test_a_path_that_is_too_long_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(tmux.TmuxUnknown, match="too long"):
        tmux.find_session("a", str(tmp_path / ("x" * 150)))


@pytest.mark.parametrize("answer", ["nonsense", "1/2/3", "1/2/x/4/%0/6/0/a"])
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
