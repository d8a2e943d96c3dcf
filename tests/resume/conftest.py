"""Agents that have fallen silent: registered, in real terminals, with a clock that the test sets."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from guard.agents.update import PlaceOptions, spawn_agent
from guard.context.invocation import Invocation
from guard.core.resume.report import ResumeReport
from guard.resume.send import ResumeRequest, resume
from guard.system.clock import Clock
from tests.support import ROOT, commit
from tests.support.sessions import until
from tests.support.tmux_server import TmuxServer, tmux_server

LONG_AGO = datetime(2026, 1, 31, 12, tzinfo=UTC)


@dataclass
class Watcher:
    """A guard at a time that the test sets, and the agents that it knows."""

    root: Path
    workspace: Path
    now: datetime

    def guard(self, **environ: str) -> Invocation:
        return Invocation(
            repo=self.root,
            workspace_option=str(self.workspace),
            clock=Clock(self.now),
            environ={**os.environ, **environ},
        )

    def spawn(self, agent_id: str = "a1", **fields: Any) -> None:
        names = ("tmux_session", "tmux_socket", "pid")
        place = PlaceOptions(**{name: fields.pop(name) for name in names if name in fields})
        told = {"task_id": "T1", "agent_type": "builder", **fields}
        spawn_agent(self.guard(), agent_id=agent_id, place=place, **told)

    def later(self, **passed: float) -> "Watcher":
        return replace(self, now=self.now + timedelta(**passed))

    def send(
        self, agent_id: str = "a1", environ: dict[str, str] | None = None, **wish: Any
    ) -> ResumeReport:
        return resume(
            self.guard(**(environ or {})), agent_id, ResumeRequest(**{"send": True, **wish})
        )


@pytest.fixture
def watcher(repository: Path, workspace: Path) -> Watcher:
    commit(repository, "first.txt")
    return Watcher(repository, workspace, LONG_AGO)


@pytest.fixture
def inbox(repository: Path) -> Path:
    folder = repository / "agent_workspaces/a1/inbox"
    folder.mkdir(parents=True)
    return folder


@dataclass(frozen=True)
class Terminal:
    """A program in a pane, and what it has read."""

    server: TmuxServer
    session: str
    file: Path
    pid: int

    def got(self) -> bytes:
        return self.file.read_bytes()

    def screen(self) -> str:
        return self.server.tell("capture-pane", "-p", "-t", f"={self.session}:")


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Programs that record what they read, each in a session; with a shell around them if that is wished."""
    with tmux_server() as server:

        def open_one(
            session: str = "s1", *, in_shell: bool = False, seconds: float = 300
        ) -> Terminal:
            file = tmp_path / f"{session}.got"
            program = [
                sys.executable,
                "-m",
                "tests.support.terminal_program",
                str(file),
                str(seconds),
            ]
            command = ["env", f"PYTHONPATH={ROOT}", *program]
            if in_shell:
                server.new(session, "env", "PS1=$ ", "HISTFILE=", "bash", "--norc", "-i")
                server.tell("send-keys", "-t", f"={session}:", shlex.join(command), "Enter")
            else:
                server.new(session, *command)
            ready = Path(f"{file}.ready")
            until(lambda: ready.exists() and bool(ready.read_text()), 90)
            return Terminal(server, session, file, int(ready.read_text()))

        yield open_one
