"""Start an agent CLI again with its recorded session and a prompt; never with "the latest" session.

It runs detached under `guard run`, so it is registered, watched, judged and stopped by the breaker like every other
iteration. The CLI has the rights that the user's own settings give it, and no more.
"""

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from guard.context.invocation import RUN_REPO, RUN_WORKSPACE, Invocation
from guard.core.agents.agent import Agent
from guard.core.hooks.event_kinds import PROBE
from guard.core.iteration.run import RUN
from guard.probe.base import UUID
from guard.probe.environment import probe_environment
from guard.system.processes import start
from guard.system.programs import own_python, search_program
from guard.system.signals import defer_signals

_OWN = frozenset(
    (
        *(PROBE, RUN_REPO, RUN_WORKSPACE, "GUARD_ITERATION"),
        *("GUARD_TASK_ID", "GUARD_AGENT_ID", "GUARD_AGENT_INCARNATION"),
    )
)
_started: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class ResumableCli:
    """How one agent CLI is called to resume a session."""

    words: Callable[[str, str], list[str]]
    """The arguments after its name, from the session's id and the prompt."""
    sessions: re.Pattern[str] = UUID
    by_stdin: bool = False


CLIS: dict[str, ResumableCli] = {
    "claude": ResumableCli(lambda session, text: ["-p", text, "--resume", session]),
    "codex": ResumableCli(lambda session, text: ["exec", "resume", session, "--json", text]),
    "qwen": ResumableCli(lambda session, text: ["-p", text, "-r", session]),
    "copilot": ResumableCli(lambda session, text: ["-p", text, f"--resume={session}"]),
    "opencode": ResumableCli(
        lambda session, _text: ["run", "--format", "json", "-s", session],
        re.compile(r"ses_[A-Za-z0-9]{1,64}"),
        by_stdin=True,
    ),
}
# Gemini CLI is not among them: resuming by id can make it delete the session.


class NoSession(Exception):
    """The agent's session cannot be resumed; the message says why."""


def find_session(guard: Invocation, agent: Agent) -> tuple[str, str]:
    """The CLI that the agent runs and the id of its session; NoSession if none is recorded, or it cannot be resumed."""
    for name, session in _recorded_sessions(guard, agent):
        if name not in CLIS:
            raise NoSession(f"a session of {name} cannot be resumed by its id")
        if not CLIS[name].sessions.fullmatch(session):
            raise NoSession(f"{session[:80]!r} is no session id of {name}")
        return name, session
    raise NoSession("no session of it is recorded")


def _recorded_sessions(guard: Invocation, agent: Agent) -> Iterator[tuple[str, str]]:
    """The sessions of the agent's own run, or of the iteration that has its process."""
    for run in guard.store.views(RUN).values():
        opened, ended = run.open_iteration, run.last_iteration
        process = opened.process if opened is not None else None
        same = process is not None and (process.pid, process.start) == (agent.pid, agent.pid_start)
        for iteration in (opened, ended) if run.run == agent.run else (opened,) if same else ():
            if iteration is not None and iteration.agent and iteration.session:
                yield iteration.agent, iteration.session


def start_session(
    guard: Invocation, agent: Agent, root: Path, known: tuple[str, str], text: str
) -> None:
    """Start the CLI without waiting for it; NoSession if it is not installed, OSError if it cannot be started."""
    name, session = known
    cli = CLIS[name]
    environ = probe_environment(guard.environ, root)
    search = search_program(name, guard.environ)
    if search.program is None:
        raise NoSession(search.problem if search.refused else f"there is no program {name}")
    argv = own_python("-m", "guard", "-q", "--repo", str(root))
    argv += ["--workspace", guard.workspace.name, "run", "--agent", name, "--session", session]
    argv += ["--task", agent.task_id, "--agent-id", agent.agent_id]
    argv += ["--", search.program, *cli.words(session, text)]
    _start_detached(argv, root, environ, text.encode() if cli.by_stdin else b"")


def _start_detached(argv: list[str], root: Path, environ: Mapping[str, str], stdin: bytes) -> None:
    kept = {name: value for name, value in environ.items() if name not in _OWN}
    with tempfile.TemporaryFile() as given, defer_signals():
        given.write(stdin)
        given.seek(0)
        process = start(
            argv,
            kept,
            root,
            stdin=given.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    # A process that goes on, as the monitor does, has to reap the children that have ended.
    _started[:] = [child for child in _started if child.poll() is None] + [process]
