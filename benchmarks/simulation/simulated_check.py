"""The real driver of the check, in a made-up world: it looks, asks, waits, rescues and keeps there instead of here."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from benchmarks.simulation.answers import Told, asked, fails, noise
from benchmarks.simulation.sessions import Session
from benchmarks.simulation.world import World
from guard.check.check import Check
from guard.check.save import WorkKeeper
from guard.check.subject import CheckSubject
from guard.core.check.evidence import Evidence, Policy
from guard.core.check.judge import Step, Verdict
from guard.core.config.settings import Settings
from guard.core.iteration.facts import DirtyFile
from guard.core.probe.answer import ProbeResult
from guard.core.snapshots.snapshot import Rescue, Snapshot
from guard.core.work.count import Work, count_work
from guard.core.work.leftovers import (
    files_changed_since,
    find_leftovers,
    has_changed,
    paths_with_users_work,
)
from guard.git.dirty import Dirty
from guard.iteration.attribution import LeftByIteration

_PROBE_LIMIT_SECONDS = 60.0


class SimulatedCheck(Check):
    """A check that touches nothing."""

    def __init__(self, session: Session, policy: Policy, random: Random, begun: datetime) -> None:
        nothing: Any = None
        super().__init__(
            subject=CheckSubject(nothing, nothing, Settings()),
            policy=policy,
            watch=nothing,
            team=nothing,
            live=lambda _line: None,
        )
        self._session = session
        self._world = session.world
        self._random = random
        self._begun = begun
        self._keeper = SimulatedKeeper(self.subject, session.world)

    def _now(self) -> datetime:
        return self._begun + timedelta(seconds=self._world.now)

    def _look(self) -> Evidence:
        return self.gather()

    def gather(self) -> Evidence:
        world, session = self._world, self._session
        now = world.dirty(with_hidden=bool(self._hidden))
        changed = files_changed_since(world.before, now)
        self._found = LeftByIteration(Dirty((), {}), changed, frozenset())
        self._stamp = world.refs()
        return Evidence(
            at=self._now(),
            round=self._round,
            probed=self._probed,
            changed_since_probe=self._has_changed(self._stamp, world.living()),
            waited_seconds=self._waited,
            work=count_work(world.repository.history(world.baseline)),
            uncommitted=find_leftovers(world.before, now),
            output=session.output,
            agent_ended=session.agent_ended,
            ended_by_guard=session.ended_by_guard,
            can_ask=session.can_ask,
            living=world.living(),
            team=world.accounted_team(),
            probes=tuple(self._probes),
            open_tasks=session.open_tasks,
            rescue=self._rescue,
        )

    def _wait(self, step: Step) -> None:
        passed = self._world.until_news(self.policy, step.seconds)
        self._waited += passed if step.holds else 0
        if step.next_round:
            self._begin_round(self._world.refs(), self._world.living())
            self._rescue = None

    def _ask(self) -> ProbeResult:
        reply = self._session.mind(self._world, self._session.asked)
        self._session.asked += 1
        slow = reply == "timeout"
        self._world.advance(_PROBE_LIMIT_SECONDS if slow else self._random.uniform(1, 20))
        if isinstance(reply, Told):
            return asked(self._random, reply)
        return noise(self._random) if reply == "noise" else fails(self._random, reply, self._now())

    def _may_hide_work(self, evidence: Evidence, decision: Verdict | Step) -> bool:
        if evidence.own_commits and not self._world.hidden:
            return False  # No rule changed by which git could overlook files.
        seen = evidence.model_copy(update={"work": Work()}) if self._world.hidden else evidence
        return super()._may_hide_work(seen, decision)

    def _find_hidden(self) -> bool:
        self._snapshot = self._world.snapshot()
        there = self._world.hidden & self._world.work_tree.keys()
        self._hidden = tuple(self._world.work_tree[path].dirty() for path in sorted(there))
        return bool(there)

    def _commit_left(self) -> Rescue:
        if self._hidden is None and self._find_hidden():
            self.gather()
        self._world.advance(self._random.uniform(0.1, 3))
        return self._world.rescue({file.path for file in self._found.files})

    def _scan_commits(self) -> None:
        """Made-up commits have no content."""


@dataclass(frozen=True)
class SimulatedKeeper(WorkKeeper):
    """Keeps the made-up world."""

    world: World

    def shared_with_user(self, left: tuple[DirtyFile, ...]) -> dict[str, str]:
        return dict.fromkeys(paths_with_users_work(self.world.before, left), "mixed")

    def is_new(self, left: tuple[DirtyFile, ...]) -> bool:
        return has_changed(self.world.before, left)

    def keep_lost(self, work: Work) -> None:
        """What was thrown away is there to be found again in any case."""

    def may_be_hidden(self) -> bool:
        return False

    def warn(self, message: str) -> None:
        """There is no one to warn."""

    def snapshot(self) -> Snapshot:
        return self.world.snapshot()
