"""Locate agents, and tell whether their session or process still exists; an unknown state is never an end."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from guard.core.agents.agent import Agent
from guard.core.agents.whereabouts import Host, Whereabouts
from guard.core.base.first_use import dataclass
from guard.errors import WrongUsage
from guard.system import tmux
from guard.system.clock import Clock
from guard.system.host import compare_hosts, read_host
from guard.system.process_identity import ancestors, process_state, start_time

if TYPE_CHECKING:
    from guard.core.agents.report import Liveness


def locate(
    session: str | None,
    socket: str | None,
    pid: int | None,
    environ: Mapping[str, str] = os.environ,
) -> tuple[Whereabouts, list[str]]:
    """Return the whereabouts to record, and a warning for each thing that guard could not see yet."""
    warnings: list[str] = []
    found = Whereabouts(host=read_host())
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
        session = tmux.read_server(socket).sessions.get(name)
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
    if process_state(pid, start) == "gone":
        raise WrongUsage(f"there is no process {pid}", "give the pid of the running agent")
    if start is None:
        warnings.append(f"the start time of process {pid} is not known")
    return place.model_copy(update={"pid": pid, "pid_start": start})


def is_inside(place: Whereabouts, environ: Mapping[str, str]) -> bool:
    """Tell whether guard itself runs inside this place: started from its process, or in a pane of its session."""
    if place.host != read_host():
        return False
    if place.pid is not None and place.pid_start is not None:
        return (
            place.pid in ancestors(os.getpid())
            and process_state(place.pid, place.pid_start) == "runs"
        )
    if place.tmux_session is None:
        return False
    try:
        server = tmux.read_server(place.tmux_socket or tmux.socket_path(None, environ))
    except tmux.TmuxUnknown:
        return False
    session = server.find(place.tmux_session, place.tmux_identity)
    return session is not None and tmux.has_caller(session, environ)


START_GRACE_SECONDS = 30.0


def seconds_since_placed(agent: Agent, clock: Clock) -> float:
    """Return for how many seconds guard has known where the agent runs, by the boot clock unless the machine restarted."""
    boot, at = agent.placed_boot_seconds, agent.placed_at or agent.spawned_at
    same = agent.host is not None and agent.host.boot_id == read_host().boot_id
    if same and boot is not None:
        return max(0.0, clock.boot() - boot)
    return max(0.0, (clock.now() - at).total_seconds())


@dataclass(frozen=True)
class LivenessLook:
    state: "Liveness"
    detail: str
    """How guard found out, in one line."""
    learnt: Whereabouts | None = None
    """The whereabouts with a session that was seen for the first time, to be recorded."""


def look(
    place: Whereabouts,
    *,
    age_seconds: float,
    here: Host,
    start_grace: float = START_GRACE_SECONDS,
) -> LivenessLook:
    return look_all([(place, age_seconds)], here=here, start_grace=start_grace)[0]


def look_all(
    places: Iterable[tuple[Whereabouts, float]],
    *,
    here: Host,
    start_grace: float = START_GRACE_SECONDS,
) -> list[LivenessLook]:
    """Look at many agents, each given with the seconds since it was placed; each tmux server is asked once."""
    view = _Observer(here, start_grace)
    return [view.look(place, age) for place, age in places]


def watched_processes(places: Iterable[Whereabouts], *, here: Host) -> list[tuple[int, str]]:
    """Return the processes, with their start, whose end may be the end of one of these agents."""
    servers = _Servers()
    found: list[tuple[int, str]] = []
    for place in places:
        if compare_hosts(place.host, here) != "here":
            continue
        if place.keeper_pid is not None and place.keeper_start is not None:
            found.append((place.keeper_pid, place.keeper_start))
        if place.pid is not None and place.pid_start is not None:
            found.append((place.pid, place.pid_start))
        elif place.tmux_session is not None:
            found += servers.processes(place)
    return list(dict.fromkeys(found))


@dataclass
class _Servers:
    """The tmux servers asked so far, with their answers."""

    answers: dict[str, tmux.Server | tmux.TmuxUnknown] = field(default_factory=dict)

    def of(self, place: Whereabouts) -> tmux.Server:
        path = place.tmux_socket or tmux.socket_path(None)
        if path not in self.answers:
            try:
                self.answers[path] = tmux.read_server(path)
            except tmux.TmuxUnknown as error:
                self.answers[path] = error
        answer = self.answers[path]
        if isinstance(answer, tmux.TmuxUnknown):
            raise answer
        return answer

    def processes(self, place: Whereabouts) -> list[tuple[int, str]]:
        """Return the first processes of the session's panes, and the server, without which there is no session."""
        try:
            session = self.of(place).find(place.tmux_session or "", place.tmux_identity)
        except tmux.TmuxUnknown:
            session = None
        pids = session.panes.values() if session is not None else ()
        first = [(pid, start) for pid in pids if (start := start_time(pid)) is not None]
        identity = session.identity if session is not None else place.tmux_identity
        server = tmux.server_process(identity) if identity is not None else None
        return [*first, server] if server is not None else first


@dataclass
class _Observer:
    here: Host
    start_grace: float
    servers: _Servers = field(default_factory=_Servers)

    def look(self, place: Whereabouts, age: float) -> LivenessLook:
        if not place.is_known:
            return LivenessLook("unknown", "nothing is recorded of its session or process")
        where = compare_hosts(place.host, self.here)
        if where == "restarted":
            return LivenessLook("ended", "the machine was restarted")
        if where != "here":
            return LivenessLook("unknown", explain_elsewhere(place.host, self.here))
        if place.keeper_pid is not None:
            kept = _look_at_process(place.keeper_pid, place.keeper_start)
            if kept.state != "ended" or (place.pid is None and place.tmux_session is None):
                return replace(kept, detail=f"its guard: {kept.detail}")
        if place.pid is None:
            return self._look_at_session(place, age)
        seen = _look_at_process(place.pid, place.pid_start)
        if place.tmux_session is None:
            return seen
        if seen.state == "unknown" and place.pid_start is None:
            return self._look_at_session(place, age)
        if seen.state == "alive" and place.tmux_identity is None:
            return replace(seen, learnt=self._look_at_session(place, age).learnt)
        return seen

    def _look_at_session(self, place: Whereabouts, age: float) -> LivenessLook:
        try:
            server = self.servers.of(place)
        except tmux.TmuxUnknown as error:
            return LivenessLook("unknown", str(error))
        return look_at_session(place, server, young=age < self.start_grace)


def look_at_session(
    place: Whereabouts, server: tmux.Server, *, young: bool = False
) -> LivenessLook:
    session = server.find(place.tmux_session or "", place.tmux_identity)
    if place.tmux_identity is None:
        return _first_look(place, session, young)
    if session is None:
        return _look_at_missing(place, place.tmux_identity, server)
    return _look_at_found(session)


def explain_elsewhere(host: Host | None, here: Host) -> str:
    if host is None:
        return "it is not recorded on which host"
    same_boot = host.boot_id is not None and host.boot_id == here.boot_id
    return f"another container of {host.name}" if same_boot else f"another host: {host.name}"


def _look_at_process(pid: int, start: str | None) -> LivenessLook:
    match process_state(pid, start):
        case "runs":
            return LivenessLook("alive", f"process {pid} runs")
        case "gone" if start is None:
            return LivenessLook("unknown", f"process {pid} was never seen")
        case "gone":
            return LivenessLook("ended", f"process {pid} has ended")
        case "reused":
            return LivenessLook("ended", f"process number {pid} belongs to another process now")
        case "hidden":
            known = "is not shown" if start is not None else "was not recorded"
            return LivenessLook("unknown", f"there is a process {pid}, but when it started {known}")


def _look_at_found(session: tmux.Session) -> LivenessLook:
    if session.all_dead:
        return LivenessLook("ended", f"all panes of tmux session {session.name} are dead")
    return LivenessLook("alive", f"tmux session {session.name} exists")


def _first_look(place: Whereabouts, session: tmux.Session | None, young: bool) -> LivenessLook:
    # The session did not exist yet when the agent was registered.
    if session is None:
        detail = f"tmux session {place.tmux_session} was never seen"
        return LivenessLook("unknown", f"{detail} yet") if young else LivenessLook("ended", detail)
    learnt = {"tmux_socket": session.socket_path, "tmux_identity": session.identity}
    return replace(_look_at_found(session), learnt=place.model_copy(update=learnt))


def _look_at_missing(place: Whereabouts, identity: str, answer: tmux.Server) -> LivenessLook:
    # A server whose socket was deleted does not answer, but still has its sessions.
    name, server = place.tmux_session, tmux.server_process(identity)
    lost = server if server is not None and answer.pid != server[0] else None
    if lost is not None and process_state(*lost) in ("runs", "hidden"):
        detail = f"tmux server {lost[0]} of session {name} runs, but not on its socket"
        return LivenessLook("unknown", detail)
    if name in answer.sessions:
        return LivenessLook("ended", f"tmux session {name} is another one now")
    return LivenessLook("ended", f"tmux session {name} does not exist any more")
