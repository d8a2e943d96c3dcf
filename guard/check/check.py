"""The smart completion check: gather the evidence, let `core.judge` decide, do the step, look again.

All policy is in `core.judge`. Here is what it takes to look (git, processes, the task file), to ask (a probe), to wait, and
to have saved what would be lost (a snapshot before any verdict, a rescue where the judge asks for one).
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from guard.check.save import Saving
from guard.check.subject import CheckSubject
from guard.check.taskfile import open_tasks
from guard.check.wait import until_news
from guard.core.base.text import plural
from guard.core.check.evidence import MOST_LIVING, Evidence, Living, Policy
from guard.core.check.holding import living_agent, may_commit
from guard.core.check.judge import Step, Verdict, judge
from guard.core.config.settings import Settings
from guard.core.events.baseline import DirtyFile
from guard.core.events.check import MOST_LOOKS
from guard.core.events.snapshot import Rescue, Snapshot
from guard.core.probe.answer import ProbeResult
from guard.core.work.count import count_work
from guard.core.work.uncommitted import changed_since, left_over, replaced_since
from guard.errors import RepositoryProblem
from guard.git.dirty import Dirty, dirty
from guard.git.history import history
from guard.git.refs import head_and_refs_stamp
from guard.iteration.attribution import unwatched
from guard.iteration.process_watch import Watch
from guard.system.clock import Clock
from guard.team import TeamStanding

if TYPE_CHECKING:
    from guard.check.leftovers import Leftovers

_NOTHING_BEFORE = "no baseline was recorded before: everything dirty counts as the iteration's"


@dataclass(frozen=True)
class Checked:
    """A verdict with all that led to it."""

    verdict: Verdict
    evidence: Evidence
    looks: tuple[Evidence, ...]
    snapshot: Snapshot | None
    rescue: Rescue | None
    left: tuple[DirtyFile, ...]
    """What the iteration left that is its own alone."""
    aside: tuple[str, ...]
    elapsed_seconds: float


@dataclass
class Check:
    """One completion check while it is made."""

    subject: CheckSubject
    settings: Settings
    policy: Policy
    watch: Watch
    clock: Clock
    warn: Callable[[str], None]
    live: Callable[[str], None]
    """The live line: what it waits for, and how long still."""
    checked_before: bool = False
    """Whether the iteration has been checked before,"""
    waited_before: float = 0.0
    """and how long these checks have waited for what is alive."""

    _round: int = 1
    _waited: float = 0.0
    _probed: bool = False
    _probes: list[ProbeResult] = field(default_factory=list)
    _rescue: Rescue | None = None
    _snapshot: Snapshot | None = None
    _looks: list[Evidence] = field(default_factory=list)
    _last_step: str = ""
    _dirty: Dirty = field(default_factory=lambda: Dirty((), {}))
    _left: tuple[DirtyFile, ...] = ()
    _aside: frozenset[str] | None = None
    _stamp: str = ""

    def __post_init__(self) -> None:
        self._saving = Saving(self.subject, self.settings, self.clock, self.warn)

    def make(self) -> Checked:
        """Look, decide and do, until there is a verdict."""
        begun = time.monotonic()
        try:
            while True:
                evidence = self._look()
                decision = judge(evidence, self.policy).decision
                self._remember(evidence, decision)
                if isinstance(decision, Verdict):
                    evidence = self._save(decision, evidence)
                    return self._checked(decision, evidence, time.monotonic() - begun)
                self._do(decision)
        except RepositoryProblem as error:
            raise self._saving.after_snapshot(error) from None

    def end_as(self, verdict: Verdict) -> Checked:
        """Look once and keep what is there, under a verdict that is known already."""
        begun = time.monotonic()
        try:
            evidence = self._look()
            self._looks.append(evidence)
            if evidence.uncommitted.any:
                self._snapshot = self._saving.snapshot()
        except RepositoryProblem as error:
            raise self._saving.after_snapshot(error) from None
        return self._checked(verdict, evidence, time.monotonic() - begun)

    def _look(self) -> Evidence:
        subject, limit = self.subject, self.settings.completion_check.git_timeout_seconds
        repository, environ = subject.repository, subject.environ
        if not self._looks:
            self._finish_rescues(limit)
        self._stamp = head_and_refs_stamp(repository)
        facts = history(repository, subject.baseline, environ, limit, subject.others())
        work = count_work(facts)
        before = subject.baseline.dirty
        self._dirty = dirty(repository, environ, limit, like=before)
        changed = changed_since(before, self._dirty.files)
        aside = self._set_aside(changed)
        self._left = tuple(file for file in changed if file.path not in aside)
        uncommitted = left_over(before, self._dirty.files, work.stashed, aside)
        warnings = (*work.warnings, *self._warnings(aside))
        team = subject.team()
        return Evidence(
            at=self.clock.now(),
            round=self._round,
            probed=self._probed,
            waited_seconds=self.waited_before + self._waited,
            work=work.model_copy(update={"warnings": warnings}),
            uncommitted=uncommitted,
            output=subject.output,
            agent_ended=subject.agent_ended(),
            ended_by_guard=subject.ended_by_guard,
            can_ask=subject.agent is not None,
            living=self._alive(team),
            team=team.team,
            probes=tuple(self._probes),
            open_tasks=open_tasks(repository.root, subject.spec, self.settings),
            rescue=self._rescue,
        )

    def _alive(self, team: TeamStanding | None = None) -> tuple[Living, ...]:
        """Processes and members, the busiest first."""
        members = (team or self.subject.team()).living
        found = sorted((*self.watch.look(), *members), key=lambda one: one.idle_seconds)
        return tuple(found[:MOST_LIVING])

    def _finish_rescues(self, limit: float) -> None:
        from guard.rescue import mended

        mended(self.subject.repository, self.subject.workspace, self.subject.environ, limit)

    def _warnings(self, aside: Collection[str]) -> Iterator[str]:
        """What whoever reads the verdict has to know of the files."""
        baseline = self.subject.baseline
        if baseline.at is None:
            yield _NOTHING_BEFORE
        if aside:
            yield f"{plural(len(aside), 'file')} changed when no guard was watching: the user's"
        if replaced_since(baseline.dirty, self._dirty.files) and baseline.kept:
            yield f"what the user had before is safe: {baseline.kept}"[:512]

    def _remember(self, evidence: Evidence, decision: Verdict | Step) -> None:
        """Looks that led to the same step in a row are one: the newest is kept."""
        said = decision.action if isinstance(decision, Step) else "verdict"
        if self._looks and said == "wait" == self._last_step:
            self._looks.pop()
        self._looks.append(evidence)
        self._last_step = said

    def _do(self, step: Step) -> None:
        match step.action:
            case "probe":
                self.live(step.detail)
                self._probes.append(self._ask())
                self._probed = True
            case "rescue":
                self.live(step.detail)
                self._rescue = self._rescued()
            case "wait":
                self._wait(step)

    def _wait(self, step: Step) -> None:
        def tick(left: float) -> None:
            self.live(f"{step.detail}; waiting at most {_span(left)} more")

        subject = self.subject
        passed = until_news(
            subject.repository, self._stamp, self._alive, self.policy, step.seconds, tick
        )
        self._waited += passed if step.holds else 0
        if step.next_round:
            self._round += 1
            self._probed = False
            if self._rescue is not None and self._rescue.branch is None:
                self._rescue = None

    def _ask(self) -> ProbeResult:
        from guard.probe import ask

        return ask(self.subject.question(self.settings.completion_check, self.clock.now()))

    def rescue(self, *, dry: bool, on_branch: bool) -> tuple[tuple[str, ...], Rescue]:
        """Look once, and commit what was left, whatever the verdict would be; not while the agent itself lives."""
        try:
            evidence = self._look()
        except RepositoryProblem as error:
            return (), self._leftovers({}).only_kept("not_plain:git", error.message)
        warnings, agent = evidence.work.warnings, living_agent(evidence, self.policy)
        if agent is not None:
            return warnings, self._leftovers({}).only_kept("alive", f"{agent.name} is at work")
        return warnings, self._leftovers().committed(dry=dry, on_branch=on_branch)

    def _rescued(self) -> Rescue:
        return self._leftovers().committed()

    def _leftovers(self, held: Mapping[str, str] | None = None) -> "Leftovers":
        return self._saving.leftovers(self._left, self._dirty, held)

    def _set_aside(self, changed: tuple[DirtyFile, ...]) -> frozenset[str]:
        """What changed while nobody watched, as of this check's first look: from then on guard is watching again."""
        subject = self.subject
        if self._aside is None:
            self._aside = subject.aside
            if subject.watched_until is not None:
                until, root = subject.watched_until, subject.repository.root
                self._aside |= unwatched(root, changed, self._dirty, until)
        return self._aside

    def _save(self, verdict: Verdict, evidence: Evidence) -> Evidence:
        """Before any verdict is given: a snapshot of what is uncommitted, and the final rescue where it is due."""
        if evidence.work.lost_tips:
            self._saving.keep_lost(evidence.work)
        if not evidence.uncommitted.any:
            if self._saving.may_be_hidden() or verdict.reason == "nothing_to_do":
                self._snapshot = self._saving.snapshot()
                self._saving.say_what_git_does_not_see(self._snapshot)
            return evidence
        due = verdict.status in ("timeout", "error") and self.policy.final_rescue_attempt
        due = due and bool(evidence.uncommitted.names)
        if due and self._rescue is None and may_commit(evidence, self.policy):
            self._rescue = self._rescued()
            evidence = self._look()
        if self._rescue is None or self._rescue.snapshot is None:
            self._snapshot = self._saving.snapshot()
        return evidence

    def _checked(self, verdict: Verdict, evidence: Evidence, elapsed: float) -> Checked:
        held = self._saving.not_the_agents(self._left) if self._left else {}
        return Checked(
            verdict=verdict,
            evidence=evidence,
            looks=tuple(self._looks[-MOST_LOOKS:]),
            snapshot=self._snapshot or (self._rescue.snapshot if self._rescue else None),
            rescue=self._rescue,
            left=tuple(one for one in self._left if one.path not in held),
            aside=tuple(sorted(self._aside or ())),
            elapsed_seconds=elapsed,
        )


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
