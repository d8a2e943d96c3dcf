"""Where an agent runs that is registered now: its machine, its tmux session and its process, each known from later ones."""

import os
from collections.abc import Mapping

from guard.core.agents.whereabouts import Whereabouts
from guard.errors import WrongUsage
from guard.system import tmux
from guard.system.host import here
from guard.system.process_identity import ancestors, start_time
from guard.system.process_standing import standing


def place(
    session: str | None,
    socket: str | None,
    pid: int | None,
    environ: Mapping[str, str] = os.environ,
) -> tuple[Whereabouts, list[str]]:
    """The whereabouts to record, and a warning for each thing that could not be seen yet."""
    warnings: list[str] = []
    found = Whereabouts(host=here())
    if session is not None:
        found = _with_session(found, session, tmux.socket_path(socket, environ), warnings)
    if pid is not None:
        found = _with_process(found, pid, warnings)
    return found, warnings


def _with_session(place: Whereabouts, name: str, socket: str, warnings: list[str]) -> Whereabouts:
    tmux.check_name(name)
    tmux.check_socket(socket)
    found = place.model_copy(update={"tmux_session": name, "tmux_socket": socket})
    try:
        session = tmux.server(socket).sessions.get(name)
    except tmux.TmuxUnknown as error:
        warnings.append(f"tmux session {name} was not looked for: {error}")
        return found
    if session is None:
        warnings.append(f"there is no tmux session {name} on {socket} yet")
        return found
    return found.model_copy(update={"tmux_identity": session.identity})


def _with_process(place: Whereabouts, pid: int, warnings: list[str]) -> Whereabouts:
    if pid <= 1 or pid > 2**31:
        raise WrongUsage(f"process {pid} cannot be an agent's", "give the agent's own process")
    start = start_time(pid)
    if standing(pid, start) == "gone":
        raise WrongUsage(f"there is no process {pid}", "give the pid of the running agent")
    if start is None:
        warnings.append(f"nobody tells when process {pid} started")
    return place.model_copy(update={"pid": pid, "pid_start": start})


def surrounds(place: Whereabouts, environ: Mapping[str, str]) -> bool:
    """Whether guard itself runs inside this place: started from its process, or in a pane of its session."""
    if place.host != here():
        return False
    if place.pid is not None and place.pid_start is not None:
        return (
            place.pid in ancestors(os.getpid()) and standing(place.pid, place.pid_start) == "runs"
        )
    if place.tmux_session is None:
        return False
    try:
        server = tmux.server(place.tmux_socket or tmux.socket_path(None, environ))
    except tmux.TmuxUnknown:
        return False
    session = server.find(place.tmux_session, place.tmux_identity)
    return session is not None and tmux.holds_caller(session, environ)
