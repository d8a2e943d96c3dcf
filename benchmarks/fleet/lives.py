"""Agents of each kind: what they really do, and which signs of it can be seen.

An agent leaves signs only while its machine is awake. A sign that somebody else leaves, a prompt or the acknowledgement
of one, is noise and says nothing of the agent.
"""

from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any

from benchmarks.fleet.machines import Machine
from guard.core.activity.sources import SourceName

ACKNOWLEDGEMENT = "ACK, resuming now"
HEARTBEAT = "[C2A] inactivity detected #no-reply"


@dataclass(frozen=True, order=True)
class Sign:
    """Something that can be seen, in true minutes."""

    at: float
    source: SourceName
    message: str = ""

    @property
    def is_others(self) -> bool:
        """Whether it says nothing of the agent."""
        return self.message in (ACKNOWLEDGEMENT, HEARTBEAT)


@dataclass
class Life:
    """One agent. Until it dies it is at work, also where nothing is seen of it."""

    name: str
    kind: str
    machine: Machine
    signs: list[Sign]
    """In order."""
    dies: float = inf
    has_process: bool = False
    """Whether its process is on this machine and known;"""
    idle: list[tuple[float, float]] = field(default_factory=list)
    """when that does nothing although the agent lives: it waits for what is down."""
    seen_after: float = 0.0
    """How many minutes later its signs can be seen: they are fetched from elsewhere."""
    answers: bool = False
    """Whether it acknowledges prompts, and does no more."""

    def is_dead(self, at: float) -> bool:
        return at >= self.dies

    def is_at_work(self, at: float) -> bool:
        return not self.is_dead(at) and not self._waits(at)

    def shows_progress(self, at: float) -> bool:
        """Whether two looks at its process differ."""
        return self.has_process and self.is_at_work(at)

    def _waits(self, at: float) -> bool:
        return any(since <= at < until for since, until in self.idle)

    def prompted(self, at: float) -> None:
        """It is sent a prompt; the message lies in its inbox, and it may answer."""
        insort(self.signs, Sign(at + 1, "INBOX_PROCESSING", HEARTBEAT))
        if self.answers:
            insort(self.signs, Sign(at + 2, "TELEMETRY_EVENT", ACKNOWLEDGEMENT))
            insort(self.signs, Sign(at + 2, "STATUS_UPDATE", ACKNOWLEDGEMENT))


@dataclass(frozen=True)
class Making:
    """What a life is made from."""

    random: Random
    machine: Machine
    until: float
    """The end of the simulation."""

    def life(self, name: str, kind: str, work: Iterator[Sign], **fields: Any) -> Life:
        """The agent that leaves these signs in the time for which its machine is awake."""
        placed = (
            Sign(self.machine.at_work(one.at), one.source, one.message)
            for one in _until(work, self.until)
        )
        life = Life(name, kind, self.machine, sorted(placed), **fields)
        life.dies = self.machine.at_work(life.dies) if life.dies < inf else inf
        life.signs = [one for one in life.signs if one.at < life.dies or one.is_others]
        return life


def _until(signs: Iterator[Sign], until: float) -> Iterator[Sign]:
    for sign in signs:
        if sign.at >= until:
            return
        yield sign


def _steadily(random: Random, since: float = 0.0) -> Iterator[Sign]:
    """A report every few minutes, a commit now and then, files all the time."""
    at = since
    while True:
        at += random.uniform(2, 9)
        yield Sign(at, "FILE_MODIFICATION")
        if random.random() < 0.6:
            yield Sign(at, "TELEMETRY_EVENT")
            yield Sign(at, "STATUS_UPDATE", "Working on the login form")
        if random.random() < 0.15:
            yield Sign(at, "GIT_COMMIT")


def _in_bursts(random: Random) -> Iterator[Sign]:
    """Commits and reports in quick succession, then nothing for half an hour to an hour and a half."""
    at = 0.0
    while True:
        for _ in range(random.randint(5, 12)):
            at += random.uniform(0.5, 3)
            yield Sign(at, random.choice(("GIT_COMMIT", "TELEMETRY_EVENT")))
            yield Sign(at, "STATUS_UPDATE", "Working on the login form")
        at += random.uniform(30, 88)


def _building(random: Random) -> Iterator[Sign]:
    """Work for an hour or two, then a build of many hours that says nothing."""
    at = 0.0
    while True:
        begun = at
        for sign in _steadily(random, begun):
            if sign.at > begun + random.uniform(60, 120):
                break
            at = sign.at
            yield sign
        at += random.uniform(90, 400)


def _noise(random: Random, since: float) -> Iterator[Sign]:
    """What others leave in its name: acknowledgements, prompts, files that are read."""
    at = since
    while True:
        at += random.uniform(5, 20)
        yield Sign(at, "TELEMETRY_EVENT", ACKNOWLEDGEMENT)
        yield Sign(at, "STATUS_UPDATE", ACKNOWLEDGEMENT)
        yield Sign(at, "INBOX_PROCESSING", HEARTBEAT)
        yield Sign(at, "MESSAGE_QUEUE", HEARTBEAT)
        yield Sign(at, "WORKSPACE_ACCESS", HEARTBEAT)


def steady(making: Making, name: str) -> Life:
    process = making.random.random() < 0.5
    return making.life(name, "steady", _steadily(making.random), has_process=process)


def bursty(making: Making, name: str) -> Life:
    return making.life(name, "bursty", _in_bursts(making.random))


def long_build(making: Making, name: str) -> Life:
    return making.life(name, "long silent build", _building(making.random), has_process=True)


def crashed(making: Making, name: str) -> Life:
    dies = making.random.uniform(0.5, 0.8) * making.until
    work = making.random.choice((_steadily, _in_bursts))(making.random)
    return making.life(name, "crashed", work, dies=dies)


def hung(making: Making, name: str) -> Life:
    """Its process lives and does nothing."""
    dies = making.random.uniform(0.5, 0.8) * making.until
    return making.life(name, "hung", _steadily(making.random), dies=dies, has_process=True)


def ghost(making: Making, name: str) -> Life:
    """Registered, and never seen."""
    return making.life(name, "ghost", iter(()), dies=0.0)


def noise_only(making: Making, name: str) -> Life:
    return making.life(name, "noise only", _noise(making.random, 0), dies=0.0, answers=True)


def late(making: Making, name: str) -> Life:
    """At work elsewhere; its commits are fetched an hour and a half later."""
    work = (one for one in _steadily(making.random) if one.source == "GIT_COMMIT")
    return making.life(name, "late", work, seen_after=95.0)


KINDS: dict[str, tuple[int, Callable[[Making, str], Life]]] = {
    "steady": (4, steady),
    "bursty": (4, bursty),
    "long silent build": (2, long_build),
    "crashed": (2, crashed),
    "hung": (2, hung),
    "ghost": (1, ghost),
    "noise only": (1, noise_only),
}
"""How many of each there are in a fleet of sixteen."""
