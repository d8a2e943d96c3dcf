"""What agents and their starters report: facts around the report are gathered first, then it is recorded."""

import time

from guard.agents import registry as agents
from guard.agents.records import unknown
from guard.agents.whereabouts import place
from guard.context.ids import check_id
from guard.context.invocation import Invocation
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.baseline import Ground
from guard.core.agents.events import AgentFindingRecorded, AgentStatus, AgentTested
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.agents.report import AgentReport
from guard.core.agents.whereabouts import Placing, Whereabouts
from guard.core.base.text import shorten, valid
from guard.errors import RepositoryProblem, WrongUsage
from guard.system.host import here
from guard.system.processes import passed_on

_MOST_WORDS = 64
_LONGEST_WORD = 200
_LONGEST_MESSAGE = 65000


def known(guard: Invocation, task_id: str, agent_id: str) -> Agent:
    """The agent as it stands; refused if there is none."""
    check_id("an agent id", agent_id)
    registry = guard.store.view(AGENT_REGISTRY, check_id("a task id", task_id))
    agent = registry.agent(agent_id) if registry else None
    if agent is None:
        raise unknown(task_id, agent_id)
    return agent


def spawned(
    guard: Invocation,
    *,
    task_id: str,
    agent_id: str,
    agent_type: str = "agent",
    message: str = "",
    tmux_session: str | None = None,
    tmux_socket: str | None = None,
    pid: int | None = None,
) -> AgentReport:
    """Register an agent with where it runs and where the repository stands."""
    message = kept(guard, message)
    return agents.spawn(
        guard.writable_store,
        guard.clock.now(),
        task_id=task_id,
        agent_id=agent_id,
        agent_type=agent_type,
        message=message,
        keep_finished=guard.lenient_settings.registry.keep_finished,
        place=_place(guard, tmux_session, tmux_socket, pid, None),
        ground=ground_of(guard),
    )


def updated(
    guard: Invocation,
    *,
    task_id: str,
    agent_id: str,
    status: AgentStatus,
    message: str = "",
    progress: int | None = None,
    incarnation: int | None = None,
    tmux_session: str | None = None,
    tmux_socket: str | None = None,
    pid: int | None = None,
    strict: bool = False,
) -> AgentReport:
    """Record a report; a completion is held against the evidence first.

    Only that, and a place, need the registry beforehand: for all else it is read once, when the lock is held.
    """
    now, validation, message = guard.clock.now(), None, kept(guard, message)
    incarnation = _life(guard, task_id, agent_id, incarnation)
    is_claim, is_placed = status == "completed", not (tmux_session is None and pid is None)
    agent = known(guard, task_id, agent_id) if is_claim or is_placed or _is_new(guard) else None
    if is_claim and agent is not None:
        incarnation = agent.incarnation if incarnation is None else incarnation
        if agent.status in ACTIVE and incarnation == agent.incarnation:
            from guard.claims.validate import validate_claim

            validation = validate_claim(guard, agent, message, now)
    return agents.update(
        guard.writable_store,
        now,
        task_id=task_id,
        agent_id=agent_id,
        status=status,
        message=message,
        progress=progress,
        incarnation=incarnation,
        place=_place(guard, tmux_session, tmux_socket, pid, agent),
        validation=validation,
        strict=strict or guard.lenient_settings.claims.strict,
    )


def found(
    guard: Invocation,
    *,
    task_id: str,
    agent_id: str,
    text: str,
    severity: str = "info",
    file: str | None = None,
    incarnation: int | None = None,
) -> AgentReport:
    """Record a finding."""
    if _is_new(guard):
        known(guard, task_id, agent_id)
    return agents.note(
        guard.writable_store,
        guard.clock.now(),
        AgentFindingRecorded,
        task_id=task_id,
        agent_id=agent_id,
        incarnation=_life(guard, task_id, agent_id, incarnation),
        text=kept(guard, text),
        severity=severity,
        file=valid(file) if file is not None else None,
    )


def ran_tests(
    guard: Invocation,
    *,
    task_id: str,
    agent_id: str,
    command: tuple[str, ...],
    timeout: float | None = None,
    incarnation: int | None = None,
) -> AgentReport:
    """Run a test command and record how it ended."""
    newest = known(guard, task_id, agent_id).incarnation
    life = _life(guard, task_id, agent_id, incarnation)
    begun = time.monotonic()
    try:
        code = passed_on(command, environ=guard.environ, time_limit=timeout)
    except OSError as error:
        raise WrongUsage(
            f"{command[0]!r} does not start: {error.strerror}", "check the command after `--`"
        ) from None
    return agents.note(
        guard.writable_store,
        guard.clock.now(),
        AgentTested,
        task_id=task_id,
        agent_id=agent_id,
        incarnation=newest if life is None else life,
        command=tuple(shorten(valid(word), _LONGEST_WORD) for word in command[:_MOST_WORDS]),
        exit_code=code,
        elapsed_seconds=time.monotonic() - begun,
    )


def _is_new(guard: Invocation) -> bool:
    """Whether nothing was ever recorded here: a report of an agent that nobody registered makes no workspace."""
    return not guard.workspace.path.exists()


def _life(guard: Invocation, task_id: str, agent_id: str, incarnation: int | None) -> int | None:
    """Which life of the agent speaks: as it says, or as the environment says that its starter gave it; None for the newest."""
    if incarnation is not None:
        return incarnation
    told = guard.environ.get("GUARD_AGENT_INCARNATION", "")
    names = {"GUARD_TASK_ID": task_id, "GUARD_AGENT_ID": agent_id}
    is_meant = all(guard.environ.get(name, own) == own for name, own in names.items())
    if not told or not is_meant:
        return None
    if not told.isdecimal():
        raise WrongUsage(
            f"GUARD_AGENT_INCARNATION is {told!r}, which is no number", "unset it, or mend it"
        )
    return int(told)


def kept(guard: Invocation, message: str) -> str:
    """The message as it can be recorded: a report must not be lost for its words."""
    kept = shorten(valid(message), _LONGEST_MESSAGE)
    if kept != message:
        guard.output.warn("the message was cut or has bytes that are no text; the rest is recorded")
    return kept


def age_of(guard: Invocation, agent: Agent) -> float:
    """For how long it has been known where the agent runs; by the boot clock, unless the machine was restarted since."""
    boot, at = agent.placed_boot_seconds, agent.placed_at or agent.spawned_at
    same = agent.host is not None and agent.host.boot_id == here().boot_id
    if same and boot is not None:
        return max(0.0, guard.clock.boot() - boot)
    return max(0.0, (guard.clock.now() - at).total_seconds())


def _place(
    guard: Invocation,
    session: str | None,
    socket: str | None,
    pid: int | None,
    known_agent: Agent | None,
) -> Placing | None:
    """Where the agent runs; what is not said now stays as it was known on this host."""
    if session is None and pid is None:
        if socket is not None:
            raise WrongUsage("a tmux socket without a session", "name it with --tmux-session")
        return None
    where, warnings = place(session, socket, pid, guard.environ)
    for warning in warnings:
        guard.output.warn(warning)
    if known_agent is not None and known_agent.host == where.host:
        names = [name for name in Whereabouts.model_fields if getattr(where, name) is not None]
        told = {name: getattr(where, name) for name in names}
        if pid is not None:
            told["pid_start"] = where.pid_start
        if session is not None:
            told["tmux_identity"] = where.tmux_identity
        where = known_agent.whereabouts.model_copy(update=told)
    return Placing(where, guard.clock.boot())


def ground_of(guard: Invocation) -> Ground | None:
    """Where the repository stands. An agent may work without one; its claims are then not measured."""
    from guard.claims.changes import read_ground

    repository = guard.repository_if_any
    if repository is None:
        return None
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    try:
        return read_ground(repository, guard.environ, limit)
    except RepositoryProblem as error:
        guard.output.warn(f"where the repository stands is not known: {error.message}")
        return None
