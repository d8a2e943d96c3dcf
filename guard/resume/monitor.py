"""Monitor all agents: survey them, look again at each one that has fallen silent, and send prompts within the budgets.

Between rounds the monitor waits for changes of the log, for agents' processes to end, or for its timer.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import monotonic, sleep

from guard.activity.known_agents import machine_gaps
from guard.activity.survey import survey
from guard.agents.liveness import watched_processes
from guard.context.invocation import Invocation
from guard.coordinator.record import find_state
from guard.core.activity.clocks import age
from guard.core.activity.outages import LastSeen, Outage
from guard.core.activity.status_report import SurveyedAgent
from guard.core.agents.agent import ACTIVE
from guard.core.coordinator.state import waiting_work
from guard.core.resume.report import ResumeReport
from guard.errors import GuardError, ReaderGone
from guard.resume.send import ResumeRequest, resume
from guard.system.file_events import News
from guard.system.host import read_host

_SHORTEST_ROUND = 2.0
"""Even if the log changes all the time, rounds start no more often."""


def resume_due(
    guard: Invocation, request: ResumeRequest, outages: dict[datetime, Outage] | None = None
) -> Iterator[ResumeReport]:
    """Resume every agent that is due, and report each; one that fails does not stop the others.

    Agents in an outage are left alone while it explains their silence; the caller keeps `outages` from round to round, for
    agents that are still silent when the others are back. An agent that waits for an audit or an answer has nothing to go on
    with.
    """
    looks = request.check_activity and guard.config.settings.resume.validate_activity
    lookback = request.lookback_minutes or guard.config.settings.activity.lookback_minutes
    found = survey(guard, activity=looks)
    known, now = {} if outages is None else outages, guard.clock.now()
    _remember(guard, found.outage, known, now)
    gaps, idle = machine_gaps(guard), waiting_work(find_state(guard))
    for agent in found.agents:
        lived = age(agent.spawned_at, now, gaps).total_seconds() / 60
        if (agent.task_id, agent.agent_id) in idle or not is_due(agent, lived, lookback):
            continue
        if _is_in_outage(agent, known.values(), now):
            continue
        try:
            yield resume(guard, agent.agent_id, replace(request, task_id=agent.task_id))
        except (GuardError, OSError) as error:
            guard.output.warn(f"agent {agent.agent_id} of task {agent.task_id}: {error}")


def _remember(
    guard: Invocation, outage: Outage | None, known: dict[datetime, Outage], now: datetime
) -> None:
    # Forget outages that explain nothing any more, and report a new one.
    for since in [since for since, earlier in known.items() if earlier.until <= now]:
        del known[since]
    if outage is not None and outage.since not in known:
        guard.output.warn(f"{outage.summary}: no prompts are sent while it lasts")
        known[outage.since] = outage


def _is_in_outage(agent: SurveyedAgent, outages: Iterable[Outage], now: datetime) -> bool:
    last = LastSeen(agent.task_id, agent.agent_id, agent.last_seen, is_active=False)
    return any(outage.may_explain(last, now) for outage in outages)


def is_due(agent: SurveyedAgent, lived_minutes: float, lookback_minutes: float) -> bool:
    """Whether an agent is not at work, and has lived long enough for that to mean something.

    A recent report does not spare it: were that more than noise, the agent would count as at work. If its activity was not
    assessed, only the age of its last report counts.
    """
    if agent.status not in ACTIVE or agent.liveness == "ended" or agent.is_active:
        return False
    if agent.is_active is None:
        return agent.category == "auto_resume"
    return lived_minutes >= lookback_minutes


@dataclass
class Monitor:
    """Run rounds without end, and report an agent whenever its outcome differs from the last time."""

    guard: Invocation
    request: ResumeRequest
    report: Callable[[ResumeReport], None]
    _reported: dict[tuple[str, str], tuple[object, ...]] = field(default_factory=dict)
    _outages: dict[datetime, Outage] = field(default_factory=dict)

    def watch(self) -> None:
        seconds = self.guard.config.settings.resume.watch_seconds
        with suppress(KeyboardInterrupt, ReaderGone):
            while True:
                begun = monotonic()
                with self._news() as news:
                    self._round()
                    news.wait(seconds)
                sleep(max(0.0, min(seconds, _SHORTEST_ROUND) - (monotonic() - begun)))

    def _round(self) -> None:
        try:
            for report in resume_due(self.guard, self.request, self._outages):
                self._report_change(report)
        except (GuardError, OSError) as error:
            self.guard.output.warn(f"this round failed, the next one tries again: {error}")

    def _report_change(self, report: ResumeReport) -> None:
        key = (report.task_id, report.agent_id)
        state = (report.outcome, report.way, report.sent_in_stall, report.status)
        if report.outcome == "sent" or self._reported.get(key) != state:
            self._reported[key] = state
            self.report(report)

    def _news(self) -> News:
        # Made before the round, so that a change during the round wakes the monitor.
        from guard.core.agents.registry import GLOBAL_REGISTRY

        places = []
        with suppress(GuardError, OSError):
            overall = self.guard.store.view(GLOBAL_REGISTRY)
            active = (
                [agent for agent in overall.agents if agent.status in ACTIVE] if overall else []
            )
            places = watched_processes([agent.whereabouts for agent in active], here=read_host())
        return News([], places, self.guard.store.bell())
