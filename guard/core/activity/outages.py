"""Find outages: many agents that fell silent at the same moment are one outage of what they share, not many stalls.

A network, a provider or a machine that fails takes all its agents at once, and prompts do not help. An outage holds prompts
back for a limited time only: agents that do not come back by themselves are stalled after all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from guard.core.activity.sources import LOOKBACK_MINUTES
from guard.core.base.fields import Frozen, Id, Instant
from guard.core.base.text import plural

OUTAGE_AGENTS = 3
OUTAGE_SHARE = 0.5
OUTAGE_WITHIN_MINUTES = 5
OUTAGE_HOLD_MINUTES = 240
_MOST_NAMED = 5
_HUSHED, _HUSHED_MINUTES = 2, 10


@dataclass(frozen=True, slots=True)
class LastSeen:
    """An active agent, and the newest sign of it, however old."""

    task_id: str
    agent_id: str
    at: datetime | None
    is_active: bool
    lookback_minutes: float = LOOKBACK_MINUTES
    """How long it may be quiet before it counts as silent."""
    usual_minutes: float | None = None
    """How long it is usually quiet, where that is known."""

    def is_quiet(self, now: datetime) -> bool:
        """Whether it is silent, or quiet for longer than usual: an outage shows before it is a silence."""
        if not self.is_active:
            return True
        if self.at is None or self.usual_minutes is None:
            return False
        least = max(_HUSHED_MINUTES, _HUSHED * self.usual_minutes)
        return now - self.at > timedelta(minutes=least)


class OutageRules(Frozen):
    """When a common silence is an outage, and how long it holds prompts back."""

    agents: Annotated[int, Field(ge=2)] = OUTAGE_AGENTS
    share: Annotated[float, Field(gt=0, le=1)] = OUTAGE_SHARE
    within_minutes: Annotated[float, Field(gt=0)] = OUTAGE_WITHIN_MINUTES
    hold_minutes: Annotated[float, Field(ge=0)] = OUTAGE_HOLD_MINUTES


class SilentAgent(Frozen):
    """One of the agents that fell silent."""

    task_id: Id
    agent_id: Id


class Outage(Frozen):
    """Which agents fell silent together, since when, and until when that explains their silence."""

    since: Instant
    """The last sign of any of them."""
    until: Instant
    """After this they count as stalled like other agents."""
    agents: tuple[SilentAgent, ...]
    were_active: Annotated[int, Field(ge=1)]
    """How many agents were at work when it began, or have worked since."""

    def has_agent(self, task_id: str, agent_id: str) -> bool:
        return any((agent.task_id, agent.agent_id) == (task_id, agent_id) for agent in self.agents)

    def may_explain(self, agent: LastSeen, now: datetime) -> bool:
        """Whether an agent may still be silent because of it, even if others have come back."""
        shown = agent.at is not None and agent.at > self.since
        return now < self.until and not shown and self.has_agent(agent.task_id, agent.agent_id)

    @property
    def summary(self) -> str:
        names = ", ".join(agent.agent_id for agent in self.agents[:_MOST_NAMED])
        more = len(self.agents) - _MOST_NAMED
        return (
            f"outage since {self.since:%Y-%m-%d %H:%M} UTC: {plural(len(self.agents), 'agent')} of "
            f"{self.were_active} fell silent together ({names}{f' and {more} more' if more > 0 else ''})"
        )


def find_outage(agents: Iterable[LastSeen], now: datetime, rules: OutageRules) -> Outage | None:
    """Find the newest outage that goes on; agents without any sign are in none.

    A caller that watches for long should remember it: agents come back one after another, and it still explains the silence
    of the last ones when the first are back.
    """
    seen = sorted((agent for agent in agents if agent.at is not None), key=_time_of)
    silent = [agent for agent in seen if agent.is_quiet(now) and _time_of(agent) <= now]
    for fallen in _groups_within(silent, timedelta(minutes=rules.within_minutes)):
        until = _time_of(fallen[-1]) + timedelta(minutes=rules.hold_minutes)
        at_work = [
            agent
            for agent in seen
            if not agent.is_quiet(now) or _time_of(agent) >= _time_of(fallen[0])
        ]
        enough = len(fallen) >= max(rules.agents, rules.share * len(at_work))
        if enough and now < until:
            quiet = [agent for agent in silent if _was_quiet(agent, _time_of(fallen[0]))]
            return _outage([*quiet, *fallen], until, len(quiet) + len(at_work))
    return None


def _was_quiet(agent: LastSeen, begun: datetime) -> bool:
    # It still counted as at work when the others fell silent: the outage explains why it did not go on.
    return timedelta(0) < begun - _time_of(agent) <= timedelta(minutes=agent.lookback_minutes)


def _groups_within(silent: Sequence[LastSeen], within: timedelta) -> list[Sequence[LastSeen]]:
    """Groups of agents whose last signs lie within this time, the largest from each start; the newest first."""
    groups, end = [], 0
    for start, first in enumerate(silent):
        end = max(end, start)
        while end < len(silent) and _time_of(silent[end]) - _time_of(first) <= within:
            end += 1
        groups.append(silent[start:end])
    return sorted(groups, key=lambda group: (_time_of(group[-1]), len(group)), reverse=True)


def _outage(fallen: Sequence[LastSeen], until: datetime, were_active: int) -> Outage:
    named = tuple(SilentAgent(task_id=agent.task_id, agent_id=agent.agent_id) for agent in fallen)
    return Outage(since=_time_of(fallen[-1]), until=until, agents=named, were_active=were_active)


def _time_of(agent: LastSeen) -> datetime:
    assert agent.at is not None
    return agent.at
