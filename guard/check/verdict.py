"""A verdict on an iteration: the check is given what it is about, made, recorded and reported."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from guard.check.check import Check
from guard.check.other_worktrees import names_of_others
from guard.check.record import Feeds, record, record_rescue, report
from guard.check.subject import CheckSubject
from guard.context.invocation import Invocation
from guard.core.check.evidence import Cutoff
from guard.core.check.judge import Verdict
from guard.core.check.last_check import LastCheck
from guard.core.check.report import CheckReport
from guard.core.classify import Classification
from guard.core.config.settings import Settings
from guard.core.events.snapshot import Occasion
from guard.core.team.state import Scope
from guard.errors import RepositoryProblem
from guard.hooks.ingest import fold
from guard.iteration.current import (
    CheckTerms,
    Iteration,
    agent_has_ended,
    current,
    last_check,
    watch_of,
)
from guard.iteration.kept_output import (
    KeptOutput,
    helpers_left_by,
    left_alone_since,
    output_left_by,
)
from guard.iteration.process_watch import MARK, Watch
from guard.snapshots.keep import keep
from guard.team import TeamStanding, host_ended, standing

if TYPE_CHECKING:
    from guard.core.rescue.report import RescueReport


def check(guard: Invocation, terms: CheckTerms) -> CheckReport:
    """The completion check of the newest iteration, by whomever its agent was started."""
    # A snapshot may be the first thing that goes there.
    guard.prepare_workspace()
    iteration = current(guard, terms)
    watch, output = watch_of(guard, iteration), output_left_by(guard, iteration)
    return judged(guard, iteration, terms, watch=watch, output=output, alone=True)


def judged(
    guard: Invocation,
    iteration: Iteration,
    terms: CheckTerms,
    *,
    watch: Watch,
    output: Classification | None = None,
    ended_by_guard: Cutoff | None = None,
    alone: bool = False,
    feeds_breaker: Feeds = "never",
) -> CheckReport:
    """Check an iteration, record the verdict, and report it; `alone` says that nobody watched over it for a while."""
    kept, last = KeptOutput.of(guard, iteration), last_check(guard, iteration)
    settings = guard.settings(iteration.frozen, terms.flags)
    subject = replace(
        _subject(guard, iteration, terms, settings, output),
        ended_by_guard=ended_by_guard,
        watched_until=left_alone_since(guard, iteration) if alone else None,
        aside=frozenset(last.aside) if last else frozenset(),
    )
    beat = kept.touch if feeds_breaker != "never" and not alone else _nothing
    with _prepared(guard, terms, settings, watch, subject, last, beat) as check:
        checked = check.make()
    record(guard, check, checked, feeds_breaker)
    return report(guard, check.subject, checked)


def stopped(
    guard: Invocation,
    iteration: Iteration,
    terms: CheckTerms,
    *,
    watch: Watch,
    output: Classification,
    by: str,
) -> CheckReport:
    """Record an iteration that a person ended by a signal: what it left stays its own, and can be gone on with."""
    settings = guard.settings(iteration.frozen, terms.flags)
    subject = _subject(guard, iteration, terms, settings, output)
    last, beat = last_check(guard, iteration), KeptOutput.of(guard, iteration).touch
    with _prepared(guard, terms, settings, watch, subject, last, beat) as check:
        checked = check.end_as(Verdict("interrupted", "stopped", f"stopped by {by}"))
    record(guard, check, checked, "always")
    return report(guard, check.subject, checked)


def rescued(guard: Invocation, terms: CheckTerms, *, dry: bool, on_branch: bool) -> "RescueReport":
    """Commit what the newest iteration left, because somebody asked for it."""
    from guard.core.rescue.report import RescueReport

    # A snapshot may be the first thing that goes there.
    guard.prepare_workspace()
    iteration = _kept_or_current(guard, terms)
    settings = guard.settings(iteration.frozen, terms.flags)
    last = last_check(guard, iteration)
    subject = replace(
        _subject(guard, iteration, terms, settings, output_left_by(guard, iteration)),
        watched_until=left_alone_since(guard, iteration),
        aside=frozenset(last.aside) if last else frozenset(),
    )
    watch = watch_of(guard, iteration)
    with _prepared(guard, terms, settings, watch, subject, last, _nothing) as check:
        warnings, rescue = check.rescue(dry=dry, on_branch=on_branch)
    for warning in warnings:
        guard.output.warn(warning)
    if not dry:
        record_rescue(guard, subject, rescue)
    return RescueReport(run=subject.run, iteration=subject.iteration, dry_run=dry, **dict(rescue))


def _kept_or_current(guard: Invocation, terms: CheckTerms) -> Iteration:
    """The newest iteration; where there is none to tell whose the work is, it is kept all the same."""
    try:
        return current(guard, terms)
    except RepositoryProblem as error:
        kept = keep(guard, Occasion("by_hand", guard.clock.now()))
        hint = f"{error.hint}; the work tree is safe: guard restore {kept.id}"
        raise RepositoryProblem(error.message, hint) from None


def _subject(
    guard: Invocation,
    iteration: Iteration,
    terms: CheckTerms,
    settings: Settings,
    output: Classification | None,
) -> CheckSubject:
    opened, baseline = iteration.opened, iteration.baseline
    agent = terms.agent or settings.completion_check.agent
    session = terms.session or (opened.session if opened else None)
    return CheckSubject(
        repository=guard.repository,
        workspace=guard.workspace.path,
        environ={name: text for name, text in guard.environ.items() if name != MARK},
        baseline=baseline,
        run=iteration.run,
        iteration=iteration.number,
        agent=agent or (opened.agent if opened else None),
        session=session,
        spec=terms.spec,
        output=output,
        agent_ended=partial(agent_has_ended, iteration),
        others=partial(names_of_others, guard.store, guard.repository, baseline.at),
        team=_LookAtTeam(guard, iteration, session),
    )


@dataclass
class _LookAtTeam:
    """The team of an iteration, look by look.

    The guard that followed the agent may be gone. Then nobody has recorded that helpers ended with the agent, and whoever
    looks next does.
    """

    guard: Invocation
    iteration: Iteration
    session: str | None
    _settled: bool = False

    def __call__(self) -> TeamStanding:
        found = self._standing()
        if not found.living or self._settled or not agent_has_ended(self.iteration):
            return found
        self._settled = True
        scope, moment = self._scope, self.guard.clock.moment()
        members = helpers_left_by(self.guard, self.iteration)
        host_ended(self.guard.writable_store, scope, moment, members)
        return self._standing()

    @property
    def _scope(self) -> Scope:
        return Scope(
            self.guard.worktree_key, self.session, self.iteration.run, self.iteration.number
        )

    def _standing(self) -> TeamStanding:
        fold(self.guard)
        return standing(self.guard.store, self._scope, self.guard.clock.moment())


@contextmanager
def _prepared(
    guard: Invocation,
    terms: CheckTerms,
    settings: Settings,
    watch: Watch,
    subject: CheckSubject,
    last: LastCheck | None,
    beat: Callable[[], None],
) -> Iterator[Check]:
    live = guard.output.live()

    def say(line: str) -> None:
        beat()
        live.say(line)

    try:
        yield Check(
            subject,
            settings,
            terms.policy(settings),
            watch,
            guard.clock,
            guard.output.warn,
            say,
            checked_before=last is not None,
            waited_before=last.waited_seconds if last else 0.0,
        )
    finally:
        beat()
        live.clear()


def _nothing() -> None:
    """Nobody is told."""
