"""Collect signs of an agent from this machine: busy processes, output in its terminal, a growing transcript."""

import os
import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

from guard.activity.subject import AgentSubject, Figures, Sign
from guard.core.activity.noise import PROMPT_ECHO
from guard.core.agents.whereabouts import Whereabouts
from guard.install.agents import AGENT_CLIS
from guard.system import tmux
from guard.system.foreign_files import BoundedWalk
from guard.system.host import compare_hosts, read_host
from guard.system.process_identity import start_time
from guard.system.process_work import LEAST_OWN_BYTES, has_worked

_MOST_ENTRIES, _MOST_DEPTH = 50_000, 5
_SESSION = re.compile(r"[A-Za-z0-9_-]{8,128}")
_TRANSCRIPTS = {
    "claude": "projects",
    "codex": "sessions",
    "gemini": "tmp",
    "qwen": "projects",
    "copilot": "session-state",
}
"""Where each agent CLI keeps its transcripts, below its own folder."""


def processes(subject: AgentSubject) -> Iterator[Sign]:
    """Yield a sign if a process of the agent, or a descendant, worked between two looks and did not only wake up."""
    roots = _roots(subject.agent.whereabouts)
    if not roots:
        return
    before, after, seconds = subject.shared.processes()
    for pid in _family(roots, after):
        now, earlier = after[pid], before.get(pid)
        least = LEAST_OWN_BYTES if pid in roots else 1
        if earlier is None or has_worked(earlier.counts, now.counts, seconds, least):
            yield subject.signal(
                "PROCESS_PROGRESS", subject.now_seconds, f"{now.name} (pid {pid}) at work"
            )
            return


def _roots(place: Whereabouts) -> dict[int, str]:
    # Not the guard that watches over the agent: it is never idle.
    nowhere = place.pid is None and place.tmux_session is None
    if nowhere or compare_hosts(place.host, read_host()) != "here":
        return {}
    found = {place.pid: place.pid_start} if place.pid and place.pid_start else {}
    session = _session(place)
    for pid in session.own if session is not None else ():
        found[pid] = start_time(pid) or ""
    return found


def _session(place: Whereabouts) -> tmux.Session | None:
    if place.tmux_session is None:
        return None
    server = tmux.read_server(tmux.socket_path(place.tmux_socket))
    return server.find(place.tmux_session, place.tmux_identity)


def _family(roots: dict[int, str], figures: Figures) -> list[int]:
    ours = {pid for pid, start in roots.items() if pid in figures and figures[pid].start == start}
    ours.discard(os.getpid())  # Never this guard itself.
    while (
        more := {pid for pid, process in figures.items() if process.parent in ours}
        - ours
        - {os.getpid()}
    ):
        ours |= more
    return sorted(ours)


def terminal(subject: AgentSubject) -> Iterator[Sign]:
    place = subject.agent.whereabouts
    is_here = place.tmux_session is not None and compare_hosts(place.host, read_host()) == "here"
    found = _session(place) if is_here else None
    seconds = tmux.last_output(found) if found is not None else None
    if seconds is not None and not _is_echo(subject, seconds):
        yield subject.signal("TMUX_ACTIVITY", seconds, f"session {place.tmux_session}")


def _is_echo(subject: AgentSubject, seconds: float) -> bool:
    # The last output may be what the terminal made of a prompt that was pasted into it.
    sent = subject.watched.resumes if subject.watched is not None else ()
    echo = PROMPT_ECHO.total_seconds()
    return any(0 <= seconds - resume.at.timestamp() + 1 <= echo for resume in sent)


def transcript(subject: AgentSubject) -> Iterator[Sign]:
    if subject.session is None or not _SESSION.fullmatch(subject.session[1]):
        return
    kind, session = subject.session
    if kind in _TRANSCRIPTS:
        folder = AGENT_CLIS[kind].user_folder(subject.environ) / _TRANSCRIPTS[kind]
        for path, seconds in _files_of(folder, session, subject):
            yield subject.signal("TRANSCRIPT_GROWTH", seconds, path.name)


def _files_of(folder: Path, session: str, subject: AgentSubject) -> Iterator[tuple[Path, float]]:
    limit = subject.settings.collector_seconds
    walk = BoundedWalk(folder, attrgetter("folders"), _MOST_ENTRIES, _MOST_DEPTH, limit)
    short = session[:8]
    for listing in walk:
        for name, status in listing.files.items():
            if session in name or session in listing.folder.parts or f"-{short}." in name:
                yield listing.folder / name, status.st_mtime
