"""The channels by which a prompt reaches an agent, each proved open before anything is recorded or sent."""

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from guard.agents.liveness import look, seconds_since_placed
from guard.core.activity.events import ResumeWay
from guard.core.activity.settings import fill_patterns
from guard.core.agents.agent import Agent
from guard.core.base.text import utf8_text
from guard.core.iteration.run import RUN
from guard.resume import cli_session, tmux_pane
from guard.resume.evidence import StalledAgent
from guard.system import tmux
from guard.system.host import compare_hosts, read_host
from guard.system.private_files import write_all
from guard.system.processes import run
from guard.system.programs import search_program

_MOST_OUTPUT = 1024 * 1024


class CannotDeliver(Exception):
    """Nothing was sent; the message says why."""


class MayHaveArrived(Exception):
    """Something was sent, but delivery did not end as it should."""


@dataclass(frozen=True)
class OpenChannel:
    """A channel that is open now."""

    way: ResumeWay
    deliver: Callable[[str], str]
    """Sends the prompt, and returns in a few words where it went."""


def open_channel(stalled: StalledAgent, by: str) -> OpenChannel:
    """Open the requested channel, or with `auto` the first possible one; CannotDeliver if there is none."""
    # `auto` never resumes a session: that starts a program.
    refused = []
    for way in _AUTOMATIC if by == "auto" else (by,):
        try:
            return _WAYS[way](stalled)
        except CannotDeliver as error:
            refused.append(f"{way}: {error}")
    raise CannotDeliver("; ".join(refused))


def _open_tmux(stalled: StalledAgent) -> OpenChannel:
    agent = stalled.agent
    if agent.tmux_session is None:
        raise CannotDeliver("no tmux session of it is recorded")
    if compare_hosts(agent.host, read_host()) != "here":
        raise CannotDeliver("it runs on another machine")
    try:
        server = tmux.read_server(
            agent.tmux_socket or tmux.socket_path(None, stalled.guard.environ)
        )
        session = server.find(agent.tmux_session, agent.tmux_identity)
        if session is None or agent.tmux_identity is None:
            raise CannotDeliver(
                f"the tmux session {agent.tmux_session} that was recorded is not there"
            )
        place = tmux_pane.find_pane(session, _recorded_process(stalled))
    except (tmux.TmuxUnknown, tmux_pane.CannotPaste) as error:
        raise CannotDeliver(str(error)) from None
    return OpenChannel("tmux", lambda text: _paste_into(place, text))


def _recorded_process(stalled: StalledAgent) -> tuple[int, str]:
    """The agent's own recorded process, or that of the iteration that its guard runs."""
    agent = stalled.agent
    if agent.pid is not None and agent.pid_start is not None:
        return agent.pid, agent.pid_start
    keeper = (agent.keeper_pid, agent.keeper_start)
    for run_state in stalled.guard.store.views(RUN).values() if agent.keeper_pid else ():
        opened = run_state.open_iteration
        watch = opened.supervisor if opened is not None else None
        if opened and opened.process and watch and (watch.pid, watch.start) == keeper:
            return opened.process.pid, opened.process.start
    raise CannotDeliver("no process of it is recorded with its start: register it with --pid")


def _paste_into(place: tmux_pane.Pane, text: str) -> str:
    try:
        tmux_pane.paste(place, text)
    except tmux_pane.EnterNotSent as error:
        raise MayHaveArrived(f"pasted, but the Enter key was not sent: {error}") from None
    except (tmux_pane.CannotPaste, tmux.TmuxUnknown) as error:
        raise CannotDeliver(str(error)) from None
    return f"pasted into the pane {place.pane_id}"


def _open_session(stalled: StalledAgent) -> OpenChannel:
    guard, agent, root = stalled.guard, stalled.agent, stalled.root
    seen = look(
        agent.whereabouts, age_seconds=seconds_since_placed(agent, guard.clock), here=read_host()
    )
    if seen.state == "alive":
        raise CannotDeliver(
            f"it is running, and a session has one process at a time: {seen.detail}"
        )
    if root is None:
        raise CannotDeliver("its work tree is not known")
    try:
        known = cli_session.find_session(guard, agent)
    except cli_session.NoSession as error:
        raise CannotDeliver(str(error)) from None

    def deliver(text: str) -> str:
        try:
            cli_session.start_session(guard, agent, root, known, text)
        except (cli_session.NoSession, OSError) as error:
            raise CannotDeliver(str(error)) from None
        return f"{known[0]} resumes the session {known[1]}"

    return OpenChannel("session", deliver)


def _open_inbox(stalled: StalledAgent) -> OpenChannel:
    agent, root = stalled.agent, stalled.root
    patterns = stalled.guard.config.settings.resume.inbox_folders
    levels = find_inbox(root, patterns, agent.agent_id, agent.task_id) if root else None
    if root is None or levels is None:
        raise CannotDeliver("it has no inbox: none of `resume.inbox_folders` exists")

    def deliver(text: str) -> str:
        digest = sha256(text.encode(errors="backslashreplace")).hexdigest()[:8]
        try:
            name = put_in_inbox(
                root, levels, f"resume-{stalled.now:%Y%m%dT%H%M%SZ}-{digest}.md", text
            )
        except OSError as error:
            raise CannotDeliver(f"its inbox takes no file: {error.strerror or error}") from None
        return "/".join((*levels, name))

    return OpenChannel("inbox", deliver)


def _open_command(stalled: StalledAgent) -> OpenChannel:
    settings = stalled.guard.config.settings.resume
    try:
        words = shlex.split(settings.command)
    except ValueError as error:
        raise CannotDeliver(f"`resume.command` cannot be split into words: {error}") from None
    if not words:
        raise CannotDeliver("`resume.command` is not set")
    search = search_program(words[0], stalled.guard.environ)
    program = search.program
    if program is None:
        raise CannotDeliver(search.problem if search.refused else f"there is no program {words[0]}")

    def deliver(text: str) -> str:
        environ = {**stalled.guard.environ, **_ids(stalled.agent)}
        limit, data = settings.command_seconds, utf8_text(text).encode()
        try:
            done = run(
                [program, *words[1:]],
                environ=environ,
                time_limit=limit,
                stdin=data,
                most_stdout=_MOST_OUTPUT,
                most_stderr=_MOST_OUTPUT,
            )
        except OSError as error:
            raise CannotDeliver(f"{words[0]} cannot be started: {error.strerror}") from None
        if done.code is None:
            why = "printed too much" if done.overflowed else f"took longer than {limit:g} s"
            raise MayHaveArrived(f"{words[0]} {why}, and was ended")
        if done.code != 0:
            stderr = " ".join(done.stderr.decode(errors="replace").split())[-200:]
            raise MayHaveArrived(f"{words[0]} ended with {done.code}: {stderr}")
        return f"{words[0]} has taken it"

    return OpenChannel("command", deliver)


def _ids(agent: Agent) -> dict[str, str]:
    values = {
        "GUARD_TASK_ID": agent.task_id,
        "GUARD_AGENT_ID": agent.agent_id,
        "GUARD_AGENT_INCARNATION": str(agent.incarnation),
        "GUARD_AGENT_TMUX_SESSION": agent.tmux_session,
        "GUARD_AGENT_PID": str(agent.pid) if agent.pid is not None else None,
    }
    return {name: value for name, value in values.items() if value is not None}


_WAYS: dict[str, Callable[[StalledAgent], OpenChannel]] = {
    "tmux": _open_tmux,
    "session": _open_session,
    "inbox": _open_inbox,
    "command": _open_command,
}
_AUTOMATIC = ("tmux", "inbox", "command")


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_NAMES = 100


def find_inbox(root: Path, patterns: str, agent: str, task: str) -> tuple[str, ...] | None:
    """The first inbox folder that exists below the work tree, as path levels; None if there is none."""
    for levels in fill_patterns(patterns, agent, task):
        with suppress(OSError, ValueError), _open_folder(root, levels):
            return levels
    return None


def put_in_inbox(root: Path, levels: tuple[str, ...], name: str, text: str) -> str:
    """Write a new file, whole or not at all, and return its name, which differs from `name` if that is taken."""
    with _open_folder(root, levels) as folder:
        temporary = f".{name}.{os.getpid()}.tmp"
        descriptor = os.open(temporary, _NEW, 0o600, dir_fd=folder)
        try:
            try:
                write_all(descriptor, text.encode(errors="backslashreplace"))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            return _link_new(folder, temporary, name)
        finally:
            os.unlink(temporary, dir_fd=folder)


def _link_new(folder: int, temporary: str, name: str) -> str:
    # A link, unlike a rename, never replaces an existing file.
    stem, dot, ending = name.rpartition(".")
    for number in range(_MOST_NAMES):
        tried = f"{stem}-{number}{dot}{ending}" if number else name
        with suppress(FileExistsError):
            os.link(temporary, tried, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            os.fsync(folder)
            return tried
    raise FileExistsError(f"{name} and {_MOST_NAMES} names like it are taken")


@contextmanager
def _open_folder(root: Path, levels: tuple[str, ...]) -> Iterator[int]:
    # One level at a time, so that no link is followed on the way.
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for level in levels:
            below = os.open(level, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)
