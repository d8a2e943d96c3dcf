"""All agents at once: who exists, who is at work, and how stale the others are."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from guard.activity.assess import KnownAgents, subject_of
from guard.activity.collect_messages import told_at
from guard.activity.learn import learned
from guard.activity.look import Look, look
from guard.activity.shared_scan import Shared
from guard.activity.subject import AgentSubject
from guard.agents.monitor import listed
from guard.context.invocation import Invocation
from guard.core.activity.gaps import left_out
from guard.core.activity.outages import LastSeen, Outage, OutageRules, outage
from guard.core.activity.settings import ActivitySettings
from guard.core.activity.staleness import category
from guard.core.activity.status import StatusReport, SurveyedAgent, TaskLine
from guard.core.agents.agent import ACTIVE
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.agents.report import AgentsReport, ListedAgent
from guard.hooks.ingest import fold

_THREADS = 4
_Looked = tuple[ListedAgent, AgentSubject | None, Look | None]


def survey(
    guard: Invocation, *, activity: bool = True, far: Callable[[int, int], None] | None = None
) -> StatusReport:
    """Every task with its counts, and the agents that are active or ended lately; `far` hears how many are assessed."""
    fold(guard)
    report = listed(guard, None)
    down, agents = _surveyed(guard, report, activity, far)
    return StatusReport(
        active_agents=report.active,
        completed_agents=report.completed,
        total_agents_spawned=report.spawned,
        tasks=_tasks(guard),
        agents=tuple(agents),
        outage=down,
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
) -> tuple[Outage | None, Sequence[SurveyedAgent]]:
    settings, known_agents, shared = guard.config.settings.activity, KnownAgents(guard), Shared()
    subjects = [
        subject_of(guard, agent, settings, known_agents, shared) if agent.status in ACTIVE else None
        for agent in report.agents
    ]
    found: list[Look | None] = []
    with ThreadPoolExecutor(_THREADS) as pool:
        seen_by_turns = pool.map(lambda one: look(one) if activity and one else None, subjects)
        try:
            for seen in seen_by_turns:
                found.append(seen)
                if far is not None:
                    far(len(found), len(subjects))
        except BaseException:  # Whoever stops it does not wait for those that are left.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    looks = list(zip(report.agents, subjects, found, strict=True))
    for _, subject, seen in looks:
        if subject is not None and seen is not None:
            learned(guard, subject, seen)
    down = _outage(settings, guard.clock.now(), looks)
    return down, [_one(*one, down) for one in looks]


def _outage(settings: ActivitySettings, now: datetime, looks: Iterable[_Looked]) -> Outage | None:
    agents = [
        LastSeen(
            agent.task_id,
            agent.agent_id,
            seen.last_seen,
            seen.assessment.is_active,
            seen.lookback.minutes,
            seen.rhythm.usual_minutes,
        )
        for agent, subject, seen in looks
        if subject is not None and seen is not None
    ]
    found = outage(agents, now, outage_rules(settings))
    silent = [one for one in agents if not one.is_active]
    return found if found and any(found.explains(one, now) for one in silent) else None


def outage_rules(settings: ActivitySettings) -> OutageRules:
    """What the settings say of outages."""
    return OutageRules(
        agents=settings.outage_agents,
        share=settings.outage_share,
        within_minutes=settings.outage_within_minutes,
        hold_minutes=settings.outage_hold_minutes,
    )


def _one(
    agent: ListedAgent, subject: AgentSubject | None, seen: Look | None, down: Outage | None
) -> SurveyedAgent:
    age = _age_minutes(subject) if subject is not None else 0.0
    assessment = seen.assessment if seen is not None else None
    active = assessment.is_active if assessment is not None else None
    out = down is not None and down.has(agent.task_id, agent.agent_id)
    fields = {name: getattr(agent, name) for name in ListedAgent.model_fields}
    return SurveyedAgent(
        **fields,
        category=category(age, is_active=active, ended=subject is None, in_outage=out),
        age_minutes=round(age, 2),
        is_active=active,
        confidence=assessment.confidence if assessment is not None else None,
        sources=tuple(dict.fromkeys(one.source for one in assessment.signals))
        if assessment is not None
        else (),
        last_seen=seen.last_seen if seen is not None else None,
    )


def _age_minutes(subject: AgentSubject) -> float:
    """Since its status file, or since its last word to the registry where it has none; not while the machine slept."""
    try:
        told = told_at(subject)
    except Exception:  # Whatever lies there, the registry knows something too.
        told = None
    now, last = subject.now.timestamp(), subject.agent.updated_at.timestamp()
    newest = last if told is None else max(told, last)
    if newest >= now:
        return 0.0
    spared = left_out(datetime.fromtimestamp(newest, UTC), subject.now, subject.gaps)
    return max(0.0, now - newest - spared.total_seconds()) / 60
