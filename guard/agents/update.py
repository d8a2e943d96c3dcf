"""Record what agents and their starters report, after gathering the facts around each report."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from guard.agents import registry
from guard.agents.liveness import locate
from guard.agents.registry import AgentUpdate
from guard.context.ids import check_id
from guard.context.invocation import Invocation
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.events import AgentFindingRecorded, AgentTested, Severity
from guard.core.agents.findings import FINDINGS
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.agents.report import AgentReport
from guard.core.agents.whereabouts import Placing, Whereabouts
from guard.core.base.first_use import dataclass
from guard.core.base.text import shorten, utf8_text
from guard.core.log.view import ViewKind
from guard.errors import WrongUsage
from guard.store import Change
from guard.system.processes import run_on_stderr

_MOST_WORDS = 64
_LONGEST_WORD = 200
_LONGEST_MESSAGE = 65000


@dataclass(frozen=True)
class PlaceOptions:
    """The place where an agent runs, as the caller names it; all None if the caller does not."""

    tmux_session: str | None = None
    tmux_socket: str | None = None
    pid: int | None = None

    @property
    def is_given(self) -> bool:
        return self.tmux_session is not None or self.pid is not None


_NO_PLACE = PlaceOptions()


def require_agent(guard: Invocation, task_id: str, agent_id: str) -> Agent:
    check_id("an agent id", agent_id)
    view = guard.store.view(AGENT_REGISTRY, check_id("a task id", task_id), part=agent_id)
    agent = view.agent(agent_id) if view else None
    if agent is None:
        raise registry.unknown_agent(task_id, agent_id)
    return agent


def spawn_agent(
    guard: Invocation,
    task_id: str,
    agent_id: str,
    agent_type: str = "agent",
    message: str = "",
    place: PlaceOptions = _NO_PLACE,
) -> AgentReport:
    from guard.claims.changes import current_ground

    message = recordable_message(guard, message)
    return registry.spawn(
        guard.writable_store,
        guard.clock.now(),
        task_id=task_id,
        agent_id=agent_id,
        agent_type=agent_type,
        message=message,
        keep_finished=guard.config.settings.registry.keep_finished,
        place=_find_place(guard, place, None),
        ground=current_ground(guard),
    )


def update_agent(
    guard: Invocation,
    update: AgentUpdate,
    place: PlaceOptions = _NO_PLACE,
    *,
    strict: bool = False,
) -> AgentReport:
    # A claim of completion is validated first.
    guard.enter_run(update.task_id, update.agent_id)
    now, validation = guard.clock.now(), None
    task_id, agent_id = update.task_id, update.agent_id
    message = recordable_message(guard, update.message)
    incarnation = _reporting_incarnation(guard, task_id, agent_id, update.incarnation)
    is_claim = update.status == "completed"
    # Only a claim and a place need the registry beforehand; otherwise it is read once, under the lock.
    agent = None
    if is_claim or place.is_given or _is_new(guard):
        agent = require_agent(guard, task_id, agent_id)
    if is_claim and agent is not None:
        incarnation = agent.incarnation if incarnation is None else incarnation
        if agent.status in ACTIVE and incarnation == agent.incarnation:
            from guard.claims.validate import validate_claim

            validation, needs_person = validate_claim(guard, agent, message, now)
            update = replace(update, status="blocked") if needs_person else update
    return registry.update(
        guard.writable_store,
        now,
        replace(update, message=message, incarnation=incarnation),
        place=_find_place(guard, place, agent),
        validation=validation,
        strict=strict or guard.config.settings.claims.strict,
    )


def record_finding(
    guard: Invocation,
    task_id: str,
    agent_id: str,
    text: str,
    *,
    severity: Severity = "info",
    file: str | None = None,
    incarnation: int | None = None,
) -> AgentReport:
    guard.enter_run(task_id, agent_id)
    if _is_new(guard):
        require_agent(guard, task_id, agent_id)
    incarnation = _reporting_incarnation(guard, task_id, agent_id, incarnation)
    text = recordable_message(guard, text)
    with _change_of(guard, task_id, agent_id, incarnation, FINDINGS) as (change, before, stamp):
        spelled = utf8_text(file) if file is not None else None
        event = AgentFindingRecorded(**stamp, text=text, severity=severity, file=spelled)
        change.append(event)
        return registry.make_report(change, event, "finding", before)


def run_tests(
    guard: Invocation,
    task_id: str,
    agent_id: str,
    command: tuple[str, ...],
    *,
    timeout: float | None = None,
    incarnation: int | None = None,
) -> AgentReport:
    guard.enter_run(task_id, agent_id)
    newest = require_agent(guard, task_id, agent_id).incarnation
    given = _reporting_incarnation(guard, task_id, agent_id, incarnation)
    begun = time.monotonic()
    try:
        code = run_on_stderr(command, environ=guard.environ, time_limit=timeout)
    except OSError as error:
        raise WrongUsage(
            f"{command[0]!r} does not start: {error.strerror}", "check the command after `--`"
        ) from None
    elapsed = time.monotonic() - begun
    incarnation = newest if given is None else given
    with _change_of(guard, task_id, agent_id, incarnation) as (change, before, stamp):
        event = AgentTested(
            **stamp,
            command=tuple(
                shorten(utf8_text(word), _LONGEST_WORD) for word in command[:_MOST_WORDS]
            ),
            exit_code=code,
            elapsed_seconds=elapsed,
        )
        change.append(event)
        return registry.make_report(change, event, "test_run", before)


@contextmanager
def _change_of(
    guard: Invocation,
    task_id: str,
    agent_id: str,
    incarnation: int | None,
    *touched: ViewKind[Any, Any],
) -> Iterator[tuple[Change, Agent, registry.AgentStamp]]:
    """Make a change about an agent, which also touches these views of its task."""
    now = guard.clock.now()
    with guard.writable_store.change() as change, registry.refuse_invalid_fields():
        for kind in touched:
            change.expect(kind, task_id)
        before = registry.require_agent(change, task_id, agent_id)
        number = registry.check_incarnation(before, incarnation)
        yield change, before, registry.make_stamp(now, task_id, agent_id, number)


def _is_new(guard: Invocation) -> bool:
    # A report of an unregistered agent must not create a workspace.
    guard.store.refuse_lost_log()
    return not guard.store.exists()


def _reporting_incarnation(
    guard: Invocation, task_id: str, agent_id: str, incarnation: int | None
) -> int | None:
    # The agent's starter put its incarnation into the environment; None stands for the newest.
    if incarnation is not None:
        return incarnation
    text = guard.environ.get("GUARD_AGENT_INCARNATION", "")
    ids = {"GUARD_TASK_ID": task_id, "GUARD_AGENT_ID": agent_id}
    is_meant = all(guard.environ.get(name, own) == own for name, own in ids.items())
    if not text or not is_meant:
        return None
    if not text.isdecimal():
        raise WrongUsage(
            f"GUARD_AGENT_INCARNATION is {text!r}, which is not a number",
            "unset the variable or fix its value",
        )
    return int(text)


def recordable_message(guard: Invocation, message: str) -> str:
    """Return the message cut and cleaned so that it can be recorded; a report must not fail for its wording."""
    recorded = shorten(utf8_text(message), _LONGEST_MESSAGE)
    if recorded != message:
        guard.output.warn("the message was cut or has bytes that are no text; the rest is recorded")
    return recorded


def _find_place(guard: Invocation, place: PlaceOptions, agent: Agent | None) -> Placing | None:
    # An option that the caller does not give stays as recorded on this host.
    if not place.is_given:
        if place.tmux_socket is not None:
            raise WrongUsage(
                "a tmux socket was named without a session", "name the session with --tmux-session"
            )
        return None
    where, warnings = locate(place.tmux_session, place.tmux_socket, place.pid, guard.environ)
    for warning in warnings:
        guard.output.warn(warning)
    if agent is not None and agent.host == where.host:
        found = {name: getattr(where, name) for name in Whereabouts.model_fields}
        news = {name: value for name, value in found.items() if value is not None}
        if place.pid is not None:
            news["pid_start"] = where.pid_start
        if place.tmux_session is not None:
            news["tmux_identity"] = where.tmux_identity
        where = agent.whereabouts.model_copy(update=news)
    return Placing(where, guard.clock.boot())
