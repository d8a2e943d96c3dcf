"""Survey all agents: which exist, which are at work, and how stale the others are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from guard.activity.assess import Look, learn_from, look
from guard.activity.collect_messages import last_status_time
from guard.activity.known_agents import KnownAgents
from guard.activity.subject import AgentSubject
from guard.agents.monitor import list_agents
from guard.breaker import load as load_breaker
from guard.check.taskfile import count_open_tasks
from guard.context.invocation import Invocation
from guard.context.lease import is_running
from guard.core.activity.clocks import uncounted_time
from guard.core.activity.outages import LastSeen, Outage, OutageRules, find_outage
from guard.core.activity.settings import ActivitySettings
from guard.core.activity.status_report import (
    RunLine,
    StatusReport,
    SurveyedAgent,
    TaskLine,
    category,
)
from guard.core.agents.agent import ACTIVE
from guard.core.agents.registry import AGENT_REGISTRY, AgentRegistry
from guard.core.agents.report import FAILED, AgentsReport, ListedAgent
from guard.core.base.fast_models import entry_from
from guard.core.check.events import CheckMade
from guard.core.check.last_check import LAST_CHECK
from guard.core.check.warnings import CHECK_WARNINGS, list_warnings
from guard.core.iteration.run import RUN
from guard.hooks.ingest import ingest_hooks
from guard.iteration.kept_output import KeptOutput

_THREADS = 4
_SurveyedLook = tuple[ListedAgent, AgentSubject | None, Look | None]


def survey(
    guard: Invocation, *, activity: bool = True, progress: Callable[[int, int], None] | None = None
) -> StatusReport:
    """Report every task with its counts, and the agents that are active or ended lately.

    `progress` is called with the number of agents assessed so far and the number of all.
    """
    ingest_hooks(guard)
    report = list_agents(guard, None)
    registries = guard.store.views(AGENT_REGISTRY).values()
    outage, agents = _survey_agents(guard, report, activity, progress)
    return StatusReport(
        active_agents=report.active,
        completed_agents=report.completed,
        total_agents_spawned=report.spawned,
        failed_agents=sum(map(_failed, registries)),
        tasks=tuple(
            entry_from(TaskLine, registry, failed_count=_failed(registry))
            for registry in registries
        ),
        agents=tuple(agents),
        outage=outage,
        runs=tuple(_list_runs(guard)),
        warnings=_list_check_warnings(guard),
    )


def _list_runs(guard: Invocation) -> Iterator[RunLine]:
    """Yield the runs that go on."""
    checks, now = guard.store.views(LAST_CHECK), guard.clock.now()
    for key, run in guard.store.views(RUN).items():
        opened, check = run.open_iteration, checks.get(key)
        supervisor = opened.supervisor if opened is not None else None
        is_watched = supervisor is not None and is_running(supervisor, guard.store)
        # Between two iterations only a limit is waited for longer than a moment.
        until = check.retry_at if check is not None and check.run == run.run else None
        is_waiting = opened is None and run.ended_at is None and until is not None and until > now
        if not is_watched and not is_waiting:
            continue
        number = opened.number if opened is not None else run.iterations
        known, breaker = opened or run.last_iteration, load_breaker(guard.store, key)
        kept = KeptOutput.named(guard, run.run, number).watched_until()
        yield RunLine(
            run=run.run,
            worktree=key,
            iteration=number,
            agent=known.agent if known is not None else None,
            since=known.started_at if known is not None else None,
            last_seen=datetime.fromtimestamp(kept, UTC) if kept else None,
            waits_for="the end of a limit" if is_waiting else None,
            until=until if is_waiting else None,
            breaker=breaker.state,
            streak=breaker.streak,
            open_tasks=_open_tasks(guard, key),
            cost_usd=_cost_so_far(guard, run.run),
        )


def _open_tasks(guard: Invocation, worktree: str) -> int | None:
    known = guard.repository_if_any
    if known is None or guard.worktree_key != worktree:
        return None
    return count_open_tasks(known.root, "", guard.config.settings)


def _cost_so_far(guard: Invocation, run: str) -> float | None:
    events = (entry.event for entry in guard.store.entries())
    checks = (event for event in events if isinstance(event, CheckMade) and event.run == run)
    usages = {check.iteration: check.usage for check in checks}
    costs = [usage.cost_usd for usage in usages.values() if usage is not None]
    told = [cost for cost in costs if cost is not None]
    return sum(told) if told else None


def _failed(registry: AgentRegistry) -> int:
    return sum(registry.by_status.get(status, 0) for status in FAILED)


def _list_check_warnings(guard: Invocation) -> tuple[str, ...]:
    """Return what the newest check of each work tree warned of."""
    found = guard.store.views(CHECK_WARNINGS)
    checks = guard.store.views(LAST_CHECK) if found else {}
    return tuple(
        f"iteration {known.iteration} of run {known.run}: {sentence}"
        for key, known in found.items()
        if known.is_of(checks.get(key))
        for sentence in list_warnings(known.secrets, known.not_scanned, known.held_back)
    )


def _survey_agents(
    guard: Invocation,
    report: AgentsReport,
    activity: bool,
    progress: Callable[[int, int], None] | None,
) -> tuple[Outage | None, Sequence[SurveyedAgent]]:
    known_agents = KnownAgents(guard)
    subjects = [
        known_agents.subject_of(agent) if agent.status in ACTIVE else None
        for agent in report.agents
    ]
    found: list[Look | None] = []
    with ThreadPoolExecutor(_THREADS) as pool:
        seen_in_order = pool.map(
            lambda agent_subject: look(agent_subject) if activity and agent_subject else None,
            subjects,
        )
        try:
            for seen in seen_in_order:
                found.append(seen)
                if progress is not None:
                    progress(len(found), len(subjects))
        except BaseException:  # A user who interrupts the survey does not wait for the rest.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    looks = list(zip(report.agents, subjects, found, strict=True))
    for _, subject, seen in looks:
        if subject is not None and seen is not None:
            learn_from(guard, subject, seen)
    outage = _find_outage(guard.config.settings.activity, guard.clock.now(), looks)
    return outage, [_surveyed_agent(*surveyed, outage) for surveyed in looks]


def _find_outage(
    settings: ActivitySettings, now: datetime, looks: Iterable[_SurveyedLook]
) -> Outage | None:
    agents = [
        LastSeen(
            agent.task_id,
            agent.agent_id,
            seen.collected.last_seen,
            seen.assessment.is_active,
            seen.lookback.minutes,
            seen.rhythm.usual_minutes,
        )
        for agent, subject, seen in looks
        if subject is not None and seen is not None
    ]
    rules = OutageRules(
        agents=settings.outage_agents,
        share=settings.outage_share,
        within_minutes=settings.outage_within_minutes,
        hold_minutes=settings.outage_hold_minutes,
    )
    found = find_outage(agents, now, rules)
    silent = [agent for agent in agents if not agent.is_active]
    return found if found and any(found.may_explain(agent, now) for agent in silent) else None


def _surveyed_agent(
    agent: ListedAgent, subject: AgentSubject | None, seen: Look | None, outage: Outage | None
) -> SurveyedAgent:
    age = _age_minutes(subject) if subject is not None else 0.0
    assessment = seen.assessment if seen is not None else None
    active = assessment.is_active if assessment is not None else None
    in_outage = outage is not None and outage.has_agent(agent.task_id, agent.agent_id)
    return SurveyedAgent(
        **dict(agent),
        category=category(age, is_active=active, ended=subject is None, in_outage=in_outage),
        age_minutes=round(age, 2),
        is_active=active,
        confidence=assessment.confidence if assessment is not None else None,
        sources=tuple(dict.fromkeys(signal.source for signal in assessment.signals))
        if assessment is not None
        else (),
        last_seen=seen.collected.last_seen if seen is not None else None,
    )


def _age_minutes(subject: AgentSubject) -> float:
    """Minutes since the agent's status file or its last report, without time in which the machine slept."""
    try:
        status_time = last_status_time(subject)
    except Exception:  # Any unreadable status file: the registry still knows the last report.
        status_time = None
    now, last = subject.now.timestamp(), subject.agent.updated_at.timestamp()
    newest = last if status_time is None else max(status_time, last)
    if newest >= now:
        return 0.0
    uncounted = uncounted_time(datetime.fromtimestamp(newest, UTC), subject.now, subject.gaps)
    return max(0.0, now - newest - uncounted.total_seconds()) / 60
