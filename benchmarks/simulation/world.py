"""The world around one session: its repository, what it left in the work tree, what is alive, and what will still happen."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from math import floor, inf
from typing import Literal

from benchmarks.simulation.repository import Baseline, Lines, Repository
from guard.core.check.evidence import Living, Policy, TeamEvidence
from guard.core.check.holders import is_news
from guard.core.iteration.facts import DirtyFile
from guard.core.rescue.state import RepositoryState, obstacle
from guard.core.snapshots.snapshot import HeldBack, Rescue, Snapshot

Kind = Literal["agent", "process", "member"]
_MOST_BEATS = 500


@dataclass(frozen=True)
class Actor:
    """Something that is alive, or that is taken for alive. Times are seconds since the session ended."""

    kind: Kind
    name: str
    seen_until: float = inf
    """When it is gone for those who look: its end, or for a member the end of its lease."""
    works_until: float = inf
    """The truth: until when it gets anything done."""
    every: float = 5.0
    """How often it shows progress while it works."""
    last: float = 0.0
    """When it last did so before the session ended; not after that moment."""

    def living(self, now: float) -> Living | None:
        if now >= self.seen_until:
            return None
        return Living(kind=self.kind, name=self.name, idle_seconds=now - self._progress(now))

    def is_active(self, now: float) -> bool:
        """The truth: whether something may still come of it."""
        return now < min(self.seen_until, self.works_until)

    def turns(self, policy: Policy, until: float) -> Iterator[float]:
        """When it may begin or cease to be waited for."""
        window = (
            policy.max_wait_seconds if self.kind == "member" else policy.progress_window_seconds
        )
        yield self.seen_until
        yield self._progress(self.works_until) + window
        if self.every > window and self.works_until > 0:
            beats = min(_MOST_BEATS, floor(min(self.works_until, until) / self.every))
            for beat in range(1, beats + 1):
                yield beat * self.every
                yield beat * self.every + window

    def _progress(self, now: float) -> float:
        worked = min(now, self.works_until)
        return self.last if worked <= 0 else worked if worked == inf else self._beat(worked)

    def _beat(self, worked: float) -> float:
        return max(self.last, floor(worked / self.every) * self.every)


@dataclass(frozen=True)
class Left:
    """One file in the work tree that is not committed."""

    path: str
    text: str
    how: Literal["staged", "unstaged", "untracked"] = "untracked"
    secret: bool = False
    users: bool = False
    """The truth: the user's own, from before the session."""

    def dirty(self) -> DirtyFile:
        """As `guard.git.dirty` would find it."""
        return DirtyFile(
            path=self.path,
            kind="file",
            content=sha256(self.text.encode()).hexdigest(),
            stamp="",
            index=None,
            staged=self.how == "staged",
            unstaged=self.how == "unstaged",
            untracked=self.how == "untracked",
        )

    @property
    def lines(self) -> Lines:
        return (self.text,)


@dataclass(frozen=True, order=True)
class Happening:
    """What somebody will do at some time, unless the check is over by then."""

    at: float
    act: Callable[["World"], None] = field(compare=False)


@dataclass
class World:
    """Everything that a check can look at, at its own time."""

    repository: Repository
    baseline: Baseline
    work_tree: dict[str, Left] = field(default_factory=dict)
    before: tuple[DirtyFile, ...] = ()
    actors: tuple[Actor, ...] = ()
    team: str | None = None
    hidden: set[str] = field(default_factory=set)
    """Files of the session's that git does not list, by rules that it wrote."""
    operation: str | None = None
    """A merge, rebase or the like that the session left in progress."""
    happenings: list[Happening] = field(default_factory=list)
    now: float = 0.0
    kept: dict[str, str] = field(default_factory=dict)
    """What the newest snapshot has in it."""
    seized: list[str] = field(default_factory=list)
    """Files of the user's that guard committed."""
    intruded: bool = False
    """Whether guard committed under the hands of something that was at work."""

    def living(self) -> tuple[Living, ...]:
        found = (actor.living(self.now) for actor in self.actors)
        return tuple(one for one in found if one is not None)

    def accounted_team(self) -> TeamEvidence | None:
        """What the team's accounting says: members whose lease has not run out."""
        if self.team is None:
            return None
        members = [one for one in self.living() if one.kind == "member"]
        return TeamEvidence(name=self.team, active=len(members))

    def helper_is_active(self) -> bool:
        return any(actor.is_active(self.now) for actor in self.actors)

    def member_is_active(self) -> bool:
        return any(one.kind == "member" and one.is_active(self.now) for one in self.actors)

    def dirty(self, *, with_hidden: bool = False) -> tuple[DirtyFile, ...]:
        """What git lists; and with the hidden files, what the snapshots show besides."""
        return tuple(
            one.dirty()
            for path, one in sorted(self.work_tree.items())
            if with_hidden or path not in self.hidden
        )

    def advance(self, seconds: float) -> None:
        """Let time pass, and happen what happens."""
        until = self.now + seconds
        while self.happenings and min(self.happenings).at <= until:
            next_one = min(self.happenings)
            self.happenings.remove(next_one)
            self.now = max(self.now, next_one.at)
            next_one.act(self)
        self.now = until

    def until_news(self, policy: Policy, seconds: float) -> float:
        """Like a check that waits for news, from one possible turn to the next."""
        begun, refs, before = self.now, self.refs(), self.living()
        for at in self._turns(policy, begun + seconds):
            self.advance(at - self.now)
            if self.refs() != refs or is_news(before, self.living(), policy):
                break
        return self.now - begun

    def _turns(self, policy: Policy, until: float) -> list[float]:
        turns = {one.at for one in self.happenings}
        turns |= {at for actor in self.actors for at in actor.turns(policy, until)}
        return [*sorted(at for at in turns if self.now < at < until), until]

    def refs(self) -> str:
        """HEAD and all refs, to be compared."""
        return repr((self.repository.head, *sorted(self.repository.refs.items())))

    def snapshot(self) -> Snapshot:
        self.kept = {path: one.text for path, one in self.work_tree.items()}
        return Snapshot(
            id="snapshot-1",
            ref="refs/guard/snapshot-1",
            files=len(self.kept),
            skipped=(),
            whole=True,
            recover="guard restore snapshot-1 --to DIR",
        )

    def rescue(self, paths: set[str]) -> Rescue:
        """What guard's rescue does: a snapshot, then commits on the branch, or beside it if the state is not plain."""
        safe = self.snapshot()
        files = [one for path, one in sorted(self.work_tree.items()) if path in paths]
        clean = [one for one in files if not one.secret]
        held = tuple(HeldBack(path=one.path, why="a secret") for one in files if one.secret)
        branch, began = self.repository.branch, self.baseline.branch
        why = obstacle(
            RepositoryState(branch=branch, baseline_branch=began, operation=self.operation)
        )
        if not clean:
            return _rescue((), safe, held, None, "held_back")
        if why is not None:
            return _rescue(("0" * 40,), safe, held, "guard/rescue/r-1", f"not_plain:{why}")
        self.intruded = self.intruded or self.helper_is_active()
        self.seized += [one.path for one in clean if one.users]
        changes = {one.path: one.lines for one in clean}
        is_work = any(not one.users for one in clean)
        oid = self.repository.commit(changes, real=is_work, rescued=True)
        for one in clean:
            del self.work_tree[one.path]
        return _rescue((oid,), safe, held, None, "rescued")

    def unsaved(self) -> list[str]:
        """The agent's work in the work tree that neither a commit nor a snapshot has."""
        committed = self.repository.files()
        agents = [one for one in self.work_tree.values() if not one.users]
        return [
            one.path
            for one in agents
            if committed.get(one.path) != one.lines and self.kept.get(one.path) != one.text
        ]


def _rescue(
    commits: tuple[str, ...],
    snapshot: Snapshot,
    held: tuple[HeldBack, ...],
    branch: str | None,
    reason: str,
) -> Rescue:
    return Rescue(
        commits=commits,
        snapshot=snapshot,
        held_back=held,
        branch=branch,
        reason=reason,
        detail=reason,
    )
