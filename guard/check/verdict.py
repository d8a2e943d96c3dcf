"""Give a verdict on an iteration: prepare the check, make it, record it and report it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from guard import breaker
from guard.check.check import Check
from guard.check.record import Feeds, record, record_rescue
from guard.check.subject import CheckSubject
from guard.context.invocation import Invocation
from guard.core.check.evidence import Cutoff
from guard.core.check.judge import Verdict
from guard.core.check.last_check import LastCheck
from guard.core.check.report import CheckReport, CheckResult, check_report
from guard.core.classify import Classification
from guard.core.snapshots.snapshot import Occasion
from guard.errors import GuardError, RepositoryProblem
from guard.hooks.git.commits import find_missed_commits
from guard.iteration.attribution import Away
from guard.iteration.current import (
    CheckTerms,
    Iteration,
    current_iteration,
    last_check,
    watch_processes,
)
from guard.iteration.kept_output import KeptOutput, classify_kept_output, unwatched_since
from guard.iteration.process_watch import ProcessWatch
from guard.snapshots.take import keep
from guard.team import TeamWatch

if TYPE_CHECKING:
    from guard.core.rescue.report import RescueReport


def check(guard: Invocation, terms: CheckTerms) -> CheckReport:
    guard.prepare_workspace()  # A snapshot may be the first thing that goes there.
    iteration = current_iteration(guard, terms)
    watch, output = watch_processes(guard, iteration), classify_kept_output(guard, iteration)
    return judge(guard, iteration, terms, watch=watch, output=output, alone=True)


def judge(
    guard: Invocation,
    iteration: Iteration,
    terms: CheckTerms,
    *,
    watch: ProcessWatch,
    output: Classification | None = None,
    ended_by_guard: Cutoff | None = None,
    alone: bool = False,
    feeds_breaker: Feeds = "never",
) -> CheckReport:
    """Check an iteration and record the verdict; `alone` says that no guard watched over it for a while."""
    last = last_check(guard, iteration)
    subject = _subject(guard, iteration, terms, output, last, alone=alone)
    subject = replace(subject, ended_by_guard=ended_by_guard)
    beat = None
    if feeds_breaker != "never" and not alone:
        beat = KeptOutput.of(guard, iteration).touch
    with _prepare(subject, terms, watch, last, beat) as check:
        result = check.make()
    record(check, result, feeds_breaker)
    return _report(subject, result)


def stop(
    guard: Invocation,
    iteration: Iteration,
    terms: CheckTerms,
    *,
    watch: ProcessWatch,
    output: Classification,
    by: str,
) -> CheckReport:
    """Record an iteration that the user ended by a signal: what it left stays its own, and the next run goes on with it."""
    subject, last = _subject(guard, iteration, terms, output), last_check(guard, iteration)
    beat = KeptOutput.of(guard, iteration).touch
    with _prepare(subject, terms, watch, last, beat) as check:
        result = check.end_as(Verdict("interrupted", "stopped", f"stopped by {by}"))
    record(check, result, "always")
    return _report(subject, result)


def rescue(guard: Invocation, terms: CheckTerms, *, dry: bool, on_branch: bool) -> "RescueReport":
    """Commit what the newest iteration left; for `guard rescue`."""
    from guard.core.rescue.report import RescueReport

    guard.prepare_workspace()  # A snapshot may be the first thing that goes there.
    iteration = _current_or_kept(guard, terms)
    output, watch = classify_kept_output(guard, iteration), watch_processes(guard, iteration)
    last = last_check(guard, iteration)
    subject = _subject(guard, iteration, terms, output, last, alone=True)
    with _prepare(subject, terms, watch, last) as check:
        warnings, made = check.rescue(dry=dry, on_branch=on_branch)
    for warning in warnings:
        guard.output.warn(warning)
    if not dry:
        record_rescue(subject, made)
    return RescueReport(run=iteration.run, iteration=iteration.number, dry_run=dry, **dict(made))


def _current_or_kept(guard: Invocation, terms: CheckTerms) -> Iteration:
    # Where no iteration is recorded, a snapshot keeps the work before the error is raised.
    try:
        return current_iteration(guard, terms)
    except RepositoryProblem as error:
        kept = keep(guard, Occasion("by_hand", guard.clock.now()))
        hint = f"{error.hint}; the work tree is safe: guard restore {kept.id}"
        raise RepositoryProblem(error.message, hint) from None


def _subject(
    guard: Invocation,
    iteration: Iteration,
    terms: CheckTerms,
    output: Classification | None,
    last: LastCheck | None = None,
    *,
    alone: bool = False,
) -> CheckSubject:
    opened = iteration.opened
    settings = guard.settings(iteration.frozen, terms.flags)
    since = unwatched_since(guard, iteration) if alone else None
    return CheckSubject(
        guard,
        iteration,
        settings,
        agent=terms.agent or settings.completion_check.agent or (opened.agent if opened else None),
        session=terms.session or (opened.session if opened else None),
        spec=terms.spec,
        output=output,
        away=() if since is None else (Away.after_guard(since),),
        aside=frozenset(last.aside if last else ()),
    )


@contextmanager
def _prepare(
    subject: CheckSubject,
    terms: CheckTerms,
    watch: ProcessWatch,
    last: LastCheck | None,
    beat: Callable[[], None] | None = None,
) -> Iterator[Check]:
    # `beat` is called with each line that is shown, so that a later guard knows that this one was watching.
    guard = subject.guard
    live = guard.output.live()

    def say(line: str) -> None:
        if beat is not None:
            beat()
        live.say(line)

    try:
        yield Check(
            subject,
            terms.policy(subject.settings),
            watch,
            TeamWatch(guard, subject.iteration, subject.session),
            say,
            last,
        )
    finally:
        if beat is not None:
            beat()
        live.clear()


def _report(subject: CheckSubject, result: CheckResult) -> CheckReport:
    guard, missed = subject.guard, list[str]()
    with suppress(GuardError):  # For information: no verdict goes by it.
        missed += find_missed_commits(guard, subject.baseline).sentences()
    return check_report(
        result,
        subject.baseline,
        breaker.load(guard.store, guard.worktree_key),
        agent=subject.agent,
        session=subject.session,
        missed=missed,
    )
