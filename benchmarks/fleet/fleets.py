"""Fleets of agents that share a machine and its fate: one that is never down, a laptop, one whose provider fails."""

from random import Random

from benchmarks.fleet.lives import KINDS, Life, Making, Sign
from benchmarks.fleet.machines import Away, Machine

DAY = 1440.0
FLEETS = ("server", "laptop", "outage")


def fleet(kind: str, random: Random, days: float) -> list[Life]:
    """All agents of one fleet."""
    until = days * DAY
    machine = _laptop(random, days) if kind == "laptop" else Machine()
    making = Making(random, machine, until)
    lives = [
        make(making, f"{name.replace(' ', '-')}-{number}")
        for name, (count, make) in KINDS.items()
        for number in range(count)
    ]
    if kind == "outage":
        _take_down(lives, random, until)
    return lives


def _laptop(random: Random, days: float) -> Machine:
    """Closed every night and at noon; restarted in one of the nights, its clock set forward in the time after another."""
    away = []
    for day in range(int(days)):
        noon, night = (day * DAY + random.uniform(*span) for span in ((300, 420), (800, 900)))
        away.append(Away(noon, noon + random.uniform(40, 150)))
        away.append(Away(night, night + random.uniform(300, 480), restarted=day % 2 == 1))
    set_at = away[-1].until + random.uniform(20, 60)
    return Machine(tuple(away), ((set_at, random.choice((45.0, 180.0, 600.0))),))


def _take_down(lives: list[Life], random: Random, until: float) -> None:
    """What all of them need is down for some hours: none is at work, none leaves a sign; then those who live go on."""
    since = random.uniform(0.4, 0.9) * until
    ends = since + random.uniform(70, 150)
    for life in lives:
        # Whoever works is seen until the end: its transcript grows with every answer.
        if life.kind in ("steady", "hung", "long silent build") and not life.is_dead(since):
            life.signs = sorted([*life.signs, _transcript(since, random)])
        life.signs = [one for one in life.signs if not since <= one.at < ends or one.is_others]
        life.idle.append((since, ends))


def _transcript(until: float, random: Random) -> Sign:
    return Sign(until - random.uniform(0, 3), "TRANSCRIPT_GROWTH")
