"""Run tmux (no other module does): list a server's sessions, and tell them from later ones of the same name.

Names are compared here and never given to tmux, which would take `agent-1` for the beginning of `agent-1-long`.
"""

import os
import re
import socket
import struct
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from guard.core.base.first_use import dataclass, late_pattern
from guard.errors import WrongUsage
from guard.system.process_identity import start_time
from guard.system.processes import Finished, run
from guard.system.programs import planted_place, search_program

_SECONDS = 5.0
_LONGEST_NAME = 256
_LONGEST_SOCKET = 107
_MOST_BYTES = 16 * 1024 * 1024
_ROW = "#{pid}/#{start_time}/#{session_id}/#{session_created}/#{pane_id}/#{pane_pid}/#{pane_dead}/#{session_name}"
_ABSENT = late_pattern(
    r"no server running on .*|error connecting to .* \(No such file or directory\)|"
    r"no current target|no sessions|can't find session: .*",
    re.DOTALL,
)
_EMPTY = ("no current target", "no sessions")
"""What a server says that outlives its sessions (`exit-empty off`)."""
_NUMBERS = late_pattern(r"[0-9]{1,9}/[0-9]{0,12}/\$[0-9]{1,12}/[0-9]{0,12}/%[0-9]{1,12}/[0-9]{1,9}")
_LONGEST_NUMBER = 12
"""A server may be the agent's own, and answer with anything."""
_CHANGED_BY_TMUX = late_pattern(r"[:.\\$\x00-\x1f\x7f-\x9f\ud800-\udfff]|#[A-Zh#,({\[]")
"""What `new-session -s` replaces, escapes or expands."""


class TmuxUnknown(Exception):
    """tmux did not answer the question; the text is a sentence that says why."""


@dataclass(frozen=True)
class Session:
    name: str
    socket_path: str
    identity: str
    """Opaque; `same` compares it."""
    server_pid: int
    session_id: str
    panes: Mapping[str, int]
    """The living panes by their ids, with the process that each began with."""
    dead: frozenset[str] = frozenset()
    """Panes that show only what a process left behind (`remain-on-exit`); its number may be a stranger's by now."""

    shared: frozenset[str] = frozenset()
    """Panes of windows that are linked into another session, too, and stay there when this one is closed."""

    @property
    def own(self) -> list[int]:
        """The processes that began the living panes which are in no other session."""
        return [pid for pane, pid in self.panes.items() if pane not in self.shared]

    @property
    def all_dead(self) -> bool:
        return not self.panes


@dataclass(frozen=True)
class Server:
    """The server behind a socket."""

    answered: bool
    sessions: Mapping[str, Session]
    """By name."""
    pid: int | None = None
    """The process that answered; None if it did not tell."""

    def find(self, name: str, identity: str | None) -> Session | None:
        """Find the session of this identity, whatever it is called now; the name counts only where no identity is known."""
        if identity is None:
            return self.sessions.get(name)
        alike = (
            session
            for session in self.sessions.values()
            if is_same_session(session.identity, identity)
        )
        return next(alike, None)


def check_name(name: str) -> None:
    """Refuse a name that a tmux session cannot have: it would never be found."""
    if not 0 < len(name) <= _LONGEST_NAME or _CHANGED_BY_TMUX.search(name):
        raise WrongUsage(
            f"no tmux session can be called {name[:120]!r}, because tmux changes such names",
            "give the name that `tmux list-sessions` shows",
        )


def check_socket(path: str) -> None:
    """Refuse a path that no system lets a socket have."""
    if len(os.fsencode(path)) > _LONGEST_SOCKET or not path.isprintable():
        raise WrongUsage(
            f"no tmux socket can have the path {path[:120]!r}",
            "give a shorter path of plain characters",
        )


def socket_path(socket: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of a server's socket by tmux's own rules, from a path, a name, or the caller's server."""
    if socket and "/" in socket:
        return os.path.abspath(socket)
    inside = environ.get("TMUX", "").partition(",")[0]
    if not socket and inside:
        return inside
    folder = environ.get("TMUX_TMPDIR")
    base = os.path.realpath(folder if folder and os.path.isdir(folder) else "/tmp")  # noqa: S108
    return os.path.join(base, f"tmux-{os.getuid()}", socket or "default")


def read_server(path: str) -> Server:
    """Read the server on this socket with its sessions; TmuxUnknown if tmux cannot tell whether there is one."""
    done = call_tmux(path, "list-panes", "-a", "-F", _ROW)
    message = done.stderr.decode(errors="replace").strip()
    if done.code is None:
        raise TmuxUnknown(f"tmux did not answer within {_SECONDS:g} s")
    if done.code != 0 and _ABSENT.fullmatch(message):
        return Server(True, {}, _pid(path)) if message in _EMPTY else Server(False, {})
    # A server that does not let us in says so, and calls it a success.
    if done.code != 0 or message:
        raise TmuxUnknown(f"tmux failed: {_line(message) or f'exit code {done.code}'}")
    found: dict[str, Session] = {}
    starts: dict[int, str | None] = {}
    for row in done.stdout.decode(errors="replace").splitlines():
        _add(found, _session(row, path, starts))
    pids = {session.server_pid for session in found.values()}
    return Server(True, _mark_shared(found), pids.pop() if len(pids) == 1 else None)


def find_session(
    session: str, socket: str | None, environ: Mapping[str, str] = os.environ
) -> Session | None:
    """Find the session of exactly this name; None if there clearly is none."""
    return read_server(socket_path(socket, environ)).sessions.get(session)


def is_same_session(identity: str, other: str) -> bool:
    return _tmux_part(identity) == _tmux_part(other)


def server_process(identity: str) -> tuple[int, str] | None:
    """Return the pid and the start of the server's process, where both are known."""
    parts = identity.split("/", 4)
    is_known = len(parts) == 5 and parts[0].isdecimal() and parts[4]
    return (int(parts[0]), parts[4]) if is_known else None


def has_caller(session: Session, environ: Mapping[str, str]) -> bool:
    """Tell whether the caller stands in one of its panes, however far it has gone from the pane's own process."""
    server = environ.get("TMUX", "").split(",")[1:2]
    panes = {*session.panes, *session.dead}
    return server == [str(session.server_pid)] and environ.get("TMUX_PANE") in panes


def last_output(session: Session) -> float | None:
    """Return when something last happened in one of its windows, in seconds since the epoch."""
    words = ("list-windows", "-t", session.session_id, "-F", "#{window_activity}")
    answers = call_tmux(session.socket_path, *words).stdout.split()
    return max((float(answer) for answer in answers if _is_number(answer)), default=None)


def close_session(session: Session) -> None:
    """Close the session, which hangs up on its processes; do nothing if it is gone.

    The server itself compares who it is: one that was started since has other sessions of the same ids.
    """
    pid, started = session.identity.split("/")[:2]
    is_it = f"#{{==:#{{pid}}/#{{start_time}},{pid}/{started}}}"
    done = call_tmux(
        session.socket_path, "if-shell", "-F", is_it, f"kill-session -t '{session.session_id}'"
    )
    message = done.stderr.decode(errors="replace").strip()
    if done.code is None or (message and not _ABSENT.fullmatch(message)):
        raise TmuxUnknown(f"tmux did not close the session: {_line(message) or 'no answer'}")


def call_tmux(path: str, *words: str, stdin: bytes | None = None) -> Finished:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environ = {**kept, "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    argv = ("tmux", "-u", "-S", path, *words)
    _require_tmux(path, environ)
    try:
        return run(
            argv,
            environ=environ,
            time_limit=_SECONDS,
            cwd=os.sep,
            stdin=stdin,
            most_stdout=_MOST_BYTES,
        )
    except FileNotFoundError:
        raise TmuxUnknown(search_program("tmux", environ).problem) from None
    except (OSError, ValueError) as error:
        raise TmuxUnknown(f"tmux does not start: {error}") from None


def _pid(path: str) -> int | None:
    answer = call_tmux(path, "display-message", "-p", "#{pid}").stdout.strip()
    return int(answer) if _is_number(answer) else None


def _is_number(answer: bytes) -> bool:
    return answer.isdigit() and len(answer) <= _LONGEST_NUMBER


def _require_tmux(path: str, environ: Mapping[str, str]) -> None:
    """Refuse a socket behind which another program listens: a server can make the tmux that asks it run a program.

    Where the system does not tell which program listens, the server is taken for what it claims to be.
    """
    if not hasattr(socket, "SO_PEERCRED") or not os.path.exists("/proc/self/exe"):
        return
    try:
        program = _listening_program(path)
    except PermissionError:
        return
    if program is None:
        # tmux itself says best what is wrong with the socket.
        return
    name = os.path.basename(program)
    if "tmux" not in name and name != "systemd":
        raise TmuxUnknown(f"not tmux but {_line(program)} listens on {path}: guard does not ask it")
    where = planted_place(program, environ)
    if where is not None:
        raise TmuxUnknown(f"the tmux that listens on {path} is {where}: guard does not ask it")


def _listening_program(path: str) -> str | None:
    """Return the program that listens on this socket; None if none does.

    A server that is just ending loses its program before its socket, and a busy one takes no more callers for a while: both are
    asked again.
    """
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        try:
            pid = _listening_pid(path)
        except BlockingIOError:
            pass
        except OSError:
            return None
        else:
            with suppress(FileNotFoundError, ProcessLookupError):
                return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
        time.sleep(0.02)
    raise TmuxUnknown(f"guard cannot tell which program listens on {path}")


def _listening_pid(path: str) -> int:
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(_SECONDS)
        asked.connect(path)
        answer = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", answer)[0])


def _session(row: str, path: str, starts: dict[int, str | None]) -> Session:
    parts = row.split("/", 7)
    if len(parts) < 8 or not _NUMBERS.fullmatch("/".join(parts[:6])):
        raise TmuxUnknown("guard does not understand the answer of tmux")
    server = int(parts[0])
    if server not in starts:
        starts[server] = start_time(server)
    pane, is_dead = parts[4], parts[6] == "1"
    return Session(
        name=parts[7],
        socket_path=path,
        identity="/".join([*parts[:4], starts[server] or ""]),
        server_pid=server,
        session_id=parts[2],
        panes={} if is_dead else {pane: int(parts[5])},
        dead=frozenset([pane] if is_dead else []),
    )


def _add(found: dict[str, Session], pane: Session) -> None:
    known = found.get(pane.name)
    if known is not None:
        pane = replace(known, panes={**known.panes, **pane.panes}, dead=known.dead | pane.dead)
    found[pane.name] = pane


def _mark_shared(found: Mapping[str, Session]) -> dict[str, Session]:
    times = Counter(pane for session in found.values() for pane in session.panes)
    return {
        name: replace(session, shared=frozenset(pane for pane in session.panes if times[pane] > 1))
        for name, session in found.items()
    }


def _tmux_part(identity: str) -> list[str]:
    return identity.split("/")[:4]


def _line(text: str) -> str:
    return " ".join(text.split())[:400]
