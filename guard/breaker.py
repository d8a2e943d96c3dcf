"""Load the breaker of a work tree, decide, and record."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pydantic import ValidationError

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core import breaker as core
from guard.core.base.fields import first_problem
from guard.core.base.text import shorten, utf8_text
from guard.core.breaker import (
    BREAKER,
    Breaker,
    BreakerFold,
    BreakerPermission,
    BreakerPolicy,
    Moment,
    Stamp,
    permission,
)
from guard.core.breaker.events import BreakerEvent
from guard.core.breaker.report import BreakerReport
from guard.core.iteration.events import Process, Status
from guard.errors import RepositoryProblem, WrongUsage
from guard.git.locate import Repository
from guard.git.reader import RepositoryReader
from guard.git.refs import has_new_commits, read_head
from guard.store import Change, Store
from guard.system import process_identity as alive
from guard.system.clock import Clock

_MOST_FINGERPRINT = 400


@dataclass(frozen=True)
class BreakerKey:
    """The work tree whose breaker it is, and what decides about it."""

    worktree: str
    repository: Repository
    policy: BreakerPolicy
    clock: Clock
    environ: Mapping[str, str]

    @classmethod
    def of(cls, guard: Invocation) -> "BreakerKey":
        policy = guard.users_config.settings.breaker
        return cls(guard.worktree_key, guard.repository, policy, guard.clock, guard.environ)

    def moment(self) -> Moment:
        return self.clock.moment()

    def head(self) -> str | None:
        # The breaker can do without the commit that is checked out, where git cannot tell it.
        try:
            return read_head(RepositoryReader(self.repository, self.environ))
        except RepositoryProblem:
            return None

    def head_after(self, known: str | None) -> str | None:
        """The commit that is checked out if it brings commits beside the known one, else the known one."""
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


def show(guard: Invocation) -> BreakerReport:
    """Report the breaker and whether an iteration may begin, without claiming a trial."""
    place = BreakerKey.of(guard)
    state = load(guard.store, place.worktree)
    return report(state, permission_now(place, state))


def claim_trial(guard: Invocation, pid: int) -> BreakerReport:
    """Report whether an iteration may begin; an open breaker's trial is claimed for this process."""
    place, store = BreakerKey.of(guard), guard.store
    answer = allow(store, place, holder=find_process(pid))
    return report(load(store, place.worktree), answer)


def record_outcome(guard: Invocation, outcome: Outcome) -> None:
    """Record how an iteration ended at the commit that is checked out now."""
    place = BreakerKey.of(guard)
    ended = replace(outcome, head=place.head())
    with guard.writable_store.change() as change:
        record(change, place, ended)


def load(store: Store, worktree: str) -> Breaker:
    return store.view(BREAKER, worktree) or BreakerFold(worktree).document()


def permission_now(place: BreakerKey, state: Breaker, heir: bool = False) -> BreakerPermission:
    """Whether an iteration may begin now; claims nothing. An heir makes the trial of a process that started it."""
    seen = place.head_after(state.head) if state.state == "open" else None
    holder = state.trial.holder if state.trial else None
    living = holder is not None and alive.is_alive(holder.pid, holder.start)
    handed = heir and living and holder is not None and holder.pid in alive.ancestors(os.getpid())
    return permission(
        state,
        place.policy,
        place.moment(),
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
    found = permission_now(place, before, heir)
    if found.reason == "closed":
        return found
    with store.change() as change:
        state = _current(change, place)
        if state.seq != before.seq:
            found = permission_now(place, state, heir)
        moment, stamp = place.moment(), Stamp(new_id())
        if found.trial:
            why = found.reason
            change.append(core.claim(state, place.policy, why, holder, moment, stamp))
        elif core.is_clock_set_back(state, moment):
            change.append(core.restart(state, moment=moment, stamp=stamp))
        return found


def find_process(pid: int) -> Process | None:
    """The process that has this pid now; None if its start time cannot be read."""
    start = alive.start_time(pid)
    return None if start is None else Process(pid=pid, start=start)


def decide_outcome(change: Change, place: BreakerKey, outcome: Outcome) -> tuple[BreakerEvent, ...]:
    status, reason = outcome.status, outcome.reason
    with _usable():
        return core.after_iteration(
            _current(change, place),
            place.policy,
            status=status,
            reason=utf8_text(reason),
            fingerprint=_in_one_line(outcome.fingerprint),
            denied=outcome.denied or (status == "blocked" and reason == "denied"),
            rescued=outcome.rescued or (status == "complete" and reason == "rescued"),
            moment=place.moment(),
            stamp=Stamp(new_id(), outcome.run, outcome.iteration),
            head=outcome.head,
        )


def record(change: Change, place: BreakerKey, outcome: Outcome) -> Breaker:
    """Record how an iteration ended, within a change that is under way; the breaker after it."""
    change.append(*decide_outcome(change, place, outcome))
    return _current(change, place)


def trip(guard: Invocation, reason: str) -> Breaker:
    place = BreakerKey.of(guard)
    seen, stamp = place.head(), Stamp(new_id())
    with guard.writable_store.change() as change, _usable():
        state, moment = _current(change, place), place.moment()
        change.append(
            core.trip(state, place.policy, reason=reason, moment=moment, stamp=stamp, head=seen)
        )
        return _current(change, place)


def reset(guard: Invocation, reason: str) -> Breaker:
    place = BreakerKey.of(guard)
    with guard.writable_store.change() as change, _usable():
        state, stamp = _current(change, place), Stamp(new_id())
        change.append(core.reset(state, reason=reason, moment=place.moment(), stamp=stamp))
        return _current(change, place)


def report(state: Breaker, found: BreakerPermission) -> BreakerReport:
    past = state.retry_at if state.state == "open" else None
    return BreakerReport(
        worktree=state.worktree,
        state=state.state,
        allowed=found.allowed,
        permission=found.reason,
        **state.counts._asdict(),
        reason=state.reason,
        opened_at=state.opened_at,
        retry_at=found.retry_at or past,
        cooldown_seconds=state.cooldown_seconds,
        openings=state.openings,
        trial=state.trial,
        history=state.history,
    )


def _in_one_line(fingerprint: str) -> str:
    # Shortened with a digest, so that it differs from every other error, however long it is.
    return shorten(utf8_text(" ".join(fingerprint.split())), _MOST_FINGERPRINT)


def _current(change: Change, place: BreakerKey) -> Breaker:
    return change.fold(BREAKER, place.worktree).document()


@contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise WrongUsage(
            f"this cannot be recorded: {first_problem(error)}",
            "a reason is one line of at most 512 characters",
        ) from None
