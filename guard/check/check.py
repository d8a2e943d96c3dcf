"""Make a completion check: gather the evidence, let `core.check.judge` decide, do the step, look again.

All policy is in the core. This module looks (git, processes, the task file), asks (a probe), waits, and has saved what would be
lost (a snapshot before any verdict, a rescue where the judge asks for one).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from guard.check.save import WorkKeeper, rescue_site
from guard.check.subject import CheckSubject
from guard.check.taskfile import count_open_tasks
from guard.core.base.first_use import dataclass
from guard.core.base.paths import unspell
from guard.core.base.text import fit_line, plural
from guard.core.check.events import MOST_LOOKS
from guard.core.check.evidence import MOST_LIVING, Evidence, Living, Policy
from guard.core.check.holders import is_at_work, is_news, living_agent, may_answer_anew, may_commit
from guard.core.check.judge import Step, Verdict, hold_against_proof, judge, settle
from guard.core.check.last_check import LastCheck
from guard.core.check.report import CheckResult
from guard.core.iteration.facts import GOES_ON, DirtyFile
from guard.core.probe.answer import ProbeResult
from guard.core.prove.report import Proof, is_worse
from guard.core.prove.summary import ProofSummary
from guard.core.snapshots.snapshot import Rescue, Snapshot
from guard.core.work.count import commits_with_changes, count_work, tips_of_work
from guard.core.work.history import History
from guard.core.work.leftovers import find_leftovers, find_replaced
from guard.errors import GuardError, RepositoryProblem, StoreUnavailable
from guard.git.dirty import Dirty
from guard.git.history import read_history
from guard.git.refs import head_and_refs_stamp
from guard.git.run import limit_git
from guard.hooks.ingest import ingest_hooks
from guard.iteration.attribution import LeftByIteration, left_by_iteration, paths_behind
from guard.iteration.current import has_agent_ended
from guard.iteration.process_watch import ProcessWatch
from guard.team import TeamWatch

if TYPE_CHECKING:
    from guard.check.leftovers import Leftovers
    from guard.rescue.scan_commits import CommitScan

_PAUSE_SECONDS = 0.2
_MOST_NAMES = 5
_NO_COMMAND = ProofSummary(
    result="unverifiable",
    reason="no_command",
    detail="prove.required is set, and no command is named that the work must pass",
)
_MOST_TIPS = 5
"""So many branches with work on them are proven."""
_NOTHING_BEFORE = (
    "no baseline was recorded before: every uncommitted change counts as the iteration's"
)


@dataclass
class Check:
    """One completion check while it is made."""

    subject: CheckSubject
    policy: Policy
    watch: ProcessWatch
    team: TeamWatch
    live: Callable[[str], None]
    """Shows what the check waits for, and how long still."""
    last: LastCheck | None = None
    """The check of this iteration before this one."""

    _round: int = 1
    _waited: float = 0.0
    _probed: bool = False
    _probes: list[ProbeResult] = field(default_factory=list)
    _asked: tuple[str, tuple[Living, ...]] | None = None
    """The refs and what was alive when the last probe was asked."""
    _rescue: Rescue | None = None
    _snapshot: Snapshot | None = None
    _proof: Proof | None = None
    _looks: list[Evidence] = field(default_factory=list)
    _last_step: str = ""
    _stamp: str = ""
    _hidden: tuple[DirtyFile, ...] | None = None
    """What the iteration hid from git; None if that was not looked for."""

    def __post_init__(self) -> None:
        self._keeper = WorkKeeper(self.subject)
        self._found = LeftByIteration(Dirty((), {}), (), self.subject.aside)
        self._away = self.subject.away
        self._history = History()

    @property
    def waited_before(self) -> float:
        """Return how many seconds the earlier checks of the iteration have waited."""
        return self.last.waited_seconds if self.last is not None else 0.0

    def make(self) -> CheckResult:
        """Look, decide and do, until there is a verdict."""
        begun = time.monotonic()
        try:
            while True:
                evidence = self._look()
                decision = judge(evidence, self.policy).decision
                if self._may_hide_work(evidence, decision) and self._find_hidden():
                    evidence = self.gather()
                    decision = judge(evidence, self.policy).decision
                self._remember(evidence, decision)
                if isinstance(decision, Verdict):
                    evidence = self._save(decision, evidence)
                    verdict = self._hold_against_proof(settle(decision, evidence), evidence)
                    return self._result(verdict, evidence, time.monotonic() - begun)
                self._do(decision)
        except (RepositoryProblem, StoreUnavailable) as error:
            raise self._keeper.after_snapshot(error) from None

    def end_as(self, verdict: Verdict) -> CheckResult:
        """Look once and keep what is there, under a verdict that is known already."""
        begun = time.monotonic()
        try:
            evidence = self._look()
            self._looks.append(evidence)
            if evidence.uncommitted.has_any:
                self._snapshot = self._keeper.snapshot()
        except (RepositoryProblem, StoreUnavailable) as error:
            raise self._keeper.after_snapshot(error) from None
        return self._result(verdict, evidence, time.monotonic() - begun)

    def rescue(self, *, dry: bool, on_branch: bool) -> tuple[tuple[str, ...], Rescue]:
        """Look once and commit what was left, unless the agent itself lives; the warnings, and the rescue."""
        try:
            evidence = self._look()
        except RepositoryProblem as error:
            return (), self._leftovers({}).only_keep("not_plain:git", error.message)
        warnings, agent = evidence.work.warnings, living_agent(evidence, self.policy)
        if agent is not None:
            return warnings, self._leftovers({}).only_keep("alive", f"{agent.name} is at work")
        if self._find_hidden():
            warnings = self.gather().work.warnings
        return warnings, self._leftovers().commit(dry=dry, on_branch=on_branch)

    def _look(self) -> Evidence:
        if not self._looks:
            self._finish_rescues()
        self._record_news()
        return self.gather()

    def _finish_rescues(self) -> None:
        from guard.rescue import mend_killed_rescue

        mend_killed_rescue(replace(rescue_site(self.subject), time_limit=self.subject.git_limit))

    def _record_news(self) -> None:
        """Record what the hooks have spooled and which helpers ended with the agent; looking itself writes nothing."""
        ingest_hooks(self.subject.guard)
        self.team.record_end_of_host()

    def gather(self) -> Evidence:
        """Look at the work tree, the processes and the team; this writes nothing."""
        subject, baseline, git = self.subject, self.subject.baseline, self.subject.git
        self._stamp = head_and_refs_stamp(subject.repository)
        self._history = read_history(git, baseline, subject.other_refs(), subject.noted_commits())
        work = count_work(self._history)
        self._found = left_by_iteration(git, baseline, aside=self._found.aside, away=self._away)
        self._found = self._found.with_hidden(self._hidden or ())
        if work.imported and not work.new_commits:
            behind = paths_behind(git, baseline, work.head, self._found)
            self._found = replace(self._found, behind=behind)
        self._away = ()  # From the first look on this guard is watching.
        found = self._found
        dirty = tuple(file for file in found.dirty.files if file.path not in found.behind)
        team = self.team.look()
        living = self._list_busiest(team.living)
        return Evidence(
            at=subject.guard.clock.now(),
            round=self._round,
            probed=self._probed,
            changed_since_probe=self._has_changed(self._stamp, living),
            waited_seconds=self.waited_before + self._waited,
            work=work.model_copy(update={"warnings": (*work.warnings, *self._warnings())}),
            uncommitted=find_leftovers(baseline.dirty, dirty, work.stashed, found.aside),
            output=subject.output,
            agent_ended=has_agent_ended(subject.guard, subject.iteration),
            ended_by_guard=subject.ended_by_guard,
            hooks_loop=subject.hooks_loop,
            can_ask=subject.agent is not None,
            living=living,
            team=team.team,
            probes=tuple(self._probes),
            open_tasks=count_open_tasks(subject.repository.root, subject.spec, subject.settings),
            rescue=self._rescue,
        )

    def _list_busiest(self, members: tuple[Living, ...]) -> tuple[Living, ...]:
        alive = sorted((*self.watch.look(), *members), key=lambda living: living.idle_seconds)
        return tuple(alive[:MOST_LIVING])

    def _warnings(self) -> Iterator[str]:
        baseline, found = self.subject.baseline, self._found
        if baseline.at is None:
            yield _NOTHING_BEFORE
        if found.aside:
            yield f"{plural(len(found.aside), 'file')} changed while no guard was watching: taken for the user's"
        if found.behind:
            files = plural(len(found.behind), "file")
            yield f"commits from elsewhere moved HEAD, and the work tree is behind it: {files}"
        if self._hidden:
            names = ", ".join(file.path for file in self._hidden[:_MOST_NAMES])
            files = plural(len(self._hidden), "file")
            yield fit_line(f"the iteration hid {files} from git: {names}")
        replaced = find_replaced(baseline.dirty, found.dirty.files)
        yield from self._keeper.tell_what_is_kept(replaced) if replaced else ()

    def _may_hide_work(self, evidence: Evidence, decision: Verdict | Step) -> bool:
        """Tell whether it has to be found out what git does not list: before a verdict says that nothing was left."""
        if self._hidden is not None or not isinstance(decision, Verdict):
            return False
        if evidence.uncommitted.has_any or (decision.status, decision.reason) in GOES_ON:
            return False
        if not evidence.own_commits:
            return True  # What cannot be read leaves no trace but in the snapshot.
        from guard.check.hidden import may_hide

        try:
            return may_hide(self.subject)
        except GuardError:
            return True

    def _find_hidden(self) -> bool:
        from guard.check.hidden import find_hidden

        self._snapshot = self._keeper.snapshot()
        self._keeper.warn_of_unread(self._snapshot)
        try:
            self._hidden = find_hidden(self.subject, self._snapshot, self._found.dirty)
        except GuardError as error:
            self._hidden = ()
            what = "guard cannot tell whether the iteration hid work from git"
            self._keeper.warn(f"{what}: {error.message}")
        return bool(self._hidden)

    def _remember(self, evidence: Evidence, decision: Verdict | Step) -> None:
        # Of looks that led to a wait one after another only the newest is kept.
        step = decision.action if isinstance(decision, Step) else "verdict"
        if self._looks and step == "wait" == self._last_step:
            self._looks.pop()
        self._looks.append(evidence)
        self._last_step = step

    def _do(self, step: Step) -> None:
        match step.action:
            case "probe":
                self.live(step.detail)
                self._asked = (self._stamp, self._looks[-1].living)
                self._probes.append(self._ask())
                self._probed = True
            case "rescue":
                self.live(step.detail)
                self._rescue = self._commit_left()
            case "wait":
                self._wait(step)

    def _wait(self, step: Step) -> None:
        with self.subject.stop_clock():
            passed = self._wait_for_news(step)
        self._waited += passed if step.holds else 0
        if step.next_round:
            self._begin_round(head_and_refs_stamp(self.subject.repository), self._living_now())

    def _begin_round(self, stamp: str, living: tuple[Living, ...]) -> None:
        self._round += 1
        is_answered = bool(self._probes) and self._probes[-1].answer is not None
        self._probed = is_answered and not self._has_changed(stamp, living)
        if self._rescue is not None and self._rescue.branch is None:
            self._rescue = None

    def _has_changed(self, stamp: str, living: tuple[Living, ...]) -> bool:
        """Tell whether the session may answer otherwise than it did when it was last asked."""
        if self._asked is None:
            return False
        return stamp != self._asked[0] or may_answer_anew(self._asked[1], living, self.policy)

    def _wait_for_news(self, step: Step) -> float:
        """Wait until a ref moves, what lived has ended or gone idle, or the time is over; the seconds it took."""
        repository, begun = self.subject.repository, time.monotonic()
        before = self._looks[-1].living
        while True:
            passed = time.monotonic() - begun
            # Compared with the look that led here, so that nothing that happened since is missed.
            if passed >= step.seconds or head_and_refs_stamp(repository) != self._stamp:
                return passed
            if is_news(before, self._living_now(), self.policy):
                return passed
            left = step.seconds - passed
            self.live(f"{step.detail}; waiting at most {_span(left)} more")
            time.sleep(min(_PAUSE_SECONDS, max(0.0, left)))

    def _living_now(self) -> tuple[Living, ...]:
        self._record_news()
        return self._list_busiest(self.team.look().living)

    def _ask(self) -> ProbeResult:
        from guard.probe import ask

        with self.subject.stop_clock(), self.watch.probing():
            return ask(self.subject.question())

    def _commit_left(self) -> Rescue:
        if self._hidden is None and self._find_hidden():
            self._found = self._found.with_hidden(self._hidden or ())
        made = self._leftovers().commit()
        if self._hidden:
            self._hidden = None
            self.gather()
            self._find_hidden()
        return made

    def _leftovers(self, held: Mapping[str, str] | None = None) -> "Leftovers":
        from guard.check.leftovers import Leftovers

        found = self._found
        if held is None:
            held = self._keeper.shared_with_user(found.files)
        return Leftovers(
            self.subject, found.files, found.dirty, held, self.subject.guard.clock.now()
        )

    def _save(self, verdict: Verdict, evidence: Evidence) -> Evidence:
        # Before any verdict is given: a snapshot of what is uncommitted, and the final rescue where it is due.
        if evidence.work.lost_tips:
            self._keeper.keep_lost(evidence.work)
        if not evidence.uncommitted.has_any:
            return evidence
        is_due = verdict.status in ("timeout", "error") and self.policy.final_rescue_attempt
        is_due = is_due and bool(evidence.uncommitted.names)
        if is_due and self._rescue is None and may_commit(evidence, self.policy):
            self._rescue = self._commit_left()
            evidence = self._look()
            self._looks.append(evidence)
        if self._rescue is None or self._rescue.snapshot is None:
            self._snapshot = self._keeper.snapshot()
        return evidence

    def _hold_against_proof(self, verdict: Verdict, evidence: Evidence) -> Verdict:
        """Prove complete work by the project's own checks, if the user has named them."""
        subject, policy = self.subject, self.policy
        checks = subject.settings.prove.checks_at("iteration")
        is_asked = policy.prove and (checks or policy.prove_required)
        if verdict.status != "complete" or not is_asked:
            return verdict
        if is_at_work(evidence, policy):
            self._keeper.warn("not proven: something of the iteration is still at work")
            return verdict
        from guard.prove.prove import needs_proof

        is_new = bool(evidence.own_commits or self._rescue)
        tips = tips_of_work(self._history) if is_new else ()
        if not tips and (self._rescue or needs_proof(subject.guard, subject.settings)):
            tips = (evidence.work.head,) if evidence.work.head is not None else ()
        if tips and not checks:
            return hold_against_proof(verdict, _NO_COMMAND, policy)
        try:
            for tip in tips[:_MOST_TIPS]:
                proof = self._prove(tip)
                if self._proof is None or is_worse(proof, self._proof):
                    self._proof = proof
        except (GuardError, OSError) as error:
            said = f"guard could not prove the work: {error}"
            self._keeper.warn(said)
            failed = ProofSummary(
                result="unverifiable", reason="guard_failed", detail=fit_line(said)
            )
            return hold_against_proof(verdict, failed, policy)
        return hold_against_proof(verdict, self._proof, policy)

    def _prove(self, tip: str) -> Proof:
        from guard.prove.prove import prove
        from guard.prove.work import ProveTerms

        subject = self.subject
        terms = ProveTerms(
            head=tip,
            since=subject.baseline.head if subject.baseline.revision is not None else None,
            settings=subject.settings.prove,
            run=subject.iteration.run,
            iteration=subject.iteration.number,
            moment="iteration",
        )
        with subject.stop_clock(), limit_git(None):
            return prove(subject.guard, terms, self.live)

    def _result(self, verdict: Verdict, evidence: Evidence, elapsed: float) -> CheckResult:
        left = self._found.files
        shared = self._keeper.shared_with_user(left) if left else {}
        scan = self._scan_commits()
        return CheckResult(
            verdict=verdict,
            evidence=evidence,
            looks=tuple(self._looks[-MOST_LOOKS:]),
            snapshot=self._snapshot or (self._rescue.snapshot if self._rescue else None),
            rescue=self._rescue,
            left=tuple(file for file in left if file.path not in shared),
            aside=tuple(sorted(self._found.aside)),
            elapsed_seconds=elapsed,
            is_new=self._keeper.is_new(left),
            secrets=tuple(scan.secrets) if scan is not None else (),
            not_scanned=tuple(scan.not_scanned) if scan is not None else (),
            proof=self._proof,
        )

    def _scan_commits(self) -> "CommitScan | None":
        subject, commits = self.subject, commits_with_changes(self._history)
        baseline, allowed = subject.baseline, subject.settings.rescue.allow_secrets
        files = self._found.dirty.files
        nested = [unspell(file.path) for file in files if file.kind == "repository"]
        if not (commits or nested or (subject.repository.git_dir / "modules").is_dir()):
            return None
        from guard.rescue.scan_commits import scan_commits, scan_nested

        scan = scan_commits(subject.git, commits, baseline.head, allowed)
        scan.add(scan_nested(subject.git, nested, baseline, allowed))
        return scan


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
