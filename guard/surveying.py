"""All agents at once: who exists, who is at work, and how stale the others are."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from guard.activity.assessing import KnownAgents, assessed, subject_of, terms_of
from guard.activity.messages import told_at
from guard.activity.shared import Shared
from guard.activity.subject import Subject
from guard.agent_hooks.folding import fold
from guard.core.activity.assessment import Assessment
from guard.core.activity.categories import category
from guard.core.lifecycle import ACTIVE
from guard.core.registry import AGENT_REGISTRY
from guard.core.reports.agents import (
    AgentsReport,
    ListedAgent,
    StatusReport,
    SurveyedAgent,
    TaskLine,
)
from guard.invocation import Invocation
from guard.monitoring import listed

_THREADS = 8


def survey(
    guard: Invocation, *, activity: bool = True, far: Callable[[int, int], None] | None = None
) -> StatusReport:
    """Every task with its counts, and the agents that are active or ended lately; `far` hears how many are assessed."""
    fold(guard)
    report = listed(guard, None)
    return StatusReport(
        active_agents=report.active,
        completed_agents=report.completed,
        total_agents_spawned=report.spawned,
        tasks=_tasks(guard),
        agents=tuple(_surveyed(guard, report, activity, far)),
    )


def _tasks(guard: Invocation) -> tuple[TaskLine, ...]:
    return tuple(
        TaskLine(
            task_id=one.task_id,
            active_count=one.active_count,
            completed_count=one.completed_count,
            total_spawned=one.total_spawned,
        )
        for one in guard.store.views(AGENT_REGISTRY).values()
    )


def _surveyed(
    guard: Invocation,
    report: AgentsReport,
    activity: bool,
    far: Callable[[int, int], None] | None,
) -> Sequence[SurveyedAgent]:
    settings, known_agents, shared = guard.config.settings.activity, KnownAgents(guard), Shared()
    subjects = [
        subject_of(guard, agent, settings, known_agents, shared) if agent.status in ACTIVE else None
        for agent in report.agents
    ]
    terms, found, done = terms_of(settings), [], 0
    with ThreadPoolExecutor(_THREADS) as pool:
        looks = pool.map(
            lambda subject: assessed(subject, terms)[0] if activity and subject else None, subjects
        )
        for agent, subject, assessment in zip(report.agents, subjects, looks, strict=True):
            found.append(_one(agent, subject, assessment))
            done += 1
            if far is not None:
                far(done, len(subjects))
    return found


def _one(
    agent: ListedAgent, subject: Subject | None, assessment: Assessment | None
) -> SurveyedAgent:
    age = _age_minutes(subject) if subject is not None else 0.0
    active = assessment.is_active if assessment is not None else None
    fields = {name: getattr(agent, name) for name in ListedAgent.model_fields}
    return SurveyedAgent(
        **fields,
        category=category(age, is_active=active, ended=subject is None),
        age_minutes=round(age, 2),
        is_active=active,
        confidence=assessment.confidence if assessment is not None else None,
        sources=tuple(dict.fromkeys(one.source for one in assessment.signals))
        if assessment is not None
        else (),
    )


def _age_minutes(subject: Subject) -> float:
    """Since its status file, or since its last word to the registry where it has none."""
    try:
        told = told_at(subject)
    except Exception:  # Whatever lies there, the registry knows something too.
        told = None
    now, last = subject.now.timestamp(), subject.agent.updated_at.timestamp()
    return max(0.0, now - (last if told is None else max(told, last))) / 60
