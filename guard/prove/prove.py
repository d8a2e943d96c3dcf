"""Prove that committed work passes the project's own checks: run the cells of each check, and record what they prove."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.text import fit_line
from guard.core.config.settings import Settings
from guard.core.prove.events import MOST_NAMED, CheckEntry, ProofMade, TestChangesAccepted
from guard.core.prove.file_roles import FileChanges, matches_glob
from guard.core.prove.judge_work import ProofJudgement, Terms, judge_work
from guard.core.prove.proofs import PROOFS, check_digest
from guard.core.prove.report import (
    MOST_NAMES,
    AcceptReport,
    CheckPlan,
    CheckRun,
    Proof,
    ProofPlan,
    ProofReport,
    make_proof,
)
from guard.core.prove.settings import Moment, ProveCheck, ProveSettings
from guard.core.rescue.redact import known_secrets, redact
from guard.errors import RepositoryProblem, WrongUsage
from guard.git.refs import commit_of, tree_of
from guard.git.status import parse_status, read_status, without_filters
from guard.prove.cells import Cells, TimeOver
from guard.prove.checkout import Checkouts, checkouts_root
from guard.prove.tree_diff import TreeDiff
from guard.prove.work import CommittedWork, ProveTerms, is_agents, reader_of
from guard.system.clock import Deadline

_KEEP_DAYS = 14.0


def prove(
    guard: Invocation, terms: ProveTerms, say: Callable[[str], None] | None = None
) -> ProofReport:
    """Run what is needed, and record and return what it proves; `say` gets its progress."""
    settings = terms.settings or guard.settings(None, terms.flags).prove
    work = CommittedWork(guard, terms, settings)
    assert work.checks
    assert work.head
    guard.prepare_workspace()
    live = guard.output.live()
    deadline = Deadline(settings.total_seconds)
    try:
        proof = run_checks(work, open_checkouts(guard), deadline, say or live.say)
    finally:
        live.clear()
    report = ProofReport(**dict(proof))
    _record(work, report)
    return report


def run_checks(
    work: CommittedWork,
    checkouts: Checkouts,
    deadline: Deadline,
    say: Callable[[str], None],
    *,
    whole_before: bool = False,
) -> Proof:
    """Run what is needed, and return what it proves; nothing is recorded."""
    begun = time.monotonic()
    checks, head = work.checks, work.head
    prover = Prover(work, checkouts, deadline, say, whole_before=whole_before)
    with checkouts.scratch() as scratch:
        runs = [prover.run(check, scratch / check.name) for check in checks]
    return make_proof(
        runs,
        head=head,
        head_tree=tree_of(work.git, head),
        changed_test_files=prover.changed_tests,
        notes=prover.notes,
        seconds=time.monotonic() - begun,
    )


def open_checkouts(guard: Invocation, *, cleans_up: bool = True) -> Checkouts:
    root = checkouts_root(guard.repository, guard.environ)
    checkouts = Checkouts(guard.repository, root, guard.environ)
    if cleans_up:
        checkouts.clean_up(_KEEP_DAYS)
    return checkouts


class Prover:
    """Runs the checks of one proof."""

    def __init__(
        self,
        work: CommittedWork,
        checkouts: Checkouts,
        deadline: Deadline,
        say: Callable[[str], None],
        *,
        whole_before: bool,
    ) -> None:
        self.changed_tests: set[str] = set()
        self.notes: list[str] = []
        self._work, self._checkouts = work, checkouts
        self._deadline, self._say = deadline, say
        self._whole_before = whole_before

    def run(self, check: ProveCheck, scratch: Path) -> CheckRun:
        begun, work, settings = time.monotonic(), self._work, self._work.settings
        bases = work.bases_of(check)
        missing = work.find_missing(bases)
        if missing is not None:
            return CheckRun(
                check, missing, bases.failures, bases.tests, {}, time.monotonic() - begun
            )
        change = work.diff_of(check, bases)
        if not work.concerns(check, bases, change):
            return CheckRun(check, None, bases.failures, bases.tests, {}, 0.0)
        cells = make_cells(work, check, change, self._checkouts, self._deadline, self._say, scratch)
        cells.whole_before = self._whole_before
        judgement = _permit(decide(cells, change.files), settings)
        self.changed_tests.update(change.files.tests)
        self.notes += cells.notes
        judgement = _redact(judgement, known_secrets(work.guard.environ))
        seconds = time.monotonic() - begun
        return CheckRun(check, judgement, bases.failures, bases.tests, cells.cells, seconds)


def make_cells(
    work: CommittedWork,
    check: ProveCheck,
    change: TreeDiff,
    checkouts: Checkouts,
    deadline: Deadline,
    say: Callable[[str], None],
    scratch: Path,
) -> Cells:
    """Make what runs a check on the trees of committed work; `scratch` is a folder that does not exist yet."""
    scratch.mkdir(mode=0o700)
    return Cells(
        checkouts,
        change,
        work.bases_of(check).failures,
        work.foreign,
        check,
        work.settings,
        deadline,
        work.guard.environ,
        scratch,
        checkouts.folder / "known",
        say,
        use_cache=not work.terms.no_cache,
    )


def decide(cells: Cells, files: FileChanges) -> ProofJudgement:
    """Run the cells that are needed, and return what they prove."""
    settings = cells.settings
    terms = Terms(
        settings.reruns,
        installs=bool(settings.setup),
        are_tests=cells.check.kind == "tests",
        foreign=len(cells.foreign),
    )
    steps = judge_work(files, terms)
    need = next(steps)
    try:
        while True:
            need = steps.send(cells.answer(need))
    except StopIteration as end:
        found: ProofJudgement = end.value
        return found
    except TimeOver:
        said = f"all runs together took longer than {settings.total_seconds:g} s"
        return ProofJudgement("unverifiable", "timeout", said)


def explain(guard: Invocation, terms: ProveTerms) -> ProofPlan:
    """Return which file is which, and what would be run; nothing is run."""
    work = CommittedWork(guard, terms, guard.settings(None, terms.flags).prove)
    return ProofPlan(head=work.head, checks=tuple(_plan(work, check) for check in work.checks))


def _plan(work: CommittedWork, check: ProveCheck) -> CheckPlan:
    bases = work.bases_of(check)
    missing = work.find_missing(bases)
    if missing is not None:
        raise RepositoryProblem(missing.detail)
    change = work.diff_of(check, bases)
    files, is_concerned = change.files, work.concerns(check, bases, change)
    return CheckPlan(
        name=check.name,
        command=check.command,
        kind=check.kind,
        is_concerned=is_concerned,
        baseline=bases.failures,
        tests_baseline=bases.tests,
        changed_tests=files.changed_modules,
        new_tests=files.new_modules,
        other_tests=files.other_tests,
        steering=files.steering,
        dependencies=files.dependency_files,
        code=files.code,
        would_run=tuple(_would_run(files, check)) if is_concerned else (),
    )


def _would_run(files: FileChanges, check: ProveCheck) -> list[str]:
    are_tests = check.kind == "tests"
    lines = ["the committed work, all tests" if are_tests else "the committed work"]
    if are_tests and files.needs_old_tests:
        which = files.old_selection
        some = "all tests" if which is None else ", ".join(sorted(which))
        lines.append(f"the new code with the old tests: {some}")
    if are_tests and files.new_modules and files.code:
        lines.append(
            f"the old code with the new tests, if that is quick: {', '.join(files.new_modules)}"
        )
    return [*lines, "the baseline, only if something of this fails"]


def count_uncommitted(guard: Invocation) -> int:
    """Count the files of the work tree that differ from HEAD, or are new."""
    return sum(1 for _ in parse_status(read_status(without_filters(reader_of(guard)))))


def needs_proof(guard: Invocation, settings: Settings, moment: Moment = "iteration") -> bool:
    """Tell whether HEAD has to be proven although it may hold no new work.

    The newest proof refuted it; or a proof is required, and there is none.
    """
    checks = settings.prove.checks_at(moment)
    git = reader_of(guard)
    if not checks or git.line("rev-parse", "--quiet", "--verify", "HEAD^{commit}") is None:
        return False
    head = commit_of(git, "HEAD")
    proofs = guard.store.view(PROOFS, guard.worktree_key)
    results = {proofs.result_at(head, check) for check in checks} if proofs is not None else set()
    # A check that is not concerned has no result.
    results.discard(None)
    return "refuted" in results or (settings.prove.required and results != {"proven"})


def accept(guard: Invocation, revision: str) -> AcceptReport:
    """Record that a person accepts the changes of tests up to a commit."""
    if is_agents(guard):
        raise WrongUsage(
            "an agent of `guard run` cannot accept its own changes of tests",
            "a person does that, in a shell of their own",
        )
    head = commit_of(reader_of(guard), revision)
    proofs = guard.store.view(PROOFS, guard.worktree_key)
    known = [one for one in (proofs.proofs if proofs is not None else ()) if one.head == head]
    newest = known[-1] if known else None
    event = TestChangesAccepted(
        at=guard.clock.now(), id=new_id(), worktree=guard.worktree_key, head=head
    )
    with guard.writable_store.change() as change:
        change.append(event)
    return AcceptReport(
        head=head,
        result=newest.result if newest is not None else None,
        weakened=newest.weakened if newest is not None else (),
        rewritten=newest.rewritten if newest is not None else (),
    )


def _permit(judgement: ProofJudgement, settings: ProveSettings) -> ProofJudgement:
    """Apply what the user says about rewritten tests."""
    if judgement.result != "review":
        return judgement
    allowed = settings.allow_test_changes
    if judgement.reason == "doubtful_change":
        allowed = False  # It is the code that is to be looked at.
    if allowed is True or (
        allowed and judgement.rewritten and _all_match(judgement.rewritten, allowed)
    ):
        return replace(judgement, result="proven", reason="green")
    return replace(judgement, result="refuted") if settings.on_review == "refute" else judgement


def _all_match(names: tuple[str, ...], globs: tuple[str, ...] | bool) -> bool:
    assert not isinstance(globs, bool)
    files = {name.partition("::")[0] for name in names}
    return all(any(matches_glob(file, glob) for glob in globs) for file in files)


def _redact(judgement: ProofJudgement, secrets: tuple[str, ...]) -> ProofJudgement:
    """Remove secrets from all texts that are shown: names of tests have parameters in them."""
    changes: dict[str, Any] = {
        name: tuple(redact(one, secrets) for one in value[:MOST_NAMES]) + value[MOST_NAMES:]
        for name, value in vars(judgement).items()
        if isinstance(value, tuple)
    }
    changes["detail"] = redact(judgement.detail, secrets)
    changes["tail"] = redact(judgement.tail, secrets)
    return replace(judgement, **changes)


def _record(work: CommittedWork, report: ProofReport) -> None:
    guard = work.guard
    event = ProofMade(
        at=guard.clock.now(),
        id=new_id(),
        run=work.terms.run,
        iteration=work.terms.iteration,
        worktree=guard.worktree_key,
        result=report.result,
        reason=report.reason,
        detail=fit_line(report.detail),
        head=report.head,
        head_tree=report.head_tree,
        cells=report.cells,
        new_failures=report.new_failures[:MOST_NAMED],
        weakened=report.weakened[:MOST_NAMED],
        rewritten=report.rewritten[:MOST_NAMED],
        still_failing=len(report.still_failing),
        flaky=len(report.flaky),
        vacuous=len(report.vacuous),
        checks=tuple(
            CheckEntry(
                name=each.name,
                command=check_digest(
                    ProveCheck(name=each.name, command=each.command, kind=each.kind)
                ),
                result=each.result,
                baseline=each.baseline,
                tests_baseline=each.tests_baseline,
            )
            for each in report.checks
            if each.result is not None
        ),
        counts=work.counts,
        seconds=report.seconds,
    )
    with guard.writable_store.change() as change:
        change.append(event)
