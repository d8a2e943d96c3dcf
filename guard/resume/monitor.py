"""The monitor: finds the agents that have fallen silent, looks at each again, and sends within the budgets.

One round surveys all agents. Between rounds it waits for news of the log and of the agents' processes, or for its timer.
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
from guard.core.activity.status import SurveyedAgent
from guard.core.agents.agent import ACTIVE
from guard.core.coordinator.state import waiting_work
from guard.core.resume.report import ResumeReport
from guard.errors import GuardError, ReaderGone
from guard.resume.send import ResumeRequest, resume
from guard.store.log import LIVE
from guard.system.host import here
from guard.system.news import News

_SHORTEST_ROUND = 2.0
"""A log that is written all the time is looked at no more often."""


def resume_due(
    guard: Invocation, wish: ResumeRequest, outages: dict[datetime, Outage] | None = None
) -> Iterator[ResumeReport]:
    """Every agent that is due, and what became of it; one that fails does not stop the others.

    Those that fell silent together are left alone while that explains it; `outages` are remembered from round to round, for
    those that lie silent when the others are back. Who awaits an audit or an answer has nothing to go on with.
    """
    looks = wish.validates and guard.config.settings.resume.validate_activity
    lookback = wish.lookback_minutes or guard.config.settings.activity.lookback_minutes
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
            yield resume(guard, agent.agent_id, replace(wish, task_id=agent.task_id))
        except (GuardError, OSError) as error:
            guard.output.warn(f"agent {agent.agent_id} of task {agent.task_id}: {error}")


def _remember(
    guard: Invocation, down: Outage | None, known: dict[datetime, Outage], now: datetime
) -> None:
    """Those that explain nothing any more are forgotten; one that is new is said."""
    for since in [since for since, one in known.items() if one.until <= now]:
        del known[since]
    if down is not None and down.since not in known:
        guard.output.warn(f"{down.summary}: nobody is sent a prompt for it")
        known[down.since] = down


def _is_in_outage(agent: SurveyedAgent, outages: Iterable[Outage], now: datetime) -> bool:
    last = LastSeen(agent.task_id, agent.agent_id, agent.last_seen, is_active=False)
    return any(one.may_explain(last, now) for one in outages)


def is_due(agent: SurveyedAgent, lived_minutes: float, lookback_minutes: float) -> bool:
    """Whether it is not at work, and has been there for so long that this means something.

    An agent that has just begun has shown nothing yet. That it has said something lately does not spare it: had that been
    more than noise, it would count as at work. Where nobody looked at its activity, only the age of its last word counts.
    """
    if agent.status not in ACTIVE or agent.liveness == "ended" or agent.is_active:
        return False
    if agent.is_active is None:
        return agent.category == "auto_resume"
    return lived_minutes >= lookback_minutes


@dataclass
class Monitor:
    """Rounds without end; each agent is told of when what became of it differs from the last time."""

    guard: Invocation
    wish: ResumeRequest
    tell: Callable[[ResumeReport], None]
    _told: dict[tuple[str, str], tuple[object, ...]] = field(default_factory=dict)
    _outages: dict[datetime, Outage] = field(default_factory=dict)

    def watch(self) -> None:
        """Go on until interrupted, or until nobody reads what it tells."""
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
            for report in resume_due(self.guard, self.wish, self._outages):
                self._tell_news(report)
        except (GuardError, OSError) as error:
            self.guard.output.warn(f"this round is given up, and the next one tries again: {error}")

    def _tell_news(self, report: ResumeReport) -> None:
        key = (report.task_id, report.agent_id)
        state = (report.outcome, report.way, report.sent_in_stall, report.status)
        if report.outcome == "sent" or self._told.get(key) != state:
            self._told[key] = state
            self.tell(report)

    def _news(self) -> News:
        """Made before the round, so that what happens in it is news."""
        from guard.core.agents.registry import GLOBAL_REGISTRY

        places = []
        with suppress(GuardError, OSError):
            overall = self.guard.store.view(GLOBAL_REGISTRY)
            active = [one for one in overall.agents if one.status in ACTIVE] if overall else []
            places = watched_processes([one.whereabouts for one in active], here=here())
        return News([self.guard.workspace.path / LIVE], places)
