"""A monitor that looks at a fleet again and again, and sends prompts to those that are not at work."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from math import inf
from typing import Any, NamedTuple

from benchmarks.fleet.lives import Life, Sign
from guard.core.activity.assess import ActivityTerms, Signal, is_real
from guard.core.activity.clocks import Gap, MachineClock, find_gaps
from guard.core.activity.events import FalseAlarmLearned, ResumeSent
from guard.core.activity.judge import JudgeInput, judge
from guard.core.activity.learn import lesson_from_signs
from guard.core.activity.lookback import MAX_LOOKBACK_MINUTES, MOST_SIGNS
from guard.core.activity.noise import NOISE_PATTERNS
from guard.core.activity.outages import LastSeen, Outage, OutageRules, find_outage
from guard.core.activity.settings import ActivitySettings
from guard.core.activity.sources import LOOKBACK_MINUTES
from guard.core.activity.state import WatchedAgent, WatchedAgentFold
from guard.core.log.record import Position

NUDGES = 2
MOST_HELD = 20
"""So many outages are remembered: one that goes on is found again with every look."""
_MOST_OF_ONE = 5
"""More of one source would not change a verdict."""
_TIMED = ("TELEMETRY_EVENT", "GIT_COMMIT")


@dataclass(frozen=True)
class Rules:
    """What of the product takes part; each can be left out, to show what it is worth."""

    adaptive: bool = True
    learns: bool = True
    clocks: bool = True
    outages: bool = True


@dataclass
class Watched:
    """One agent under the monitor's eyes."""

    life: Life
    signals: list[Signal] = field(default_factory=list)
    history: list[datetime] = field(default_factory=list)
    reached: int = 0
    fold: WatchedAgentFold = field(default_factory=lambda: WatchedAgentFold("key"))
    sent: list[float] = field(default_factory=list)
    """When it was sent prompts, by the true clock."""
    lessons: int = 0
    looks: list[tuple[float, bool, bool]] = field(default_factory=list)
    """When it was looked at, whether it was said to be at work, and whether its status file alone says so."""
    longest: float = LOOKBACK_MINUTES
    """The longest look-back that it had after its death."""

    @property
    def view(self) -> WatchedAgent | None:
        return self.fold.document() if self.fold.reached.seq else None

    def taken(self, event: ResumeSent | FalseAlarmLearned) -> None:
        seq = self.fold.reached.seq + 1
        self.fold.apply(event)
        self.fold.reached = Position(1, seq, seq, "0" * 64)


class _Look(NamedTuple):
    """One agent at one moment."""

    agent: Watched
    seen: list[Signal]
    last: LastSeen


class Monitor:
    """Looks from time to time while its machine is awake."""

    def __init__(self, lives: Sequence[Life], rules: Rules) -> None:
        self.machine = lives[0].machine
        self.agents = [Watched(life) for life in lives]
        self.rules = rules
        self._settings = ActivitySettings(adaptive=rules.adaptive)
        self.held: list[Outage] = []
        self._readings: list[MachineClock] = []

    def watch(self, since: float, until: float, every: float) -> None:
        """Look at all agents, so often."""
        at = since
        while at < until:
            if self.machine.is_awake(at):
                self._look(at)
            at += every

    def _look(self, at: float) -> None:
        now, known = self.machine.wall(at), self._gaps(at)
        looks = [self._look_at(agent, at, now, known) for agent in self.agents]
        found = find_outage([one.last for one in looks], now, OutageRules())
        if found is not None and self.rules.outages:
            self.held.append(found)
        for one in looks:
            self._learn(one, now)
            one.agent.looks.append((at, one.last.is_active, _by_status(one.agent, now)))
            if one.agent.life.is_dead(at):
                one.agent.longest = max(one.agent.longest, one.last.lookback_minutes)
            explained = any(held.may_explain(one.last, now) for held in self.held[-MOST_HELD:])
            if not one.last.is_active and not explained:
                _send(one, at, now)

    def _look_at(self, agent: Watched, at: float, now: datetime, known: tuple[Gap, ...]) -> _Look:
        seen = _seen(agent, at, now)
        given = JudgeInput(self._settings, watched=agent.view, gaps=known)
        verdict = judge(seen, agent.history[-MOST_SIGNS:], now, given)
        last = max((one.at for one in seen if is_real(one, now, verdict.terms)), default=None)
        active, back = verdict.assessment.is_active, verdict.lookback.minutes
        usual = verdict.rhythm.usual_minutes
        return _Look(agent, seen, LastSeen("T1", agent.life.name, last, active, back, usual))

    def _gaps(self, at: float) -> tuple[Gap, ...]:
        self._readings.append(self.machine.read(at))
        return find_gaps(self._readings) if self.rules.clocks else ()

    def _learn(self, one: _Look, now: datetime) -> None:
        agent = one.agent
        if not self.rules.learns or agent.view is None:
            return
        found = lesson_from_signs(agent.view, 1, one.seen, MAX_LOOKBACK_MINUTES, NOISE_PATTERNS)
        if found is not None:
            agent.lessons += 1
            agent.taken(FalseAlarmLearned(at=now, id="e", **_NAMES, **dict(found)))


_NAMES: dict[str, Any] = {"task_id": "T1", "agent_id": "a1", "incarnation": 1}


def _seen(agent: Watched, at: float, now: datetime) -> list[Signal]:
    """The newest signs of each source, as the collectors give them, and what its process does just now."""
    signs = agent.life.signs
    until = bisect_right(signs, at - agent.life.seen_after, key=lambda one: one.at)
    new = [_signal(one, agent.life) for one in signs[agent.reached : until]]
    agent.signals += new
    agent.history += (
        one.at for one in new if one.source in _TIMED and is_real(one, now, ActivityTerms())
    )
    agent.reached = until
    found = list(_newest(agent.signals))
    if agent.life.shows_progress(at):
        found.append(Signal(source="PROCESS_PROGRESS", at=now, detail="at work"))
    return found


def _signal(sign: Sign, life: Life) -> Signal:
    at = life.machine.wall(sign.at)
    return Signal(source=sign.source, at=at, detail="seen", message=sign.message)


def _newest(signals: Sequence[Signal]) -> Iterator[Signal]:
    counts: Counter[str] = Counter()
    for one in reversed(signals[-_MOST_OF_ONE * 6 :]):
        counts[one.source] += 1
        if counts[one.source] <= _MOST_OF_ONE:
            yield one


def _by_status(agent: Watched, now: datetime) -> bool:
    """What the age of the status file alone says."""
    told = next((one for one in reversed(agent.signals) if one.source == "STATUS_UPDATE"), None)
    return told is not None and now - told.at <= timedelta(minutes=LOOKBACK_MINUTES)


def _send(look: _Look, at: float, now: datetime) -> None:
    """Send a prompt, unless this silence has had its share."""
    agent, last = look.agent, look.last
    stall, known = sha256(str(last.at).encode()).hexdigest(), agent.view
    if known is not None and sum(one.stall == stall for one in known.resumes) >= NUDGES:
        return
    agent.taken(
        ResumeSent(
            at=now,
            id="e",
            **_NAMES,
            way="inbox",
            stall=stall,
            last_activity=last.at,
            lookback_minutes=last.lookback_minutes,
            prompt="0" * 64,
            reason="silent",
        )
    )
    agent.sent.append(at)
    agent.life.prompted(at)


def first_after(sent: Sequence[float], at: float) -> float:
    """When the first prompt came after this moment."""
    return min((one for one in sent if one >= at), default=inf)
