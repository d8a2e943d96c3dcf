"""`guard status --watch`: what is shown again when something changes, on a terminal and in a pipe."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from guard import spawn_agent, update_agent_progress
from guard.activity.live_table import Screen
from guard.activity.watch import watch_status
from guard.context.invocation import Invocation
from guard.core.activity.status_report import StatusReport
from guard.system.file_events import News
from tests.support import commit, run, write
from tests.support.sessions import ending, started, until

EVIL = "[bold red]pwned[/] :smile: \x1b[2J\x1b]0;title\x07\u202ed\r"
LONG = 90
OTHER_SCREEN, OWN_SCREEN, SHOWN_CURSOR = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"
_DRAWING = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture(autouse=True)
def chosen(repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    commit(repository, "first.txt")
    spawn_agent("T1", "a1")


@contextmanager
def piped(*words: str) -> Iterator["subprocess.Popen[str]"]:
    with ending(started("status", "--watch", *words, listen=True)) as process:
        yield process


def block(process: "subprocess.Popen[str]") -> str:
    """The next block that is printed, up to its empty line."""
    assert process.stdout
    lines = []
    while (line := process.stdout.readline()).strip():
        lines.append(line)
    return "".join(lines)


def document(process: "subprocess.Popen[str]") -> dict[str, object]:
    assert process.stdout
    found = json.loads(process.stdout.readline())
    assert isinstance(found, dict)
    return {one["agent_id"]: one for one in found["agents"]}


class Terminal:
    """A real terminal, with guard on it."""

    def __init__(self, *words: str, env: dict[str, str] | None = None) -> None:
        self.ours, theirs = pty.openpty()
        self.resize(24, 200, tell=False)
        self.before = termios.tcgetattr(theirs)
        argv = [sys.executable, "-m", "guard", "status", "--watch", *words]
        told = {**os.environ, "TERM": "xterm-256color", **(env or {})}
        self.process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=told)
        self._theirs = theirs
        self.seen = b""

    def until(self, text: bytes) -> bytes:
        """All that was drawn until this is there; what follows is for the next call."""
        deadline = time.monotonic() + LONG
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.ours], [], [], 1)[0]:
                self.seen += os.read(self.ours, 65536)
        found, text, self.seen = self.seen.partition(text)
        return found + text

    def resize(self, lines: int, columns: int, *, tell: bool = True) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if tell:  # It is no session's own terminal, so that nobody else does.
            self.process.send_signal(signal.SIGWINCH)

    def restored(self) -> bool:
        return termios.tcgetattr(self._theirs) == self.before

    def close(self) -> None:
        os.close(self.ours)
        os.close(self._theirs)


@contextmanager
def terminal(*words: str, env: dict[str, str] | None = None) -> Iterator[Terminal]:
    found = Terminal(*words, env=env)
    with ending(found.process):
        yield found
    found.close()


def test_a_pipe_gets_a_block_for_each_change() -> None:
    with piped() as process:
        first = block(process)
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n1 active", first)
        update_agent_progress("T1", "a1", "working", "Wrote the parser.")
        second = block(process)
        assert "Wrote the parser." in second
        assert "\x1b" not in first + second
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=LONG)
        assert (out, err.strip()) == ("", "guard: interrupted")
        assert process.returncode == 130


def test_json_is_one_document_in_a_line() -> None:
    with piped("--format", "json", "--no-activity-check") as process:
        assert set(document(process)) == {"a1"}
        spawn_agent("T1", "a2", message="x\x9b31m\n")
        assert set(document(process)) == {"a1", "a2"}
        update_agent_progress("T1", "a2", "failed", "Gave up.")
        assert document(process)["a2"]["status"] == "failed"  # type: ignore[index]


def test_a_status_file_is_a_change(repository: Path) -> None:
    status = write(repository / "agent_workspaces/a1/status.json", "{}")
    with piped("--format", "json") as process:
        assert document(process)["a1"]["is_active"] in (True, False)  # type: ignore[index]
        while True:
            write(status, json.dumps({"current_task": "Write the login form"}))
            if "STATUS_UPDATE" in document(process)["a1"]["sources"]:  # type: ignore[index]
                break


def test_a_reader_that_has_gone_ends_it() -> None:
    with piped() as process:
        block(process)
        assert process.stdout
        process.stdout.close()
        update_agent_progress("T1", "a1", "working", "Wrote the parser.")
        assert process.wait(LONG) == 0


def test_a_workspace_that_disappears_is_said(workspace: Path) -> None:
    with piped() as process:
        assert "a1" in block(process)
        moved = workspace.rename(workspace.with_name("moved"))
        assert process.stderr
        assert process.stderr.readline() == f"guard: warning: the workspace {workspace} is gone\n"
        assert "the last known state is shown" in process.stderr.readline()
        moved.rename(workspace)
        assert run("agent", "spawn", "--task", "T1", "--agent", "a2").code == 0
        assert "a2" in block(process)
        assert process.poll() is None


def test_a_log_that_becomes_unreadable_is_said_and_the_last_state_stays(workspace: Path) -> None:
    log, kept = workspace / "events.jsonl", workspace.parent / "kept.jsonl"
    with piped() as process:
        assert "a1" in block(process)
        shutil.copy(log, kept)
        write(log, "garbage\n" * 100)
        assert process.stderr
        assert "the last known state is shown" in process.stderr.readline()
        shutil.move(kept, log)
        update_agent_progress("T1", "a1", "working", "Wrote the parser.")
        assert "Wrote the parser." in block(process)


def test_what_fails_at_once_is_an_error(workspace: Path) -> None:
    write(workspace / "events.jsonl", "garbage\n" * 100)
    assert run("status", "--watch").code == 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_terminal_is_drawn_on_and_given_back(number: int) -> None:
    with terminal() as screen:
        screen.until(OTHER_SCREEN)
        screen.until(b"a1")
        update_agent_progress("T1", "a1", "working", "Wrote the parser.")
        screen.until(b"Wrote the parser.")
        screen.process.send_signal(number)
        last = screen.until(b"guard: interrupted")
        assert screen.process.wait(LONG) == 130
        assert OWN_SCREEN in last
        assert SHOWN_CURSOR in last
        assert screen.restored()


def test_text_of_agents_neither_drives_the_terminal_nor_is_markup() -> None:
    spawn_agent("T1", "a2", message=EVIL)
    with terminal(env={"NO_COLOR": "1"}) as screen:
        seen = screen.until(b"[bold red]pwned[/] :smile: \\x1b[2J\\x1b]0;t")
        assert b"\x1b]" not in seen
        assert b"\x1b[2J" not in seen.partition(b"a2")[2]


def test_another_size_is_drawn_at_once() -> None:
    for number in range(2, 9):
        spawn_agent("T1", f"a{number}")
    with terminal("--no-activity-check") as screen:
        screen.until(b"a8")
        screen.resize(8, 100)
        screen.until(b"and 5 agents more; `guard status` lists all")
        screen.resize(60, 100)
        drawn = screen.until(b"a8")
        assert b"agents more" not in _DRAWING.sub(b"", drawn)


def test_another_size_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    screen, begun = Screen(), time.monotonic()

    def resize() -> None:
        monkeypatch.setenv("COLUMNS", "50")
        os.kill(os.getpid(), signal.SIGWINCH)

    timer = threading.Timer(0.3, resize)
    timer.start()
    with News([tmp_path / "never"]) as news:
        screen.wait(news, LONG)
    timer.join()
    assert time.monotonic() - begun < LONG


def test_a_dumb_terminal_gets_plain_blocks() -> None:
    with terminal(env={"TERM": "dumb"}) as screen:
        assert b"\x1b" not in screen.until(b"a1")


class _OneLook:
    """A display that ends the watch at its first wait."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def show(self, report: StatusReport, troubles: Sequence[str]) -> None:
        pass

    def wait(self, news: News, seconds: float) -> None:  # noqa: ARG002
        self.seconds = seconds
        raise KeyboardInterrupt


def test_the_last_sign_of_life_of_a_run_is_a_recent_one(tmp_path: Path) -> None:
    def pause() -> float:
        display = _OneLook()
        with pytest.raises(KeyboardInterrupt):
            watch_status(Invocation(), display, activity=False)
        return display.seconds

    idle = pause()
    agent = f"touch {tmp_path}/up; until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    with started("run", "--no-probe", "--", "timeout", "300", "sh", "-c", agent):
        until((tmp_path / "up").exists)
        assert pause() < idle / 3
        (tmp_path / "go").touch()
