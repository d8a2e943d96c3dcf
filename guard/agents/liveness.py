"""Whether an agent's session or process still exists, and how that was found out; what cannot be told is never an end."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from guard.core.agents.whereabouts import Host, Whereabouts
from guard.system import tmux
from guard.system.host import same_place
from guard.system.process_identity import start_time
from guard.system.process_standing import standing

State = Literal["alive", "ended", "unknown"]
START_GRACE_SECONDS = 30.0


@dataclass(frozen=True)
class LivenessLook:
    """What a look at an agent's whereabouts found."""

    state: State
    detail: str
    """How it was found out, in one line."""
    learnt: Whereabouts | None = None
    """The whereabouts with a session that was seen for the first time, to be recorded."""


def look(
    place: Whereabouts,
    *,
    age_seconds: float,
    here: Host,
    start_grace: float = START_GRACE_SECONDS,
) -> LivenessLook:
    """Whether an agent that was registered so long ago is still there."""
    return look_all([(place, age_seconds)], here=here, start_grace=start_grace)[0]


def look_all(
    places: Iterable[tuple[Whereabouts, float]],
    *,
    here: Host,
    start_grace: float = START_GRACE_SECONDS,
) -> list[LivenessLook]:
    """The same for many, each with its age in seconds; every tmux server is asked once."""
    view = _View(here, start_grace)
    return [view.look(place, age) for place, age in places]


def processes_of(places: Iterable[Whereabouts], *, here: Host) -> list[tuple[int, str]]:
    """The processes whose end may be the end of one of these agents, each with its start."""
    servers = _Servers()
    found: list[tuple[int, str]] = []
    for one in places:
        if same_place(one.host, here) != "here":
            continue
        if one.keeper_pid is not None and one.keeper_start is not None:
            found.append((one.keeper_pid, one.keeper_start))
        if one.pid is not None and one.pid_start is not None:
            found.append((one.pid, one.pid_start))
        elif one.tmux_session is not None:
            found += servers.processes(one)
    return list(dict.fromkeys(found))


@dataclass
class _Servers:
    """The tmux servers that were asked, with their answers."""

    answers: dict[str, tmux.Server | tmux.TmuxUnknown] = field(default_factory=dict)

    def of(self, place: Whereabouts) -> tmux.Server:
        path = place.tmux_socket or tmux.socket_path(None)
        if path not in self.answers:
            try:
                self.answers[path] = tmux.server(path)
            except tmux.TmuxUnknown as error:
                self.answers[path] = error
        answer = self.answers[path]
        if isinstance(answer, tmux.TmuxUnknown):
            raise answer
        return answer

    def processes(self, place: Whereabouts) -> list[tuple[int, str]]:
        """Those that the panes of its session began with, and the server, without which there is no session."""
        try:
            session = self.of(place).find(place.tmux_session or "", place.tmux_identity)
        except tmux.TmuxUnknown:
            session = None
        pids = session.panes.values() if session is not None else ()
        first = [(pid, start) for pid in pids if (start := start_time(pid)) is not None]
        identity = session.identity if session is not None else place.tmux_identity
        server = tmux.server_of(identity) if identity is not None else None
        return [*first, server] if server is not None else first


@dataclass
class _View:
    here: Host
    start_grace: float
    servers: _Servers = field(default_factory=_Servers)

    def look(self, place: Whereabouts, age: float) -> LivenessLook:
        if not place.known:
            return LivenessLook("unknown", "nothing is recorded of its session or process")
        where = same_place(place.host, self.here)
        if where == "restarted":
            return LivenessLook("ended", "the machine was restarted")
        if where != "here":
            return LivenessLook("unknown", elsewhere(place.host, self.here))
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
    """Whether the recorded session is one of this server's."""
    session = server.find(place.tmux_session or "", place.tmux_identity)
    if place.tmux_identity is None:
        return _first_look(place, session, young)
    return _found(session) if session is not None else _gone(place, place.tmux_identity, server)


def elsewhere(host: Host | None, here: Host) -> str:
    """Why nobody can look from here for what is recorded with this host."""
    if host is None:
        return "it is not recorded on which host"
    same_boot = host.boot_id is not None and host.boot_id == here.boot_id
    return f"another container of {host.name}" if same_boot else f"another host: {host.name}"


def _look_at_process(pid: int, start: str | None) -> LivenessLook:
    match standing(pid, start):
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


def _found(session: tmux.Session) -> LivenessLook:
    if session.all_dead:
        return LivenessLook("ended", f"all panes of tmux session {session.name} are dead")
    return LivenessLook("alive", f"tmux session {session.name} exists")


def _first_look(place: Whereabouts, session: tmux.Session | None, young: bool) -> LivenessLook:
    """At a session that was not there when the agent was registered."""
    if session is None:
        detail = f"tmux session {place.tmux_session} was never seen"
        return LivenessLook("unknown", f"{detail} yet") if young else LivenessLook("ended", detail)
    learnt = {"tmux_socket": session.socket_path, "tmux_identity": session.identity}
    return replace(_found(session), learnt=place.model_copy(update=learnt))


def _gone(place: Whereabouts, identity: str, answer: tmux.Server) -> LivenessLook:
    """Nobody answers for the session; but a server whose socket was deleted still has all that it had."""
    name, server = place.tmux_session, tmux.server_of(identity)
    lost = server if server is not None and answer.pid != server[0] else None
    if lost is not None and standing(*lost) in ("runs", "hidden"):
        detail = f"tmux server {lost[0]} of session {name} runs, but not on its socket"
        return LivenessLook("unknown", detail)
    if name in answer.sessions:
        return LivenessLook("ended", f"tmux session {name} is another one now")
    return LivenessLook("ended", f"tmux session {name} does not exist any more")
