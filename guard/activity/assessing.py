"""One agent, found in the registries, and assessed by what all sources show of it."""

import os
from collections import Counter
from pathlib import Path

from guard.activity.collecting import Collected, collect
from guard.activity.shared import Shared
from guard.activity.subject import Subject
from guard.core.activity.assessment import Assessment, Terms, assess
from guard.core.activity.noise import NOISE_PATTERNS
from guard.core.activity.patterns import split
from guard.core.agent_baselines import AGENT_BASELINE, baseline_key
from guard.core.agents import Agent
from guard.core.lifecycle import ACTIVE
from guard.core.paths import unspelled
from guard.core.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.reports.activity import ActivityReport, activity_report
from guard.core.runs import RUN
from guard.core.settings import Activity
from guard.errors import Refused
from guard.ids import checked_id
from guard.invocation import Invocation


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
    if lookback_minutes is not None:
        settings = settings.model_copy(update={"lookback_minutes": lookback_minutes})
    terms = terms_of(settings)
    subject = subject_of(guard, agent, settings, Places(guard), Shared())
    found, seen = assessed(subject, terms, all_sources=all_sources)
    return activity_report(agent.task_id, agent.agent_id, agent.status, found, terms, seen.warnings)


def assessed(
    subject: Subject, terms: Terms, *, all_sources: bool = False
) -> tuple[Assessment, Collected]:
    """The assessment, and what it was made from."""
    seen = collect(subject, all_sources=all_sources)
    return assess(seen.signals, subject.now, terms), seen


def terms_of(settings: Activity) -> Terms:
    """What the settings say of how to assess."""
    return Terms(
        lookback_minutes=settings.lookback_minutes,
        min_confidence=settings.min_confidence,
        noise_patterns=(*NOISE_PATTERNS, *split(settings.noise_patterns)),
    )


def find(guard: Invocation, agent_id: str, task_id: str | None) -> Agent:
    """The agent of this name: of the task if one is named, else the one that there is, an active one first."""
    checked_id("an agent id", agent_id)
    keys = (
        guard.store.keys(AGENT_REGISTRY) if task_id is None else [checked_id("a task id", task_id)]
    )
    registries = [guard.store.view(AGENT_REGISTRY, key) for key in keys]
    found = [one for registry in registries if registry and (one := registry.agent(agent_id))]
    active = [one for one in found if one.status in ACTIVE]
    if len(found) == 1 or len(active) == 1:
        return (active or found)[0]
    if not found:
        where = f" in task {task_id}" if task_id else ""
        raise Refused(f"there is no agent {agent_id}{where}", "`guard agent list --all` shows all")
    tasks = ", ".join(sorted(one.task_id for one in found)[:5])
    raise Refused(f"several tasks have an agent {agent_id}: {tasks}", "name one with --task")


class Places:
    """In which work tree each active agent began, looked up once for all."""

    def __init__(self, guard: Invocation) -> None:
        self._baselines = guard.store.views(AGENT_BASELINE)
        overall = guard.store.view(GLOBAL_REGISTRY)
        active = [one for one in overall.agents if one.status in ACTIVE] if overall else []
        self._roots = Counter(self.root_of(one) for one in active)

    def root_of(self, agent: Agent) -> str | None:
        """The work tree as the log spells it; None if nobody recorded it."""
        baseline = self._baselines.get(baseline_key(agent.task_id, agent.agent_id))
        return baseline.root if baseline and baseline.incarnation == agent.incarnation else None

    def is_alone(self, root: str | None) -> bool:
        """Whether one active agent at most began there. People may work there too, and nothing tells them apart."""
        return root is not None and not self._roots[None] and self._roots[root] <= 1


def subject_of(
    guard: Invocation, agent: Agent, settings: Activity, places: Places, shared: Shared
) -> Subject:
    """The agent with the work tree in which it works; that of the call where it is not known."""
    known, here = places.root_of(agent), guard.repository_if_any
    root = Path(os.fsdecode(unspelled(known))) if known else here.root if here else None
    return Subject(
        agent=agent,
        root=root if root is not None and root.is_dir() else None,
        alone=places.is_alone(known),
        now=guard.clock.now(),
        settings=settings,
        session=_session_of(guard, agent),
        environ=guard.environ,
        git_seconds=guard.users_config.settings.completion_check.git_timeout_seconds,
        shared=shared,
    )


def _session_of(guard: Invocation, agent: Agent) -> tuple[str, str] | None:
    """The session of the iteration in which it runs, if guard started it and learned its id."""
    if agent.run is None or agent.iteration is None:
        return None
    for key in guard.store.keys(RUN):
        run = guard.store.view(RUN, key)
        opened = run.opened(agent.run, agent.iteration) if run is not None else None
        if opened is not None and opened.agent and opened.session:
            return opened.agent, opened.session
    return None
