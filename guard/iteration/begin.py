"""Begin an iteration: take its baseline, and keep what is in the work tree."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.text import escape, fit_line, shorten, utf8_text
from guard.core.check.last_check import LAST_CHECK
from guard.core.iteration.baseline import EMPTY, Baseline
from guard.core.iteration.events import (
    BaselineRecorded,
    IterationEnded,
    IterationStarted,
    RunStarted,
)
from guard.core.iteration.facts import DirtyFile, Process
from guard.core.iteration.report import BaselineReport
from guard.core.iteration.run import RUN, Run
from guard.core.snapshots.snapshot import Occasion, Snapshot
from guard.errors import GuardError, RepositoryProblem
from guard.git.reader import RepositoryReader
from guard.iteration import baseline as baselines
from guard.iteration.attribution import Away, left_by_iteration, shared_with_user
from guard.iteration.current import (
    CheckTerms,
    Iteration,
    current_iteration,
    event_fields,
    last_check,
    refuse_beside_another,
)
from guard.iteration.kept_output import unwatched_since
from guard.snapshots.last_resort import NothingSaved, add_snapshot, save, saves_before_abort
from guard.snapshots.project import Site
from guard.snapshots.take import keep

_LONGEST_WORD = 200
_MOST_WORDS = 64


@saves_before_abort
def begin(
    guard: Invocation,
    supervisor: Process | None = None,
    command: tuple[str, ...] = (),
    new_run: bool = False,
    refuse: Callable[[Invocation, Run | None], None] = refuse_beside_another,
    over_since: datetime | None = None,
) -> Iteration:
    """Take a baseline and open an iteration with it, of the run that goes on or of a new one.

    What an earlier iteration left, and has not been touched since, stays the agent's, whatever run it was. `refuse` raises if
    nothing may begin beside what is open; `over_since` is when the session of an open iteration ended that no guard watched.
    """
    key, now = guard.worktree_key, guard.clock.now()
    store, words = guard.writable_store, _command_words(command)
    run = store.view(RUN, key)
    refuse(guard, run)
    recorded = _keep_all(guard, _prepare_baseline(guard, run, now, over_since))
    trusted, trusted_before = _find_trusted(guard, recorded.head), _find_trusted_before(guard, run)
    with store.change() as change:
        run = change.view(RUN, key)
        refuse(guard, run)  # Another may have begun while the baseline was taken.
        opened: tuple[RunStarted, ...] = ()
        if run is not None and not new_run and run.ended_at is None and run.command == words:
            name, number = run.run, run.iterations + 1
        else:
            name, number = new_id(), 1
            opened = (RunStarted(at=now, id=new_id(), run=name, worktree=key, command=words),)
        started = IterationStarted(
            at=now,
            id=new_id(),
            run=name,
            iteration=number,
            worktree=key,
            supervisor=supervisor,
            frozen=dict(guard.config.from_project),
            # An agent that commits an edit of the settings does not end the checks of its own run.
            trusted=trusted or (None if opened else trusted_before),
        )
        pinned = recorded.model_copy(update={"run": name, "iteration": number})
        change.append(*opened, started, pinned)
    store.anchor()  # The agent may delete the log; what it has lost by then is known.
    return current_iteration(guard, CheckTerms())


def _find_trusted_before(guard: Invocation, run: Run | None) -> str | None:
    last = (run.open_iteration or run.last_iteration) if run is not None else None
    return _find_trusted(guard, last.trusted if last is not None else None)


def _find_trusted(guard: Invocation, commit: str | None) -> str | None:
    """Return the commit if it has the settings that the user trusts."""
    if guard.trust is None or commit is None:
        return None
    with suppress(GuardError):
        return guard.trust.find_commit((commit,))
    return None


def _prepare_baseline(
    guard: Invocation, run: Run | None, now: datetime, over_since: datetime | None
) -> BaselineRecorded:
    key = guard.worktree_key
    before = baselines.load(guard.writable_store, key)
    try:
        _finish_rescues(guard)
        return baselines.prepare(
            _git(guard),
            key,
            now,
            run=run.run if run else new_id(),
            iteration=1,
            carried=_files_left_before(guard, run, before, over_since),
            like=before.dirty if before else (),
        )
    except RepositoryProblem as error:
        raise add_snapshot(guard, error) from None


def _command_words(command: tuple[str, ...]) -> tuple[str, ...]:
    # A prompt may be one of the words, and a pattern may have become thousands of them: the log has them shortened.
    words = [shorten(escape(word), _LONGEST_WORD) for word in command]
    rest = "\0".join(command[_MOST_WORDS:])
    return (*words[:_MOST_WORDS], *([shorten(escape(rest), _LONGEST_WORD)] if rest else []))


def _git(guard: Invocation) -> RepositoryReader:
    limit = guard.config.settings.completion_check.git_timeout_seconds
    return RepositoryReader(guard.repository, guard.environ, limit)


def _files_left_before(
    guard: Invocation, run: Run | None, before: Baseline | None, over_since: datetime | None
) -> tuple[DirtyFile, ...]:
    """Return the files that the last check saw the agent leave; without a check at its end, all that the iteration changed."""
    opened = run.open_iteration if run is not None else None
    ended = opened is not None and (opened.supervisor is not None or over_since is not None)
    if not ended or before is None:
        last = guard.store.view(LAST_CHECK, guard.worktree_key)
        return last.left if last else ()
    iteration = current_iteration(guard, CheckTerms())
    alone, last = unwatched_since(guard, iteration), last_check(guard, iteration)
    away: tuple[Away, ...] = ()
    if over_since is not None:
        # The end of a session is told when all is written, so this moment is exact.
        away = (Away(over_since.timestamp()),)
    elif alone is not None:
        away = (Away.after_guard(alone),)
    git, aside = _git(guard), frozenset(last.aside if last else ())
    found = left_by_iteration(git, before, aside=aside, away=away)
    shared = shared_with_user(git, before, found.files)
    return tuple(file for file in found.files if file.path not in shared)


def _finish_rescues(guard: Invocation) -> None:
    # What a killed rescue left half done would be taken for the user's.
    from guard.rescue import mend_killed_rescue

    git = _git(guard)
    mend_killed_rescue(Site(git.repository, guard.workspace.path, git.environ, git.time_limit))


def _keep_all(guard: Invocation, recorded: BaselineRecorded) -> BaselineRecorded:
    # A snapshot before an agent may destroy anything: also what is uncommitted, ignored or stashed is the user's.
    try:
        taken = keep(guard, Occasion("baseline", recorded.at))
    except GuardError as error:
        guard.output.warn(f"guard could not keep a snapshot of the work tree: {error.message}")
        return _keep_elsewhere(guard, recorded)
    return _note_kept(recorded, taken)


def _note_kept(recorded: BaselineRecorded, taken: Snapshot) -> BaselineRecorded:
    warnings = recorded.warnings
    if not taken.whole:
        missing = f"the baseline's snapshot does not have everything: {taken.skipped[0]}"
        warnings = (*warnings, fit_line(missing))
    return recorded.model_copy(update={"kept": taken.recover, "warnings": warnings})


def _keep_elsewhere(guard: Invocation, recorded: BaselineRecorded) -> BaselineRecorded:
    try:
        taken = save(guard, Occasion("baseline", recorded.at)).snapshot
    except NothingSaved:
        return recorded
    guard.output.warn(f"{taken.words}: {taken.recover}")
    return _note_kept(recorded, taken)


def record_not_started(guard: Invocation, iteration: Iteration, why: str) -> None:
    """End an iteration whose agent could not be started; it counts for nothing."""
    fields = event_fields(guard, iteration, guard.clock.now())
    reason = shorten(f"not_started: {utf8_text(why)}", 400)
    with guard.writable_store.change() as change:
        change.append(IterationEnded(**fields, status="error", reason=reason, elapsed_seconds=0))


def baseline_report(
    begun: Iteration, worktree: str, warnings: tuple[str, ...] = ()
) -> BaselineReport:
    """Return the report of a begun iteration; `warnings` are those of the configuration."""
    found = begun.baseline
    return BaselineReport(
        baseline=found.baseline,
        run=begun.run,
        iteration=begun.number,
        worktree=worktree,
        head=found.head or EMPTY,
        branch=found.branch,
        refs=len(found.refs) + found.refs_omitted,
        stashes=len(found.stash),
        shallow=found.shallow is not None,
        dirty=len(found.dirty),
        left_by_iterations=sum(file.left_by == "iteration" for file in found.dirty),
        pin=found.pin,
        warnings=(*warnings, *found.warnings),
    )
