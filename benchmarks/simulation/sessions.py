"""One session that has ended, or seems to have: what can be seen of it, and the truth that cannot."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from random import Random
from typing import Literal

from benchmarks.simulation.answers import Fails, Told
from benchmarks.simulation.outputs import Ending, printed
from benchmarks.simulation.repository import Repository
from benchmarks.simulation.world import Actor, Happening, Left, World
from guard.core.check.evidence import Cutoff
from guard.core.classify import Classification
from guard.core.iteration.facts import Status

Reply = Told | Fails | Literal["noise"]
Mind = Callable[[World, int], Reply]
"""What the session says when it is asked for the nth time, counted from 0."""

WORKING = Told("working", pending=("1.2",), more=True)
WAITING = Told("waiting", helpers=True)
COMPLETE = Told("complete", commits=1)


@dataclass(frozen=True)
class Truth:
    """What really happened, written down before anybody looks."""

    right: frozenset[Status]
    """The verdicts that say it."""
    stalled: bool = False
    """Nothing was done, nothing is on its way, and nothing but the agent is to blame."""
    nothing_to_do: bool = False
    killed: bool = False
    """Helpers died with the session, so that its work is not whole."""
    denied: bool = False
    must_be_rescued: bool = False
    """Work was done and not committed."""
    error: str = ""
    """What it failed with, if that has a name."""
    unprovable: bool = False
    """A lie that nothing in the world contradicts."""


def truth(*right: Status, stalled: bool = False, **more: object) -> Truth:
    """The truth, beginning with what is right to say of it."""
    return Truth(frozenset(right), stalled=stalled, **more)  # type: ignore[arg-type]


@dataclass
class Session:
    """All that a check can find out about, with the truth beside it."""

    truth: Truth
    world: World
    mind: Mind
    output: Classification | None
    agent_ended: bool
    can_ask: bool
    open_tasks: int | None
    ended_by_guard: Cutoff | None = None
    asked: int = 0
    """How often it was asked so far, by all checks together."""


def always(*replies: Reply) -> Mind:
    """One reply after the other; the last one for ever."""
    return lambda _world, number: replies[min(number, len(replies) - 1)]


@dataclass
class Making:
    """A session while it is made up."""

    random: Random
    now: datetime
    supervised: bool = True
    """Whether guard ran the agent, and so has seen its output and its end; else somebody checks from beside."""
    world: World = field(init=False)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        repository = Repository()
        for number in range(self.random.randint(3, 6)):
            repository.commit({f"old-{number}.py": (f"old {number}",)})
        self.world = World(repository, repository.baseline())
        if self.random.random() < 0.2:
            self.users_files()
        if self.random.random() < 0.15:
            self.idle_server()

    @property
    def repository(self) -> Repository:
        return self.world.repository

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def seconds(self, least: float, most: float) -> float:
        """Some time, short ones as likely as long ones."""
        return float(round(least * (most / least) ** self.random.random(), 1))

    def change(self) -> dict[str, tuple[str, ...] | None]:
        """Something new in a new file."""
        number = next(self._numbers)
        return {f"src/new-{number}.py": (f"work {number} {self.random.random()}",)}

    def commits(self, most: int = 3) -> None:
        """The agent does its work and commits it."""
        for _ in range(self.random.randint(1, most)):
            self.repository.commit(self.change(), real=True)

    def leaves(self, most: int = 4, *, secrets: bool = False) -> None:
        """The agent does its work and does not commit it."""
        for _ in range(self.random.randint(1, most)):
            leave(self.world, self, secret=secrets)

    def hides(self) -> None:
        """The agent does its work, and a rule of its own keeps git from listing it."""
        before = set(self.world.work_tree)
        self.leaves()
        new = self.world.work_tree.keys() - before
        self.world.hidden |= new if self.chance(0.6) else {min(new)}

    def users_files(self) -> None:
        """The user had begun something before the session."""
        for number in range(self.random.randint(1, 3)):
            mine = Left(f"mine-{number}.py", f"mine {number}", "unstaged", users=True)
            self.world.work_tree[mine.path] = mine
            self.repository.users[mine.path] = mine.lines
        self.world.before = self.world.dirty()

    def commits_users_files(self) -> None:
        """The agent commits what the user had begun, in one commit or in several."""
        mine = {path: one.lines for path, one in self.world.work_tree.items() if one.users}
        for path in mine:
            del self.world.work_tree[path]
        parts = [mine] if self.chance(0.5) else [{path: lines} for path, lines in mine.items()]
        for part in parts:
            self.repository.commit(part)

    def idle_server(self) -> None:
        """The agent left a server running, which does nothing."""
        since = -self.random.choice((20.0, 300.0, 9000.0))
        self.alive(Actor("process", "vite", works_until=since, last=since))

    def alive(self, *actors: Actor) -> None:
        self.world.actors += actors

    def later(self, at: float, act: Callable[[World], None]) -> None:
        self.world.happenings.append(Happening(at, act))

    def later_commits(self, at: float) -> None:
        """Somebody of this session will commit work."""
        change = self.change()
        self.later(at, lambda world: void(world.repository.commit(change, real=True)))

    def later_leaves(self, at: float) -> None:
        """Somebody of this session will write files."""
        self.later(at, lambda world: leave(world, self))

    def session(
        self,
        real: Truth,
        mind: Mind,
        ending: Ending = "ok",
        *,
        can_ask: bool = True,
        open_tasks: int | Literal["any"] | None = "any",
        ended_by_guard: Cutoff | None = None,
    ) -> Session:
        """The session, with all that there is to be seen of it."""
        tasks = self.random.choice((None, 2)) if open_tasks == "any" else open_tasks
        output = printed(self.random, ending, self.now) if self.supervised else None
        cut = ended_by_guard
        return Session(real, self.world, mind, output, self.supervised, can_ask, tasks, cut)


def leave(world: World, make: Making, *, secret: bool = False) -> None:
    """One more file that is not committed."""
    ((path, lines),) = make.change().items()
    assert lines is not None
    how: Literal["staged", "untracked"] = "staged" if make.chance(0.3) else "untracked"
    world.work_tree[path] = Left(path, lines[0], how, secret=secret)


def void(_value: object) -> None:
    """Of an act nothing is wanted but that it is done."""
