"""End an agent: ask its process or session, force it after a grace period, verify the end, and record it.

Everything that can be refused is refused before guard signals any process.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from guard.agents import registry
from guard.agents.liveness import explain_elsewhere, look_at_session
from guard.agents.update import recordable_message, require_agent
from guard.claims.validate import validate_claim
from guard.context.invocation import Invocation
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.report import AgentReport
from guard.core.agents.whereabouts import Host, Whereabouts
from guard.errors import Refused
from guard.system import tmux
from guard.system.host import compare_hosts, read_host
from guard.system.process_identity import ancestors, process_state, start_time
from guard.system.process_table import ProcessTree

How = Literal["asked", "forced", "gone_before", "nothing_recorded"]
GRACE_SECONDS = 10.0
_CLOSING_SECONDS = 10.0
_LOOK_SECONDS = 0.05
_BY_HAND = "end it by hand, then report its end"
_LOOK_FIRST = (
    "`guard agent list` looks for the session first; if it appears in time it is then known"
)


@dataclass(frozen=True)
class AgentEnd:
    how: How
    detail: str


def end_agent(
    place: Whereabouts,
    *,
    here: Host,
    grace_seconds: float = GRACE_SECONDS,
    environ: Mapping[str, str] = os.environ,
) -> AgentEnd:
    """End the process and the session of an agent; refused if they are not provably its own, or do not end."""
    if not place.is_known:
        return AgentEnd("nothing_recorded", "nothing is recorded of its session or process")
    where = compare_hosts(place.host, here)
    if where == "restarted":
        return AgentEnd("gone_before", "the machine was restarted")
    if where != "here":
        raise Refused(
            f"it cannot be ended from here: {explain_elsewhere(place.host, here)}", _BY_HAND
        )
    process, session = _find_processes(place), _find_session(place, environ)
    hows: list[How] = []
    if process is not None:
        hows.append(_end_tree(process, grace_seconds))
    if session is not None:
        hows.append(_end_session(*session, grace_seconds))
    return _describe_end(hows, place, grace_seconds)


def _find_processes(place: Whereabouts) -> ProcessTree | None:
    # The root is the guard that runs the agent, if that lives, or else the agent; None if it has ended.
    pid, start = place.pid, place.pid_start
    if (
        place.keeper_pid is not None
        and process_state(place.keeper_pid, place.keeper_start) == "runs"
    ):
        pid, start = place.keeper_pid, place.keeper_start
    found = process_state(pid, start) if pid is not None else "gone"
    if pid is not None and start is None and found == "gone" and place.tmux_session is None:
        raise Refused(f"process {pid} was never seen, so its end cannot be verified", _BY_HAND)
    if pid is None or found in ("gone", "reused"):
        return None
    if pid == 1 or pid == os.getpid() or pid in ancestors(os.getpid()):
        raise Refused(f"guard itself was started from process {pid}", "call guard from elsewhere")
    if start is None or found == "hidden":
        why = "when it started is not known"
        raise Refused(f"process {pid} is not provably the agent's: {why}", _BY_HAND)
    if not _may_signal(pid):
        raise Refused(f"process {pid} belongs to another user", "call guard as that user")
    return ProcessTree([(pid, start)])


def _may_signal(pid: int) -> bool:
    try:
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
    except PermissionError:
        return False
    return True


def _find_session(
    place: Whereabouts, environ: Mapping[str, str]
) -> tuple[tmux.Session, ProcessTree] | None:
    # Only the processes of the session's own panes are the agent's; None if the session has ended.
    name, identity = place.tmux_session, place.tmux_identity
    if name is None:
        return None
    try:
        server = tmux.read_server(place.tmux_socket or tmux.socket_path(None, environ))
    except tmux.TmuxUnknown as error:
        raise Refused(f"tmux session {name} cannot be ended: {error}", _BY_HAND) from None
    session = server.find(name, identity)
    if identity is None and (session is not None or place.pid is None):
        problem = f"tmux session {name} is not provably the agent's: it was never seen"
        raise Refused(problem, _LOOK_FIRST)
    if session is not None and session.all_dead:
        with suppress(tmux.TmuxUnknown):
            tmux.close_session(session)
        return None
    if session is not None:
        return session, _pane_processes(session, environ)
    seen = look_at_session(place, server)
    if seen.state == "unknown":
        raise Refused(f"tmux session {name} cannot be ended: {seen.detail}", _BY_HAND)
    return None


def _pane_processes(session: tmux.Session, environ: Mapping[str, str]) -> ProcessTree:
    if session.panes and not session.own:
        problem = f"all that tmux session {session.name} shows is in another session, too"
        raise Refused(problem, _BY_HAND)
    first = []
    for pid in session.own:
        start = start_time(pid)
        if start is not None:
            if session.server_pid not in ancestors(pid) and process_state(pid, start) == "runs":
                problem = f"the processes of tmux session {session.name} are not visible from here"
                raise Refused(problem, _BY_HAND)
            first.append((pid, start))
    tree = ProcessTree(first)
    if tree.has_guard or tmux.has_caller(session, environ):
        problem = f"guard itself was started from tmux session {session.name}"
        raise Refused(problem, "call guard from another session")
    return tree


def _end_tree(tree: ProcessTree, grace: float) -> How:
    tree.ask_to_end()
    if tree.wait_for_end(grace):
        return "asked"
    tree.force()
    return "forced"


def _end_session(session: tmux.Session, tree: ProcessTree, grace: float) -> How:
    with suppress(tmux.TmuxUnknown):
        tmux.close_session(session)
    # A process that ignores the hang-up would outlive the session.
    how = _end_tree(tree, grace)
    deadline = time.monotonic() + _CLOSING_SECONDS
    while not _is_closed(session):
        if time.monotonic() > deadline:
            raise Refused(f"tmux session {session.name} was told to end and still exists", _BY_HAND)
        time.sleep(_LOOK_SECONDS)
    return how


def _is_closed(session: tmux.Session) -> bool:
    # A server that is shutting down may answer anything: the caller asks again.
    try:
        tmux.close_session(session)
        return tmux.read_server(session.socket_path).find(session.name, session.identity) is None
    except tmux.TmuxUnknown:
        return False


def _describe_end(hows: list[How], place: Whereabouts, grace: float) -> AgentEnd:
    pid = place.pid or place.keeper_pid
    parts = (
        f"process {pid}" if pid is not None else "",
        f"tmux session {place.tmux_session}" if place.tmux_session is not None else "",
    )
    what = " and ".join(part for part in parts if part)
    if not hows:
        return AgentEnd("gone_before", f"{what} had ended before")
    if "forced" in hows:
        return AgentEnd("forced", f"{what} did not end within {grace:g} s and was killed")
    return AgentEnd("asked", f"{what} ended when asked")


def kill_agent(
    guard: Invocation, task_id: str, agent_id: str, reason: str, grace: float | None = None
) -> AgentReport:
    """End an agent and record why; refused if nothing proves that the process is the agent's."""
    agent = require_agent(guard, task_id, agent_id)
    if agent.status not in ACTIVE:
        raise Refused(
            f"agent {agent_id} of task {task_id} has ended already ({agent.status})",
            f"`guard agent show --task {task_id} --agent {agent_id}` says how",
        )
    store, reason = guard.writable_store, recordable_message(guard, reason)
    longest = guard.users_config.settings.registry.kill_grace_seconds
    seconds = longest if grace is None else grace
    ended = end_agent(
        agent.whereabouts, here=read_host(), grace_seconds=seconds, environ=guard.environ
    )
    if ended.how == "nothing_recorded":
        guard.output.warn(
            "nothing is recorded of its session or process: nothing was ended, only the registries changed"
        )
    if ended.how == "gone_before":
        return _record_earlier_end(guard, agent, reason, ended.detail)
    return registry.record_kill(store, guard.clock.now(), agent, reason, ended.detail[:512])


def _record_earlier_end(guard: Invocation, agent: Agent, reason: str, detail: str) -> AgentReport:
    # The end counts as detected, because guard killed nothing; the request to kill is logged too.
    now = guard.clock.now()
    guard.output.warn(f"it was not killed: {detail}")
    validation, _ = validate_claim(guard, agent, "", now, silent=True)
    found = registry.record_end(guard.writable_store, now, agent, detail[:512], validation)
    late = registry.record_kill(guard.writable_store, now, agent, reason, detail[:512])
    return found or late
