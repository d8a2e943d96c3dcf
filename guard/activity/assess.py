"""One agent, found in the registries, and assessed by what all sources show of it."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import assert_never

from guard.activity import learn as learning
from guard.activity.clocks import gaps_here
from guard.activity.look import HISTORY_MINUTES, Look, look
from guard.activity.shared_scan import Reported, Shared
from guard.activity.subject import AgentSubject
from guard.context.ids import checked_id
from guard.context.invocation import Invocation
from guard.coordinator.register_agents import INFRASTRUCTURE
from guard.core.activity.gaps import Gap
from guard.core.activity.plan_events import Claim, claims
from guard.core.activity.report import ActivityLook, ActivityReport, activity_report
from guard.core.activity.settings import ActivitySettings
from guard.core.activity.watched import WATCHED_AGENT, WatchedAgent
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.baseline import AGENT_BASELINE, baseline_key
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.base.paths import unspelled
from guard.core.coordinator.state import COORDINATOR, Coordinator
from guard.core.coordinator.task_status import waiting
from guard.core.events.agent import AgentFindingRecorded, AgentTested, AgentUpdated
from guard.core.events.base import BaseEvent
from guard.core.events.whereabouts import Host
from guard.core.iteration.run import RUN
from guard.errors import Refused, WrongUsage
from guard.system.host import here, same_place


def activity_of(
    guard: Invocation,
    agent_id: str,
    *,
    task_id: str | None = None,
    lookback_minutes: float | None = None,
    all_sources: bool = False,
) -> ActivityReport:
    """Whether an agent is at work, with all that speaks for it."""
    agent = find(guard, agent_id, task_id)
    settings = guard.config.settings.activity
    subject = subject_of(guard, agent, settings, KnownAgents(guard), Shared())
    seen = look(subject, option=lookback_minutes, all_sources=all_sources)
    watched = learning.learned(guard, subject, seen)
    return activity_report(agent, _seen(seen), watched)


def _seen(seen: Look) -> ActivityLook:
    warnings, last = seen.collected.warnings, seen.last_seen
    return ActivityLook(seen.assessment, seen.terms, seen.lookback, seen.rhythm, warnings, last)


def taught(
    guard: Invocation,
    agent_id: str,
    *,
    task_id: str | None,
    false_alarm: bool,
    forget: bool,
    reason: str,
) -> None:
    """Record what a person says of the prompts that an agent was sent."""
    if false_alarm and forget:
        raise WrongUsage(
            "--false-alarm and --forget contradict each other", "say one, then the other"
        )
    agent = find(guard, agent_id, task_id)
    if false_alarm:
        learning.call_false(guard, agent, reason)
    elif not learning.forget(guard, agent, reason):
        guard.output.warn(f"nothing was learned of agent {agent.agent_id}")


def find(guard: Invocation, agent_id: str, task_id: str | None) -> Agent:
    """The agent of this name: of the task if one is named, else the one that there is, an active one first.

    Of several active ones it is the one that the coordinator has at work.
    """
    checked_id("an agent id", agent_id)
    if task_id is None:
        registries = list(guard.store.views(AGENT_REGISTRY).values())
    else:
        named = guard.store.view(AGENT_REGISTRY, checked_id("a task id", task_id))
        registries = [named] if named is not None else []
    found = [one for registry in registries if (one := registry.agent(agent_id))]
    active = [one for one in found if one.status in ACTIVE]
    if len(active) > 1:
        at = _tasks(guard.store.view(COORDINATOR)).get(agent_id)
        active = [one for one in active if one.task_id == at] or active
    if len(found) == 1 or len(active) == 1:
        return (active or found)[0]
    if not found:
        where = f" in task {task_id}" if task_id else ""
        raise Refused(f"there is no agent {agent_id}{where}", "`guard agent list --all` shows all")
    tasks = ", ".join(sorted(one.task_id for one in found)[:5])
    raise Refused(f"several tasks have an agent {agent_id}: {tasks}", "name one with --task")


def registered_in(guard: Invocation, agent_id: str, task_id: str) -> str | None:
    """The task by whose name an agent at this one is found; None if it is registered elsewhere, under its own name."""
    registry = guard.store.view(AGENT_REGISTRY, task_id)
    return task_id if registry is not None and registry.agent(agent_id) else None


class KnownAgents:
    """What the log knows of the agents, looked up once for all: where they began, what they reported, their sessions."""

    def __init__(self, guard: Invocation) -> None:
        self._baselines = guard.store.views(AGENT_BASELINE)
        self._watched = guard.store.views(WATCHED_AGENT)
        self._guard = guard
        plan = guard.store.view(COORDINATOR)
        recent = [entry.event for entry in guard.store.recent()]
        self._reports, self._claims = _reports(recent), claims(recent, _tasks(plan))
        self._sessions = dict(_sessions(guard))
        overall = guard.store.view(GLOBAL_REGISTRY)
        idle = waiting(plan)
        active = [one for one in overall.agents if one.status in ACTIVE] if overall else []
        at_work = (one for one in active if (one.task_id, one.agent_id) not in idle)
        self._roots = Counter(self.root_of(one) for one in at_work)

    def root_of(self, agent: Agent) -> str | None:
        """The work tree as the log spells it; None if nobody recorded it."""
        baseline = self._baselines.get(baseline_key(agent.task_id, agent.agent_id))
        return baseline.root if baseline and baseline.incarnation == agent.incarnation else None

    def is_alone(self, root: str | None) -> bool:
        """Whether one active agent at most began there. People may work there too, and nothing tells them apart."""
        return root is not None and not self._roots[None] and self._roots[root] <= 1

    def reports_of(self, agent: Agent) -> tuple[Reported, ...]:
        """What it reported lately; of what is older the registry knows the newest."""
        known = self._reports.get((agent.task_id, agent.agent_id, agent.incarnation), ())
        if known or not agent.updates:
            return tuple(known)
        return (Reported(agent.updated_at.timestamp(), f"reported {agent.status}", agent.message),)

    def watched(self, agent: Agent) -> WatchedAgent | None:
        """The prompts that it was sent, and what was learned of it."""
        return self._watched.get(baseline_key(agent.task_id, agent.agent_id))

    def gaps_of(self, agent: Agent) -> tuple[Gap, ...]:
        """When the machine was away that it runs on, if that is this one."""
        return () if same_place(agent.host, self._here) == "elsewhere" else self._gaps

    @cached_property
    def _here(self) -> Host:
        return here()

    @cached_property
    def _gaps(self) -> tuple[Gap, ...]:
        return gaps_here(self._guard)

    def claims_of(self, agent: Agent) -> tuple[Claim, ...]:
        """What the coordinator recorded of it lately, also at a task that was claimed for it."""
        found = [
            claim
            for (task_id, agent_id), ours in self._claims.items()
            if agent_id == agent.agent_id and self._is_at(agent, task_id)
            for claim in ours
        ]
        return tuple(sorted(found))

    def _is_at(self, agent: Agent, task_id: str) -> bool:
        """Whether it works under its own registration there: it has none of that task."""
        if agent.task_id == task_id:
            return True
        return registered_in(self._guard, agent.agent_id, task_id) is None

    def session_of(self, agent: Agent) -> tuple[str, str] | None:
        """The session of its process, if guard started that and learned the session's id."""
        process = (agent.pid, agent.pid_start)
        return self._sessions.get(process) if agent.pid is not None else None


def subject_of(
    guard: Invocation,
    agent: Agent,
    settings: ActivitySettings,
    known_agents: KnownAgents,
    shared: Shared,
) -> AgentSubject:
    """The agent with the work tree in which it works; that of the call where it is not known."""
    known, here = known_agents.root_of(agent), guard.repository_if_any
    root = Path(os.fsdecode(unspelled(known))) if known else here.root if here else None
    return AgentSubject(
        agent=agent,
        root=root if root is not None and root.is_dir() else None,
        alone=known_agents.is_alone(known),
        clock=guard.clock,
        settings=settings,
        reports=known_agents.reports_of(agent),
        claims=known_agents.claims_of(agent),
        session=known_agents.session_of(agent),
        not_its=guard.workspace.path,
        environ=guard.environ,
        git_seconds=guard.users_config.settings.completion_check.git_timeout_seconds,
        shared=shared,
        reach_minutes=HISTORY_MINUTES,
        watched=known_agents.watched(agent),
        gaps=known_agents.gaps_of(agent),
    )


def _tasks(state: Coordinator | None) -> dict[str, str]:
    """At which task the coordinator has each agent."""
    active = state.active_agents.items() if state is not None else ()
    return {agent_id: one.task_id or INFRASTRUCTURE for agent_id, one in active}


def _reports(events: Iterable[BaseEvent]) -> dict[tuple[str, str, int], list[Reported]]:
    """What agents reported, by agent, as far as the newest part of the log goes."""
    found: dict[tuple[str, str, int], list[Reported]] = {}
    for event in events:
        if isinstance(event, AgentUpdated | AgentFindingRecorded | AgentTested):
            key = (event.task_id, event.agent_id, event.incarnation)
            found.setdefault(key, []).append(_reported(event))
    return found


def _reported(event: AgentUpdated | AgentFindingRecorded | AgentTested) -> Reported:
    seconds = event.at.timestamp()
    match event:
        case AgentUpdated():
            progress = f", {event.progress} %" if event.progress is not None else ""
            return Reported(seconds, f"reported {event.status}{progress}", event.message)
        case AgentFindingRecorded():
            return Reported(seconds, "recorded a finding", event.text)
        case AgentTested():
            return Reported(seconds, "ran tests under guard", "")
        case _:
            assert_never(event)


def _sessions(guard: Invocation) -> Iterator[tuple[tuple[int | None, str | None], tuple[str, str]]]:
    """The sessions of processes that guard started, in iterations that are open."""
    for run in guard.store.views(RUN).values():
        opened = run.open_iteration
        if opened is not None and opened.process and opened.agent and opened.session:
            process = (opened.process.pid, opened.process.start)
            yield process, (opened.agent, opened.session)
