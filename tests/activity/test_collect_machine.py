"""Signs from the machine, with real processes, a real tmux server and real transcripts."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from guard.activity import collect_machine
from guard.activity.subject import AgentSubject, Collect
from guard.core.activity.assess import Signal
from guard.core.activity.state import SentResume, WatchedAgent
from guard.system.host import read_host
from guard.system.process_identity import start_time
from tests.activity.conftest import Look, agent
from tests.support import write
from tests.support.sessions import until
from tests.support.tmux_server import TmuxServer, needs_tmux, tmux_server

BUSY = "print('up', flush=True)\nwhile True: pass"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
IDLE = "import time; print('up', flush=True); time.sleep(600)"

WAKES = """
import time
print('up', flush=True)
while True:
    begun = time.process_time()
    while time.process_time() < begun + 0.002:
        pass
    time.sleep(0.1)
"""
"""An event loop that only wakes up uses some CPU time, and does nothing."""


def details(collect: Collect, subject: AgentSubject) -> list[str]:
    return [one.detail for one in collect(subject) if isinstance(one, Signal)]


@contextmanager
def running(code: str) -> Iterator[int]:
    argv = [sys.executable, "-c", code]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
    finally:
        os.killpg(process.pid, 9)
        process.communicate()


@pytest.mark.parametrize(("code", "works"), [(BUSY, True), (PARENT, True), (IDLE, False)])
def test_a_process_works_while_it_or_its_children_use_the_processor(
    subject: Look, code: str, works: bool
) -> None:
    with running(code) as pid:
        placed = agent(host=read_host(), pid=pid, pid_start=start_time(pid))
        if works:
            until(lambda: details(collect_machine.processes, subject(agent=placed)) != [])
        else:
            # Its start may still be under way at the first look.
            until(lambda: details(collect_machine.processes, subject(agent=placed)) == [])


def test_a_process_that_only_wakes_up_shows_no_sign(subject: Look) -> None:
    with running(WAKES) as pid:
        placed = agent(host=read_host(), pid=pid, pid_start=start_time(pid))
        until(lambda: details(collect_machine.processes, subject(agent=placed)) == [])
        looks = [details(collect_machine.processes, subject(agent=placed)) for _ in range(5)]
    assert looks == [[]] * 5


def test_another_process_of_the_same_number_is_not_it(subject: Look) -> None:
    with running(BUSY) as pid:
        placed = agent(host=read_host(), pid=pid, pid_start="1@another")
        assert details(collect_machine.processes, subject(agent=placed)) == []


@needs_tmux
def test_output_in_a_tmux_session_is_a_sign(subject: Look) -> None:
    with tmux_server() as server:
        _write_in(server, "a1")
        place = {"tmux_session": "a1", "tmux_socket": server.socket}
        identity = server.get("a1").identity
        placed = agent(host=read_host(), tmux_identity=identity, **place)
        assert details(collect_machine.terminal, subject(agent=placed)) == ["session a1"]
        elsewhere = agent(host=None, tmux_identity=identity, tmux_session=None, tmux_socket=None)
        assert details(collect_machine.terminal, subject(agent=elsewhere)) == []


@needs_tmux
@pytest.mark.parametrize(("seconds", "counts"), [(1, False), (600, True)])
def test_the_echo_of_a_prompt_in_a_terminal_is_no_sign(
    subject: Look, seconds: float, counts: bool
) -> None:
    with tmux_server() as server:
        _write_in(server, "a1")
        identity = server.get("a1").identity
        place = {"tmux_session": "a1", "tmux_socket": server.socket, "tmux_identity": identity}
        sent = SentResume(
            at=datetime.now(UTC) - timedelta(seconds=seconds),
            incarnation=1,
            way="tmux",
            stall="0" * 64,
            last_activity=None,
            lookback_minutes=60,
        )
        watched = cast(Any, WatchedAgent).model_construct(resumes=(sent,))
        looked = subject(agent=agent(host=read_host(), **place), watched=watched)
        assert bool(details(collect_machine.terminal, looked)) is counts


def _write_in(server: TmuxServer, name: str) -> None:
    server.new(name, "sh", "-c", "echo hello; exec sleep 600")
    until(lambda: "hello" in server.tell("capture-pane", "-p", "-t", f"={name}:"))


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("claude", ".claude/projects/-home-me/{session}.jsonl"),
        ("claude", ".claude/projects/-home-me/{session}/subagents/agent-1.jsonl"),
        ("codex", ".codex/sessions/2026/01/31/rollout-2026-01-31T12-00-00-{session}.jsonl"),
        ("gemini", ".gemini/tmp/project/chats/session-2026-01-31T12-00-{short}.jsonl"),
        ("qwen", ".qwen/projects/-home-me/chats/{session}.jsonl"),
        ("copilot", ".copilot/session-state/{session}/events.jsonl"),
    ],
)
def test_a_transcript_that_grew_is_a_sign(home: Path, subject: Look, kind: str, path: str) -> None:
    session = "0b66888f-6ea6-497a-bbf7-1148f76ef540"
    file = write(home / path.format(session=session, short=session[:8]), "{}\n")
    looked = subject(session=(kind, session), environ={"HOME": str(home)})
    assert details(collect_machine.transcript, looked) == [file.name]
    other = subject(session=(kind, "1" * 36), environ={"HOME": str(home)})
    assert details(collect_machine.transcript, other) == []
    os.utime(file, (time.time() - 86400, time.time() - 86400))
    assert details(collect_machine.transcript, looked) == []


def test_transcripts_are_found_where_a_variable_says(tmp_path: Path, subject: Look) -> None:
    session = "0b66888f-6ea6-497a-bbf7-1148f76ef540"
    for kind, variable, path in (
        ("claude", "CLAUDE_CONFIG_DIR", f"projects/p/{session}.jsonl"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/tmp/p/chats/session-1-0b66888f.jsonl"),
    ):
        file = write(tmp_path / kind / path, "{}\n")
        environ = {"HOME": "/proc/nowhere", variable: str(tmp_path / kind)}
        looked = subject(session=(kind, session), environ=environ)
        assert details(collect_machine.transcript, looked) == [file.name]


@pytest.mark.parametrize("session", ["../../etc", "*", "", "x" * 200])
def test_a_session_that_is_no_id_is_not_looked_for(subject: Look, session: str) -> None:
    assert details(collect_machine.transcript, subject(session=("claude", session))) == []
