"""Give a verdict on an iteration: prepare the check, make it, record it and report it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from guard import breaker
from guard.check.check import Check
from guard.check.record import Feeds, record, record_rescue
from guard.check.subject import CheckSubject
from guard.context.invocation import Invocation
from guard.context.workspace import refuse_damaged_index
from guard.core.base.first_use import dataclass
from guard.core.check.evidence import Cutoff, Evidence
from guard.core.check.judge import Verdict
from guard.core.check.last_check import LAST_CHECK, LastCheck
from guard.core.check.report import CheckReport, CheckResult, check_report
from guard.core.classify import Classification
from guard.core.config.settings import Settings
from guard.core.cost.usage import Usage, measure_usage
from guard.core.iteration.events import BaselineSnapshotLost
from guard.core.iteration.run import RUN
from guard.core.run.command import goes_on_with_session
from guard.core.tool_calls.agent_loop import LoopFound
from guard.core.work.leftovers import Uncommitted, find_leftovers
from guard.errors import GuardError, RepositoryProblem, StateProblem
from guard.git.dirty import read_dirty
from guard.git.reader import RepositoryReader
from guard.git.run import limit_git
from guard.hooks.git.commits import find_missed_commits
from guard.hooks.loops import find_hooked_loop
from guard.iteration.attribution import Away
from guard.iteration.current import (
    CheckTerms,
    Iteration,
    current_iteration,
    event_fields,
    last_check,
    watch_processes,
)
from guard.iteration.kept_output import KeptOutput, classify_kept_output, unwatched_since
from guard.iteration.process_watch import ProcessWatch
from guard.snapshots.last_resort import add_snapshot, has_snapshot, saves_before_abort
from guard.snapshots.remote import push_snapshots
from guard.snapshots.shadow import SHADOW_FOLDER, refuse_untrusted
from guard.team import TeamWatch

if TYPE_CHECKING:
    from guard.core.rescue.report import RescueReport


@dataclass(frozen=True)
class Observation:
    """What guard saw of an iteration, besides its work tree."""

    watch: ProcessWatch
    output: Classification | None
    ended_by_guard: Cutoff | None = None
    alone: bool = False
    """Whether no guard watched over it for a while."""
    agent_seconds: float | None = None
    """How long the agent ran, if guard saw it."""
    hooks_loop: LoopFound | None = None
    """What the agent repeated by the word of its hooks, if its output does not tell."""

    @classmethod
    def afterwards(
        cls, guard: Invocation, iteration: Iteration, alone: bool = True
    ) -> "Observation":
        """Return what can still be seen of an iteration that no guard watches over any more."""
        watch = watch_processes(guard, iteration)
        output = classify_kept_output(guard, iteration)
        is_told = output is not None and output.usage is not None  # Then it told of the calls, too.
        hooks_loop = None if is_told else find_hooked_loop(guard, iteration)
        return cls(watch, output, alone=alone, hooks_loop=hooks_loop)


@saves_before_abort
def check(guard: Invocation, terms: CheckTerms) -> CheckReport:
    guard.prepare_workspace()  # A snapshot may be the first thing that goes there.
    iteration = current_iteration(guard, terms)
    report = judge(guard, iteration, terms, Observation.afterwards(guard, iteration))
    push_snapshots(guard)
    return report


def judge(
    guard: Invocation,
    iteration: Iteration,
    terms: CheckTerms,
    seen: Observation,
    feeds_breaker: Feeds = "never",
) -> CheckReport:
    """Check an iteration and record the verdict."""
    beats = feeds_breaker != "never" and not seen.alone
    with _prepare(guard, iteration, terms, seen, beats=beats) as check:
        result = check.make()
        _refuse_broken_state(check.subject)
        record(check, result, feeds_breaker)
        return _report(check.subject, result)


def _refuse_broken_state(subject: CheckSubject) -> None:
    """Raise before a verdict is given, if parts of the state are gone that the check itself did not need."""
    guard, baseline = subject.guard, subject.baseline
    refuse_damaged_index(guard.repository, guard.environ)
    guard.store.refuse_lost_segments()
    guard.store.refuse_changed_log()
    if os.path.lexists(guard.workspace.path / SHADOW_FOLDER):
        refuse_untrusted(guard.workspace.path)
    if baseline.kept is None or has_snapshot(guard, baseline.kept):
        return
    problem = StateProblem(
        f"the snapshot from before the iteration is gone from {guard.workspace.path / SHADOW_FOLDER}",
        "find out which program deleted it; the next command judges the iteration without it",
    )
    error = add_snapshot(guard, problem)
    with suppress(GuardError, OSError), guard.writable_store.change() as change:
        fields = event_fields(guard, subject.iteration, guard.clock.now())
        lost = BaselineSnapshotLost(**fields, baseline=baseline.baseline, kept=baseline.kept)
        change.append(lost)
    raise error


def stop(
    guard: Invocation, iteration: Iteration, terms: CheckTerms, seen: Observation, by: str
) -> CheckReport:
    """Record an iteration that the user ended by a signal: what it left stays its own, and the next run goes on with it."""
    with _prepare(guard, iteration, terms, seen, beats=True) as check:
        result = check.end_as(Verdict("interrupted", "stopped", f"stopped by {by}"))
        record(check, result, "always")
        return _report(check.subject, result)


def look(guard: Invocation, terms: CheckTerms) -> Evidence:
    """Return what can be seen of the newest iteration now; nothing is asked, saved or recorded."""
    iteration = current_iteration(guard, terms)
    seen = Observation.afterwards(guard, iteration)
    with _prepare(guard, iteration, terms, seen) as check:
        return check.gather()


def look_without_baseline(guard: Invocation) -> Uncommitted:
    """Return all that is uncommitted in the work tree."""
    limit = guard.config.settings.completion_check.git_timeout_seconds
    dirty = read_dirty(RepositoryReader(guard.repository, guard.environ, limit))
    return find_leftovers((), dirty.files, ())


@saves_before_abort
def rescue(guard: Invocation, terms: CheckTerms, *, dry: bool, on_branch: bool) -> "RescueReport":
    """Commit what the newest iteration left; for `guard rescue`."""
    from guard.core.rescue.report import RescueReport

    guard.prepare_workspace()  # A snapshot may be the first thing that goes there.
    iteration = _current_or_kept(guard, terms)
    seen = Observation.afterwards(guard, iteration)
    with _prepare(guard, iteration, terms, seen) as check:
        warnings, made = check.rescue(dry=dry, on_branch=on_branch)
    for warning in warnings:
        guard.output.warn(warning)
    if not dry:
        record_rescue(check.subject, made)
        push_snapshots(guard)
    return RescueReport(run=iteration.run, iteration=iteration.number, dry_run=dry, **dict(made))


def _current_or_kept(guard: Invocation, terms: CheckTerms) -> Iteration:
    # Where no iteration is recorded, a snapshot keeps the work before the error is raised.
    try:
        return current_iteration(guard, terms)
    except RepositoryProblem as error:
        raise add_snapshot(guard, error) from None


def _subject(
    guard: Invocation,
    iteration: Iteration,
    terms: CheckTerms,
    seen: Observation,
    last: LastCheck | None,
) -> CheckSubject:
    opened = iteration.opened
    settings = guard.settings(iteration.frozen, terms.flags, iteration.trusted_commits)
    since = unwatched_since(guard, iteration) if seen.alone else None
    agent = terms.agent or settings.completion_check.agent or (opened.agent if opened else None)
    return CheckSubject(
        guard,
        iteration,
        settings,
        agent=agent,
        session=terms.session or (opened.session if opened else None),
        spec=terms.spec,
        output=seen.output,
        ended_by_guard=seen.ended_by_guard,
        hooks_loop=seen.hooks_loop,
        usage=_measure(guard, iteration, settings, seen, last, agent),
        away=() if since is None else (Away.after_guard(since),),
        aside=frozenset(last.aside if last else ()),
    )


def _measure(
    guard: Invocation,
    iteration: Iteration,
    settings: Settings,
    seen: Observation,
    last: LastCheck | None,
    agent: str | None,
) -> Usage:
    if last is not None and last.usage is not None and last.output is not None:
        return last.usage  # The check that saw the agent end measured it.
    output, run = seen.output, guard.store.view(RUN, guard.worktree_key)
    command = run.command if run is not None and run.run == iteration.run else ()
    newest = guard.store.view(LAST_CHECK, guard.worktree_key)
    return measure_usage(
        output.usage if output else None,
        before=newest.totals_of(output.session) if newest and output else None,
        had_history=goes_on_with_session(command),
        prices=settings.cost.price_list,
        agent=agent,
        seconds=seen.agent_seconds,
    )


@contextmanager
def _prepare(
    guard: Invocation,
    iteration: Iteration,
    terms: CheckTerms,
    seen: Observation,
    *,
    beats: bool = False,
) -> Iterator[Check]:
    # A check that beats touches the kept output with each line that it shows: a later guard knows that this one was watching.
    last = last_check(guard, iteration)
    subject = _subject(guard, iteration, terms, seen, last)
    live, kept = guard.output.live(), KeptOutput.of(guard, iteration)

    def say(line: str) -> None:
        if beats:
            kept.touch()
        live.say(line)

    policy = terms.policy(subject.settings)
    team = TeamWatch(guard, iteration, subject.session)
    try:
        with limit_git(subject.deadline):
            yield Check(subject, policy, seen.watch, team, say, last)
    finally:
        if beats:
            kept.touch()
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
        usage=subject.usage,
    )
