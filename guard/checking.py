"""The smart completion check: gather the evidence, let `core.judge` decide, do the step, look again.

All policy is in `core.judge`. Here is what it takes to look (git, processes, the task file), to ask (a probe), to wait, and
to save what would be lost (a snapshot before any verdict, a rescue where the judge asks for one).
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from guard.attribution import not_the_agents, unwatched
from guard.baselines import keep_lost
from guard.clock import Clock
from guard.core.answer import ProbeResult
from guard.core.events.baseline import DirtyFile
from guard.core.events.check import MOST_LOOKS
from guard.core.evidence import MOST_LIVING, Evidence, Living, Policy
from guard.core.holding import living_agent, may_commit
from guard.core.judge import Step, Verdict, judge
from guard.core.rescuing import Rescue, Snapshot
from guard.core.settings import Settings
from guard.core.text import plural
from guard.core.uncommitted import changed_since, left_over, replaced_since
from guard.core.work import Work, count_work
from guard.errors import GuardError, RepositoryProblem
from guard.git.dirty import Dirty, dirty
from guard.git.history import history
from guard.git.refs import head_and_refs_stamp
from guard.living import Watch
from guard.subject import Subject
from guard.taskfiles import open_tasks
from guard.teams import Standing
from guard.waiting import until_news

if TYPE_CHECKING:
    from guard.leftovers import Leftovers

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

    subject: Subject
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
            raise self._after_snapshot(error) from None

    def end_as(self, verdict: Verdict) -> Checked:
        """Look once and keep what is there, under a verdict that is known already."""
        begun = time.monotonic()
        try:
            evidence = self._look()
            self._looks.append(evidence)
            if evidence.uncommitted.any:
                self._snapshot = self._take_snapshot()
        except RepositoryProblem as error:
            raise self._after_snapshot(error) from None
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

    def _alive(self, team: Standing | None = None) -> tuple[Living, ...]:
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
        from guard.leftovers import Leftovers

        return Leftovers(
            self.subject,
            self.settings,
            self._left,
            self._dirty,
            self._not_the_agents() if held is None else held,
            self.clock.now(),
            self.warn,
        )

    def _set_aside(self, changed: tuple[DirtyFile, ...]) -> frozenset[str]:
        """What changed while nobody watched, as of this check's first look: from then on guard is watching again."""
        subject = self.subject
        if self._aside is None:
            self._aside = subject.aside
            if subject.watched_until is not None:
                until, root = subject.watched_until, subject.repository.root
                self._aside |= unwatched(root, changed, self._dirty, until)
        return self._aside

    def _not_the_agents(self) -> Mapping[str, str]:
        subject = self.subject
        return not_the_agents(
            subject.repository,
            subject.baseline,
            self._left,
            subject.environ,
            self.settings.completion_check.git_timeout_seconds,
        )

    def _save(self, verdict: Verdict, evidence: Evidence) -> Evidence:
        """Before any verdict is given: a snapshot of what is uncommitted, and the final rescue where it is due."""
        if evidence.work.lost_tips:
            self._keep_lost(evidence.work)
        if not evidence.uncommitted.any:
            if self._may_be_hidden() or verdict.reason == "nothing_to_do":
                self._snapshot = self._take_snapshot()
                self._say_what_git_does_not_see(self._snapshot)
            return evidence
        due = verdict.status in ("timeout", "error") and self.policy.final_rescue_attempt
        due = due and bool(evidence.uncommitted.names)
        if due and self._rescue is None and may_commit(evidence, self.policy):
            self._rescue = self._rescued()
            evidence = self._look()
        if self._rescue is None or self._rescue.snapshot is None:
            self._snapshot = self._take_snapshot()
        return evidence

    def _say_what_git_does_not_see(self, kept: Snapshot) -> None:
        """Git passes over what it cannot read; who says that nothing was left has to know of it."""
        if not kept.whole:
            self.warn(f"not everything can be read, so something may be left: {kept.skipped[0]}")

    def _may_be_hidden(self) -> bool:
        """Whether rules outside of the work tree, which git obeys and nobody commits, changed since the baseline."""
        rules, began = self.subject.repository.common_dir / "info/exclude", self.subject.baseline.at
        with suppress(OSError):
            if began is not None and rules.stat().st_ctime > began.timestamp():
                self.warn(f"{rules} was changed by the iteration: it may hide files from git")
                return True
        return False

    def _keep_lost(self, work: Work) -> None:
        """Commits that the iteration threw away are pinned, and it is said where."""
        subject, limit = self.subject, self.settings.completion_check.git_timeout_seconds
        ref = keep_lost(
            subject.repository, subject.baseline, work, subject.environ, self.clock.now(), limit
        )
        if ref is not None:
            self.warn(f"{plural(work.lost, 'commit')} lost by the iteration, kept by {ref}")

    def _take_snapshot(self) -> Snapshot:
        from guard.leftovers import kept

        return kept(self.subject, self.settings, self.clock.now())

    def _after_snapshot(self, error: RepositoryProblem) -> RepositoryProblem:
        """Git cannot answer, so there is no verdict; but what is in the work tree is kept all the same."""
        try:
            kept = self._take_snapshot()
        except GuardError as second:
            self.warn(f"no snapshot could be taken: {second.message}")
            return error
        return RepositoryProblem(
            error.message, f"{error.hint or 'mend it'}; the work tree is safe: {kept.recover}"
        )

    def _checked(self, verdict: Verdict, evidence: Evidence, elapsed: float) -> Checked:
        held = self._not_the_agents() if self._left else {}
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
