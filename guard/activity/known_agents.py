"""What the log knows about the agents that are assessed, and when this machine slept or was off."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import assert_never

from guard.activity.subject import AgentSubject, ReportedWord, SharedScan
from guard.context.ids import check_id, new_id
from guard.context.invocation import Invocation
from guard.core.activity import clocks
from guard.core.activity.events import ClocksRead
from guard.core.activity.plan_events import Claim, claims_by_agent
from guard.core.activity.state import WATCHED_AGENT
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.baseline import AGENT_BASELINE, baseline_key
from guard.core.agents.events import AgentFindingRecorded, AgentTested, AgentUpdated
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.agents.whereabouts import Host
from guard.core.base.paths import unspell
from guard.core.coordinator.from_registry import INFRASTRUCTURE
from guard.core.coordinator.state import COORDINATOR, Coordinator, waiting_work
from guard.core.iteration.run import RUN
from guard.core.log.events import BaseEvent
from guard.errors import GuardError, Refused
from guard.system.clock import Clock
from guard.system.host import compare_hosts, read_host
from guard.system.process_identity import boot_id

HISTORY_MINUTES = 7 * 24 * 60
"""How far back signs are collected to learn an agent's rhythm."""
CLOCK_SECONDS = 600.0
"""How often the clocks are recorded while agents are assessed, if they show no gap."""


def machine_gaps(guard: Invocation) -> tuple[clocks.Gap, ...]:
    """Read the clocks, record them if that tells something new, and return when this machine slept or was off."""
    boot = _boot_id(guard.clock)
    if boot is None:
        return ()
    clock, host = guard.clock, read_host()
    now = clocks.MachineClock(
        at=clock.now(), boot_seconds=clock.boot(), awake_seconds=clock.awake(), boot_id=boot
    )
    machine = host.machine or host.name
    view = guard.store.view(clocks.MACHINE_CLOCKS, clocks.machine_key(machine))
    before = view.readings if view is not None else ()
    if clocks.is_worth_recording(before, now, CLOCK_SECONDS):
        _record_clocks(guard, machine, now)
    return clocks.find_gaps((*before, now))


def _boot_id(clock: Clock) -> str | None:
    # A clock that is stopped for a test has no boot, unless the test says how long the machine slept.
    if clock.fixed is None:
        return boot_id()
    return None if clock.slept is None else "stopped"


def _record_clocks(guard: Invocation, machine: str, now: clocks.MachineClock) -> None:
    try:
        with guard.writable_store.change() as change:
            change.append(ClocksRead(id=new_id(), machine=machine, **dict(now)))
    except GuardError as error:
        guard.output.warn(f"cannot record the clocks: {error.message}")


def find_agent(guard: Invocation, agent_id: str, task_id: str | None) -> Agent:
    """Find an agent by its id; an active one wins, and of several the one that the coordinator has at work."""
    check_id("an agent id", agent_id)
    if task_id is None:
        registries = list(guard.store.views(AGENT_REGISTRY).values())
    else:
        named = guard.store.view(AGENT_REGISTRY, check_id("a task id", task_id), part=agent_id)
        registries = [named] if named is not None else []
    found = [agent for registry in registries if (agent := registry.agent(agent_id))]
    active = [agent for agent in found if agent.status in ACTIVE]
    if len(active) > 1:
        at = _tasks_at_work(guard.store.view(COORDINATOR)).get(agent_id)
        active = [agent for agent in active if agent.task_id == at] or active
    if len(found) == 1 or len(active) == 1:
        return (active or found)[0]
    if not found:
        where = f" in task {task_id}" if task_id else ""
        raise Refused(
            f"there is no agent {agent_id}{where}", "`guard agent list --all` lists every agent"
        )
    tasks = ", ".join(sorted(agent.task_id for agent in found)[:5])
    raise Refused(f"several tasks have an agent {agent_id}: {tasks}", "name one with --task")


def is_registered(guard: Invocation, agent_id: str, task_id: str) -> bool:
    registry = guard.store.view(AGENT_REGISTRY, task_id, part=agent_id)
    return registry is not None and registry.agent(agent_id) is not None


class KnownAgents:
    """What the log knows about all agents, read once: where they began, what they reported, their sessions."""

    def __init__(self, guard: Invocation) -> None:
        self._baselines = guard.store.views(AGENT_BASELINE)
        self._watched = guard.store.views(WATCHED_AGENT)
        self._guard = guard
        self._shared = SharedScan()
        plan = guard.store.view(COORDINATOR)
        recent = [entry.event for entry in guard.store.recent()]
        self._reports, self._claims = (
            _reports(recent),
            claims_by_agent(recent, _tasks_at_work(plan)),
        )
        self._sessions = dict(_sessions(guard))
        overall = guard.store.view(GLOBAL_REGISTRY)
        idle = waiting_work(plan)
        active = [agent for agent in overall.agents if agent.status in ACTIVE] if overall else []
        at_work = (agent for agent in active if (agent.task_id, agent.agent_id) not in idle)
        self._roots = Counter(self._spelled_root(agent) for agent in at_work)

    def _spelled_root(self, agent: Agent) -> str | None:
        baseline = self._baselines.get(baseline_key(agent.task_id, agent.agent_id))
        return baseline.root if baseline and baseline.incarnation == agent.incarnation else None

    def work_tree_of(self, agent: Agent) -> Path | None:
        """The work tree that the agent began in, or else that of this call; None if there is none."""
        known, here = self._spelled_root(agent), self._guard.repository_if_any
        root = Path(os.fsdecode(unspell(known))) if known else here.root if here else None
        return root if root is not None and root.is_dir() else None

    def is_alone(self, agent: Agent) -> bool:
        """Tell whether the agent has a work tree of its own: a linked one, in which no other active agent began.

        In the repository's main work tree people work too: what nobody in particular did there shows no agent at work.
        """
        return self.is_only_agent(agent) and self._is_linked(self._spelled_root(agent))

    def is_only_agent(self, agent: Agent) -> bool:
        root = self._spelled_root(agent)
        return root is not None and not self._roots[None] and self._roots[root] <= 1

    def _is_linked(self, root: str | None) -> bool:
        return root is not None and os.path.isfile(os.path.join(unspell(root), b".git"))

    def reports_of(self, agent: Agent) -> tuple[ReportedWord, ...]:
        # Of reports before the newest part of the log, the registry knows the last.
        known = self._reports.get((agent.task_id, agent.agent_id, agent.incarnation), ())
        if known or not agent.updates:
            return tuple(known)[-self._most_events :]
        return (
            ReportedWord(agent.updated_at.timestamp(), f"reported {agent.status}", agent.message),
        )

    def gaps_of(self, agent: Agent) -> tuple[clocks.Gap, ...]:
        # An agent on another machine has gaps that this one does not know.
        return () if compare_hosts(agent.host, self._this_host) == "elsewhere" else self._gaps

    @cached_property
    def _this_host(self) -> Host:
        return read_host()

    @cached_property
    def _gaps(self) -> tuple[clocks.Gap, ...]:
        return machine_gaps(self._guard)

    def claims_of(self, agent: Agent) -> tuple[Claim, ...]:
        """The agent's latest events in the plan, also at a task that was claimed for it."""
        found = [
            claim
            for (task_id, agent_id), ours in self._claims.items()
            if agent_id == agent.agent_id and self._is_at(agent, task_id)
            for claim in ours
        ]
        return tuple(sorted(found))[-self._most_events :]

    @property
    def _most_events(self) -> int:
        return self._guard.config.settings.activity.most_events

    def _is_at(self, agent: Agent, task_id: str) -> bool:
        # An agent without a registration in the task works there under its own.
        return agent.task_id == task_id or not is_registered(self._guard, agent.agent_id, task_id)

    def session_of(self, agent: Agent) -> tuple[str, str] | None:
        """The CLI and the session id of the agent's process, if guard started it and learned the id."""
        process = (agent.pid, agent.pid_start)
        return self._sessions.get(process) if agent.pid is not None else None

    def subject_of(self, agent: Agent) -> AgentSubject:
        guard = self._guard
        return AgentSubject(
            agent=agent,
            root=self.work_tree_of(agent),
            is_alone=self.is_alone(agent),
            clock=guard.clock,
            settings=guard.config.settings.activity,
            reports=self.reports_of(agent),
            claims=self.claims_of(agent),
            session=self.session_of(agent),
            guard_folder=guard.workspace.path,
            environ=guard.environ,
            git_seconds=guard.users_config.settings.completion_check.git_timeout_seconds,
            shared=self._shared,
            reach_minutes=HISTORY_MINUTES,
            watched=self._watched.get(baseline_key(agent.task_id, agent.agent_id)),
            gaps=self.gaps_of(agent),
        )


def _tasks_at_work(state: Coordinator | None) -> dict[str, str]:
    active = state.active_agents.items() if state is not None else ()
    return {agent_id: agent.task_id or INFRASTRUCTURE for agent_id, agent in active}


def _reports(events: Iterable[BaseEvent]) -> dict[tuple[str, str, int], list[ReportedWord]]:
    found: dict[tuple[str, str, int], list[ReportedWord]] = {}
    for event in events:
        if isinstance(event, AgentUpdated | AgentFindingRecorded | AgentTested):
            key = (event.task_id, event.agent_id, event.incarnation)
            found.setdefault(key, []).append(_word(event))
    return found


def _word(event: AgentUpdated | AgentFindingRecorded | AgentTested) -> ReportedWord:
    seconds = event.at.timestamp()
    match event:
        case AgentUpdated():
            progress = f", {event.progress} %" if event.progress is not None else ""
            return ReportedWord(seconds, f"reported {event.status}{progress}", event.message)
        case AgentFindingRecorded():
            return ReportedWord(seconds, "recorded a finding", event.text)
        case AgentTested():
            return ReportedWord(seconds, "ran tests under guard", "")
        case _:
            assert_never(event)


def _sessions(guard: Invocation) -> Iterator[tuple[tuple[int | None, str | None], tuple[str, str]]]:
    for run in guard.store.views(RUN).values():
        opened = run.open_iteration
        if opened is not None and opened.process and opened.agent and opened.session:
            process = (opened.process.pid, opened.process.start)
            yield process, (opened.agent, opened.session)
