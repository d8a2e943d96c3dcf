"""What became of the agents under the monitor: who was disturbed, who was missed, and how right the verdicts were."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from random import Random

from benchmarks.fleet.fleets import DAY, FLEETS, fleet
from benchmarks.fleet.lives import Making, late
from benchmarks.fleet.machines import Machine
from benchmarks.fleet.monitor import Monitor, Rules, Watched, first_after
from guard.core.activity.outages import OUTAGE_HOLD_MINUTES

EVERY = 30.0
"""How often the monitor looks, in minutes."""
WARM_UP = DAY
"""The agents have been at work for a day when the watch begins: their reports and commits of that day are known."""


@dataclass(frozen=True)
class Score:
    """How often something was rightly or wrongly said."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)


@dataclass(frozen=True)
class Outcome:
    """One agent after the watch."""

    fleet: str
    kind: str
    name: str
    disturbed: int
    """Prompts that it was sent while it lived."""
    dies: float
    waited: float
    """How long it lay dead before the first prompt or the end of the watch, in minutes for which its machine was awake."""
    window: float
    """How long it may have, at most."""
    lessons: int
    own: Score
    by_status: Score

    @property
    def is_missed(self) -> bool:
        return self.dies < inf and self.waited > self.window


def watched(agents: int, seed: int, days: float = 3.0, rules: Rules | None = None) -> list[Outcome]:
    """So many agents at least, in fleets of each kind in turn."""
    found: list[Outcome] = []
    number = 0
    while len(found) < agents:
        kind = FLEETS[number % len(FLEETS)]
        monitor = Monitor(fleet(kind, Random(f"{seed} {number}"), days), rules or Rules())
        monitor.watch(WARM_UP, days * DAY, EVERY)
        found += (_outcome(kind, agent, monitor, days * DAY) for agent in monitor.agents)
        number += 1
    return found


def false_alarms_of_a_late_one(seed: int, rules: Rules) -> int:
    """How often an agent is disturbed whose work is always seen too late, in two days."""
    making = Making(Random(seed), Machine(), 3 * DAY)
    monitor = Monitor([late(making, "late")], rules)
    monitor.watch(WARM_UP, 3 * DAY, EVERY)
    return len(monitor.agents[0].sent)


def _outcome(kind: str, agent: Watched, monitor: Monitor, until: float) -> Outcome:
    life = agent.life
    dead = max(life.dies, WARM_UP)
    first = min(first_after(agent.sent, dead), until)
    asleep = sum(
        max(0.0, min(one.until, first) - max(one.since, dead)) for one in life.machine.away
    )
    held = (
        OUTAGE_HOLD_MINUTES if any(one.has_agent("T1", life.name) for one in monitor.held) else 0.0
    )
    return Outcome(
        fleet=kind,
        kind=life.kind,
        name=life.name,
        disturbed=sum(not life.is_dead(at) for at in agent.sent),
        dies=life.dies,
        waited=max(0.0, first - dead - asleep),
        window=agent.longest + EVERY + held,
        lessons=agent.lessons,
        own=_score([(life.is_at_work(at), said) for at, said, _ in agent.looks]),
        by_status=_score([(life.is_at_work(at), said) for at, _, said in agent.looks]),
    )


def _score(looks: Sequence[tuple[bool, bool]]) -> Score:
    return Score(
        right=sum(true and said for true, said in looks),
        wrong=sum(said and not true for true, said in looks),
        missed=sum(true and not said for true, said in looks),
    )


def total(scores: Sequence[Score]) -> Score:
    """All together."""
    return Score(
        sum(one.right for one in scores),
        sum(one.wrong for one in scores),
        sum(one.missed for one in scores),
    )
