"""Keep the agent of a run in the registries, from the start of an iteration to its verdict.

The agent's place is that of guard, which is there before the agent and after it.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Literal

from guard.agents import registry
from guard.agents.liveness import is_inside, locate, look, seconds_since_placed
from guard.claims.changes import current_ground
from guard.context.invocation import Invocation
from guard.coordinator.guarded_agents import events_at_end, events_at_start, record_signals
from guard.core.agents.agent import ACTIVE, BY_VERDICT, Agent
from guard.core.agents.events import AgentStatus
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.agents.report import AgentReport, transition_line
from guard.core.agents.whereabouts import Placing, Whereabouts
from guard.core.base.text import shorten, utf8_text
from guard.core.check.report import CheckReport
from guard.core.check.words import verdict_line
from guard.core.claims.completion_validation import CompletionValidation
from guard.core.coordinator.from_registry import STOPPED_WITH_GUARD, IterationEnd
from guard.core.iteration.facts import Process
from guard.errors import GuardError, Refused
from guard.system.host import read_host

_KEEPER = ("host", "keeper_pid", "keeper_start")
_MOST_ATTEMPTS = 20
_LONGEST = 400
_LONGEST_MESSAGE = 65000

EntryOwner = Literal["ours", "ended", "unknown", "taken"]


@dataclass(frozen=True)
class RegistryEntry:
    """One life of an agent, while this guard runs it."""

    guard: Invocation
    agent: Agent
    """As it was when the iteration began."""
    in_loop: bool

    @property
    def identity(self) -> dict[str, str]:
        """Return the variables by which the agent can report about itself."""
        return {
            "GUARD_TASK_ID": self.agent.task_id,
            "GUARD_AGENT_ID": self.agent.agent_id,
            "GUARD_AGENT_INCARNATION": str(self.agent.incarnation),
        }

    def record_process(self, process: Process | None) -> None:
        """Record the agent's own process: if guard is killed, the agent may live on."""
        where = self.agent.whereabouts
        if process is not None and where.pid is None and where.tmux_session is None:
            placed = where.model_copy(update={"pid": process.pid, "pid_start": process.start})
            with suppress(GuardError):
                placing = Placing(placed, self.guard.clock.boot())
                store, now = self.guard.writable_store, self.guard.clock.now()
                registry.record_place(store, now, self.agent, placing)

    def record_verdict(self, report: CheckReport) -> None:
        """Report the status that the verdict means for the agent."""
        status = BY_VERDICT.get(report.status, "working")
        line = verdict_line(report.status, report.reason, "")
        message = f"iteration {report.iteration}: {line}"
        left = status in ACTIVE and not self.in_loop
        where = _without_guard(self.agent.whereabouts, self.guard.environ) if left else None
        claim = self._validate(report) if status == "completed" else None
        signals = self._last_words(report)
        record_signals(self.guard, self.agent, signals, f"{report.run}-{report.iteration}")
        end = IterationEnd(
            status=report.status,
            reason=report.reason,
            detail=report.detail,
            commits=report.new_commits + report.rescued_commits,
            retry_at=report.retry_at,
            goes_on=self.in_loop,
        )
        also = partial(events_at_end, self.guard, self.agent, end, status, message)
        self._report(status, message, where, report.run, report.iteration, claim, also)

    def _last_words(self, report: CheckReport) -> str:
        """Return what the agent said last; empty if it cannot be read, because a verdict is recorded in any case."""
        from guard.claims.session import session_of_iteration

        now = self.guard.clock.now()
        try:
            session = session_of_iteration(self.guard, report.run, report.iteration)
            return utf8_text(session.last_words(now.astimezone()))
        except GuardError as error:
            self.guard.output.warn(f"guard cannot read what {self.agent.agent_id} said: {error}")
            return ""

    def _validate(self, report: CheckReport) -> CompletionValidation | None:
        """Validate what the agent said last; None if that fails, because a verdict is recorded in any case."""
        from guard.claims.session import session_of_iteration
        from guard.claims.validate import validate_claim

        guard, now = self.guard, self.guard.clock.now()
        agent = _find_agent(guard, self.agent.task_id, self.agent.agent_id) or self.agent
        try:
            session = session_of_iteration(guard, report.run, report.iteration)
            message = shorten(utf8_text(session.last_message(now.astimezone())), _LONGEST_MESSAGE)
            found = validate_claim(guard, agent, message, now, silent=not message, session=session)
        except GuardError as error:
            guard.output.warn(f"guard cannot validate the completion of {agent.agent_id}: {error}")
            return None
        return found.validation

    def record_failure(self, why: str) -> None:
        # Guard could not go on, and what became of the agent's work is not known: it is no longer an active agent.
        with suppress(GuardError, OSError):
            self._report("error", shorten(utf8_text(why), _LONGEST), None)

    def record_stop(self, why: str) -> None:
        """Record that the agent was ended with its guard, by the user or by `guard agent kill`."""
        agent = _find_agent(self.guard, self.agent.task_id, self.agent.agent_id)
        if agent is not None and agent.incarnation == self.agent.incarnation:
            reason = shorten(f"guard was stopped: {utf8_text(why)}", _LONGEST)
            store, now = self.guard.writable_store, self.guard.clock.now()
            _tell(self.guard, registry.record_kill(store, now, agent, reason, STOPPED_WITH_GUARD))

    def _report(
        self,
        status: AgentStatus,
        message: str,
        where: Whereabouts | None,
        run: str | None = None,
        iteration: int | None = None,
        validation: CompletionValidation | None = None,
        also: registry.Also = registry.nothing_else,
    ) -> None:
        agent, clock = self.agent, self.guard.clock
        update = registry.AgentUpdate(
            agent.task_id,
            agent.agent_id,
            status,
            message,
            incarnation=agent.incarnation,
            run=run,
            iteration=iteration,
        )
        place = Placing(where, clock.boot()) if where is not None else None
        store, now = self.guard.writable_store, clock.now()
        report = registry.update(store, now, update, place=place, validation=validation, also=also)
        _tell(self.guard, report)


def enter_registry(
    guard: Invocation,
    task: str,
    agent_id: str | None,
    kind: str,
    *,
    agent_type: str | None = None,
    in_loop: bool = False,
) -> RegistryEntry:
    """Register the agent as working on the task, again or for the first time.

    An agent that waited or was limited goes on with its life. While another guard runs an agent, its name is taken: an agent
    that was not named gets the next free name.
    """
    for name in [agent_id] if agent_id else _names(kind):
        for _ in range(_MOST_ATTEMPTS):
            known = _find_agent(guard, task, name)
            owner, detail = _owner_of(guard, known) if known is not None else ("ended", "")
            if owner == "taken" and agent_id is None:
                break
            if owner == "taken":
                raise Refused(
                    f"agent {name} of task {task} is active already ({detail})",
                    "give the agent of this run another name with --agent-id",
                )
            report = _join(guard, task, name, agent_type or kind, known, owner, detail)
            if report is not None:
                _tell(guard, report)
                if agent_id is None and name != kind:
                    guard.output.warn(
                        f"the name {kind} is taken in task {task}: this agent is called {name}"
                    )
                return RegistryEntry(guard, report.agent, in_loop)
    raise Refused(
        f"the agents of task {task} changed at every attempt to join them", "run the command again"
    )


def _names(kind: str) -> Iterator[str]:
    yield kind
    for number in count(2):
        yield f"{kind}-{number}"


def _find_agent(guard: Invocation, task: str, name: str) -> Agent | None:
    view = guard.store.view(AGENT_REGISTRY, task, part=name)
    return view.agent(name) if view else None


def _owner_of(guard: Invocation, known: Agent) -> tuple[EntryOwner, str]:
    """Tell who owns a registered agent: this guard, another one that lives, one that has ended, or an unknown one."""
    where = known.whereabouts
    if known.status not in ACTIVE:
        return "ended", ""
    if not where.is_known or is_this_guard(where) or is_inside(where, guard.environ):
        return "ours", ""
    seen = look(where, age_seconds=seconds_since_placed(known, guard.clock), here=read_host())
    if seen.state == "ended":
        return "ended", seen.detail
    return ("taken" if seen.state == "alive" else "unknown"), seen.detail


def _this_guard() -> Whereabouts:
    own, _ = locate(None, None, os.getpid())
    return Whereabouts(host=own.host, keeper_pid=own.pid, keeper_start=own.pid_start)


def is_this_guard(where: Whereabouts) -> bool:
    return all(getattr(where, name) == getattr(_this_guard(), name) for name in _KEEPER)


def _without_guard(where: Whereabouts, environ: Mapping[str, str]) -> Whereabouts:
    # What others reported of the place: without its guard, and without a process that guard itself started.
    own = {"keeper_pid": None, "keeper_start": None}
    if where.keeper_pid is not None and not is_inside(where, environ):
        own |= {"pid": None, "pid_start": None}
    return where.model_copy(update=own)


def _join(
    guard: Invocation,
    task: str,
    name: str,
    kind: str,
    known: Agent | None,
    owner: EntryOwner,
    detail: str,
) -> AgentReport | None:
    """Put the agent to work under this guard; None if the registry changed meanwhile and has to be read again."""
    store, now, own = guard.writable_store, guard.clock.now(), _this_guard()
    also = partial(events_at_start, guard, task, name)
    if known is not None and owner == "ours":
        update = {name: getattr(own, name) for name in _KEEPER}
        where = _without_guard(known.whereabouts, guard.environ).model_copy(update=update)
        placing = Placing(where, guard.clock.boot())
        return registry.resume_work(store, now, known, placing, also)
    if known is not None and known.status in ACTIVE and owner == "ended":
        registry.record_end(store, now, known, detail[:512], None)
        return None
    if known is not None and owner == "unknown":
        guard.output.warn(f"guard takes over agent {name} of task {task}: {detail}")
        registry.give_up(store, now, known, f"taken over by another run: {detail}"[:_LONGEST])
        return None
    try:
        return registry.spawn(
            store,
            now,
            task_id=task,
            agent_id=name,
            agent_type=kind,
            keep_finished=guard.config.settings.registry.keep_finished,
            place=Placing(own, guard.clock.boot()),
            ground=current_ground(guard),
            also=also,
        )
    except Refused:
        return None


def _tell(guard: Invocation, report: AgentReport) -> None:
    if report.recorded_as == "spawned" or report.previous_status != report.agent.status:
        guard.output.note(transition_line(report))
