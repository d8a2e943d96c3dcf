"""Load the breaker of a work tree, decide, and record."""

import os
from collections.abc import Mapping
from dataclasses import replace

from guard.context.ids import new_id
from guard.context.invalid_fields import refuse_invalid_fields
from guard.context.invocation import Invocation
from guard.context.lease import find_process, is_here, is_running, lease_name
from guard.core.base.first_use import dataclass
from guard.core.base.moment import Stamp
from guard.core.base.text import shorten, utf8_text
from guard.core.breaker import allow as core_allow
from guard.core.breaker import record as core_record
from guard.core.breaker.allow import BreakerPermission
from guard.core.breaker.events import BreakerEvent, BreakerRecorded
from guard.core.breaker.report import BreakerReport
from guard.core.breaker.settings import BreakerSettings
from guard.core.breaker.state import BREAKER, Breaker, BreakerCase, BreakerFold
from guard.core.iteration.facts import Process, Status
from guard.errors import RepositoryProblem
from guard.git.locate import Repository
from guard.git.reader import RepositoryReader
from guard.git.refs import has_new_commits, read_head
from guard.store import Change, Store
from guard.system import process_identity as alive
from guard.system.clock import Clock

_MOST_FINGERPRINT = 400
_REASON_HINT = "a reason is one line of at most 512 characters"


@dataclass(frozen=True)
class BreakerKey:
    """The work tree whose breaker it is, and what decides about it."""

    worktree: str
    repository: Repository
    settings: BreakerSettings
    clock: Clock
    environ: Mapping[str, str]

    @classmethod
    def of(cls, guard: Invocation, *, of_plan: bool = False) -> "BreakerKey":
        """Return the key of the work tree's breaker, or of the one that all agents of the plan share."""
        settings = guard.users_config.settings.breaker
        key = guard.workspace.key if of_plan else guard.worktree_key
        return cls(key, guard.repository, settings, guard.clock, guard.environ)

    def case(
        self, change: Change, run: str | None = None, number: int | None = None
    ) -> BreakerCase:
        """Return what a decision about the breaker needs, within a change that is under way."""
        state, stamp = _current(change, self), Stamp(new_id(), run, number)
        return BreakerCase(state, self.settings, self.clock.moment(), stamp)

    def head(self) -> str | None:
        # The breaker can do without the commit that is checked out, where git cannot tell it.
        try:
            return read_head(RepositoryReader(self.repository, self.environ))
        except RepositoryProblem:
            return None

    def head_after(self, known: str | None) -> str | None:
        """Return the commit that is checked out if it brings commits beside the known one, else the known one."""
        now = self.head()
        if now is None or known is None or now == known:
            return known
        try:
            is_new = has_new_commits(RepositoryReader(self.repository, self.environ), known, now)
        except RepositoryProblem:
            return known
        return now if is_new else known


@dataclass(frozen=True)
class Outcome:
    """How an iteration ended."""

    status: Status
    reason: str = ""
    fingerprint: str = ""
    """What names the error, if it was one."""
    denied: bool = False
    rescued: bool = False
    head: str | None = None
    """The commit that it left the work tree at."""
    run: str | None = None
    iteration: int | None = None


def show(guard: Invocation, *, of_plan: bool = False) -> BreakerReport:
    """Report the breaker and whether an iteration may begin, without claiming a trial."""
    place = BreakerKey.of(guard, of_plan=of_plan)
    state = load(guard.store, place.worktree)
    return report(place, state, permission_now(guard.store, place, state))


def claim_trial(guard: Invocation, pid: int) -> BreakerReport:
    """Report whether an iteration may begin; an open breaker's trial is claimed for this process."""
    place, store = BreakerKey.of(guard), guard.store
    answer = allow(store, place, holder=find_process(pid))
    return report(place, load(store, place.worktree), answer)


def record_outcome(guard: Invocation, outcome: Outcome) -> None:
    """Record how an iteration ended at the commit that is checked out now."""
    place = BreakerKey.of(guard)
    ended = replace(outcome, head=place.head())
    with guard.writable_store.change() as change:
        record(change, place, ended)


def load(store: Store, worktree: str) -> Breaker:
    return store.view(BREAKER, worktree) or BreakerFold(worktree).document()


def permission_now(
    store: Store, place: BreakerKey, state: Breaker, heir: bool = False
) -> BreakerPermission:
    """Tell whether an iteration may begin now; claims nothing. An heir makes the trial of a process that started it."""
    seen = place.head_after(state.head) if state.state == "open" else None
    holder = state.trial.holder if state.trial else None
    living = holder is not None and is_running(holder, store)
    handed = heir and living and holder is not None and _is_above(holder)
    return core_allow.permission(
        state,
        place.settings,
        place.clock.moment(),
        head=seen,
        holder_alive=living,
        handed_over=handed,
    )


def allow(
    store: Store,
    place: BreakerKey,
    *,
    holder: Process | None,
    heir: bool = False,
) -> BreakerPermission:
    """Decide whether an iteration may begin, and claim a trial for the holder, under the lock, for one process only.

    `heir` is for the process that makes the trial: it takes over the claim of a process that started it.
    """
    before = load(store, place.worktree)
    found = permission_now(store, place, before, heir)
    if found.reason == "closed":
        return found
    with store.change() as change:
        case = place.case(change)
        if case.state.seq != before.seq:
            found = permission_now(store, place, case.state, heir)
        if found.trial:
            change.append(core_allow.claim(case, found.reason, holder))
            _hold_trial(store, place, holder)
        elif core_allow.is_clock_set_back(case.state, case.moment):
            change.append(core_allow.restart(case))
        return found


def _is_above(holder: Process) -> bool:
    return is_here(holder) and holder.pid in alive.ancestors(os.getpid())


def _hold_trial(store: Store, place: BreakerKey, holder: Process | None) -> None:
    # Guard renews a lease of its own while it runs. A script that claims a trial renews nothing: to other machines it is alive
    # for as long as the trial may last.
    if holder is not None and holder.pid != os.getpid():
        store.hold_lease(lease_name(holder), place.settings.trial_lease_seconds)


def decide_outcome(change: Change, place: BreakerKey, outcome: Outcome) -> tuple[BreakerEvent, ...]:
    status, reason = outcome.status, outcome.reason
    case = place.case(change, outcome.run, outcome.iteration)
    with refuse_invalid_fields(_REASON_HINT):
        recorded = BreakerRecorded(
            **case.event_fields(),
            status=status,
            reason=utf8_text(reason),
            fingerprint=_in_one_line(outcome.fingerprint),
            denied=outcome.denied or (status == "blocked" and reason == "denied"),
            rescued=outcome.rescued or (status == "complete" and reason == "rescued"),
            head=outcome.head,
        )
        return core_record.after_iteration(case, recorded)


def record(change: Change, place: BreakerKey, outcome: Outcome) -> Breaker:
    """Record how an iteration ended, within a change that is under way; the breaker after it."""
    change.append(*decide_outcome(change, place, outcome))
    return _current(change, place)


def trip(guard: Invocation, reason: str) -> Breaker:
    place = BreakerKey.of(guard)
    seen = place.head()
    with guard.writable_store.change() as change, refuse_invalid_fields(_REASON_HINT):
        change.append(core_record.trip(place.case(change), reason, seen))
        return _current(change, place)


def reset(guard: Invocation, reason: str, *, of_plan: bool = False) -> Breaker:
    place = BreakerKey.of(guard, of_plan=of_plan)
    with guard.writable_store.change() as change, refuse_invalid_fields(_REASON_HINT):
        change.append(core_record.reset(place.case(change), reason))
        return _current(change, place)


def report(place: BreakerKey, state: Breaker, found: BreakerPermission) -> BreakerReport:
    past = state.retry_at if state.state == "open" else None
    shared = Breaker.model_fields.keys() & BreakerReport.model_fields.keys() - {"schema_"}
    fields = {name: getattr(state, name) for name in shared} | {"retry_at": found.retry_at or past}
    return BreakerReport(
        allowed=found.allowed,
        permission=found.reason,
        refuted_limit=place.settings.refuted_limit,
        **fields,
    )


def _in_one_line(fingerprint: str) -> str:
    # Shortened with a digest, so that it differs from every other error, however long it is.
    return shorten(utf8_text(" ".join(fingerprint.split())), _MOST_FINGERPRINT)


def _current(change: Change, place: BreakerKey) -> Breaker:
    return change.fold(BREAKER, place.worktree).document()
