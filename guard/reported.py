"""What agents and their starters report: facts around the report are gathered first, then it is recorded."""

import time

from guard import agents
from guard.core.agent_baselines import Ground
from guard.core.agents import Agent
from guard.core.events import AgentFindingRecorded, AgentStatus, AgentTested
from guard.core.lifecycle import ACTIVE
from guard.core.registry import AGENT_REGISTRY
from guard.core.reports.agents import AgentReport
from guard.core.text import shortened, valid
from guard.core.whereabouts import Whereabouts
from guard.errors import RepositoryProblem, WrongUsage
from guard.ids import checked_id
from guard.invocation import Invocation
from guard.placing import place
from guard.processes import passed_on

_MOST_WORDS = 64
_LONGEST_WORD = 200


def known(guard: Invocation, task_id: str, agent_id: str) -> Agent:
    """The agent as it stands; refused if there is none."""
    checked_id("an agent id", agent_id)
    registry = guard.store.view(AGENT_REGISTRY, checked_id("a task id", task_id))
    agent = registry.agent(agent_id) if registry else None
    if agent is None:
        raise agents.unknown(task_id, agent_id)
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
    return agents.spawn(
        guard.writable_store,
        guard.clock.now(),
        task_id=task_id,
        agent_id=agent_id,
        agent_type=agent_type,
        message=message,
        keep_finished=guard.config.settings.registry.keep_finished,
        place=_place(guard, tmux_session, tmux_socket, pid),
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
    """Record a report; a completion is held against the evidence first."""
    now, validation = guard.clock.now(), None
    if status == "completed":
        from guard.claims import validated

        agent = known(guard, task_id, agent_id)
        if agent.status in ACTIVE and incarnation in (None, agent.incarnation):
            incarnation = agent.incarnation
            validation = validated(guard, agent, valid(message), now)
    return agents.update(
        guard.writable_store,
        now,
        task_id=task_id,
        agent_id=agent_id,
        status=status,
        message=message,
        progress=progress,
        incarnation=incarnation,
        place=_place(guard, tmux_session, tmux_socket, pid),
        validation=validation,
        strict=strict or guard.config.settings.claims.strict,
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
    return agents.note(
        guard.writable_store,
        guard.clock.now(),
        AgentFindingRecorded,
        task_id=task_id,
        agent_id=agent_id,
        incarnation=incarnation,
        text=text,
        severity=severity,
        file=file,
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
    agent = known(guard, task_id, agent_id)
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
        incarnation=incarnation or agent.incarnation,
        command=tuple(shortened(valid(word), _LONGEST_WORD) for word in command[:_MOST_WORDS]),
        exit_code=code,
        elapsed_seconds=time.monotonic() - begun,
    )


def _place(
    guard: Invocation, session: str | None, socket: str | None, pid: int | None
) -> Whereabouts | None:
    if session is None and pid is None:
        if socket is not None:
            raise WrongUsage("a tmux socket without a session", "name it with --tmux-session")
        return None
    where, warnings = place(session, socket, pid, guard.environ)
    for warning in warnings:
        guard.output.warn(warning)
    return where


def ground_of(guard: Invocation) -> Ground | None:
    """Where the repository stands. An agent may work without one; its claims are then not measured."""
    from guard.agent_changes import standing

    repository = guard.repository_if_any
    if repository is None:
        return None
    limit = guard.config.settings.completion_check.git_timeout_seconds
    try:
        return standing(repository, guard.environ, limit)
    except RepositoryProblem as error:
        guard.output.warn(f"where the repository stands is not known: {error.message}")
        return None
