"""Record a check that was made: its events, the end of its iteration and the breaker, in one change."""

from contextlib import suppress
from datetime import datetime
from typing import Literal

from guard import breaker
from guard import team as teams
from guard.agents import registry
from guard.check.check import Check
from guard.check.subject import CheckSubject
from guard.core.agents.agent import BY_VERDICT
from guard.core.agents.registry import GLOBAL_REGISTRY
from guard.core.check.events import CheckMade, CheckWarned
from guard.core.check.evidence import Policy
from guard.core.check.holders import is_holding
from guard.core.check.report import CheckResult
from guard.core.iteration.baseline import EMPTY
from guard.core.iteration.events import IterationEnded
from guard.core.iteration.facts import GOES_ON
from guard.core.iteration.run import RUN, OpenIteration
from guard.core.prove.summary import ProofSummary
from guard.core.rescue.events import RescueMade
from guard.core.snapshots.snapshot import Rescue
from guard.core.team.state import TEAM
from guard.errors import GuardError
from guard.iteration.current import event_fields, is_other_guard_alive
from guard.store import Change

Feeds = Literal["never", "with_work", "always"]
"""Whether the breaker is told of the verdict. Of an iteration that guard did not see to its end it is told only if there was
work: what ended with a guard that was killed is no stall."""


def record(check: Check, result: CheckResult, feeds: Feeds) -> None:
    """Record the verdict, and in the same change all that follows from it."""
    subject, is_supervised = check.subject, feeds != "never"
    guard, iteration = subject.guard, subject.iteration
    key, now = guard.worktree_key, guard.clock.now()
    with guard.writable_store.change() as change:
        change.expect(TEAM, check.team.scope.key)
        change.expect(GLOBAL_REGISTRY)
        run = change.view(RUN, key)
        teams.expire(change, check.team.scope, guard.clock.moment())
        if result.rescue is not None:
            change.append(_rescue_event(subject, now, result.rescue))
        change.append(_check_event(subject, now, result, check.policy, is_supervised))
        change.append(*_warning_events(subject, now, result))
        opened = run.find_open(iteration.run, iteration.number) if run is not None else None
        if not _ends_iteration(check, result, opened, is_supervised):
            return
        if opened is not None:
            _end_iteration(change, subject, now, result, opened)
        if feeds == "always" or (feeds == "with_work" and result.verdict.status == "complete"):
            _feed_breaker(change, subject, result)


def record_rescue(subject: CheckSubject, rescue: Rescue) -> None:
    guard = subject.guard
    with guard.writable_store.change() as change:
        change.append(_rescue_event(subject, guard.clock.now(), rescue))


def _ends_iteration(
    check: Check, result: CheckResult, opened: OpenIteration | None, is_supervised: bool
) -> bool:
    policy, verdict = check.policy, result.verdict
    # What has been waited for as long as may be, and is asked about once more, goes on without the iteration.
    has_waited_out = check.last is not None and (
        not policy.wait or check.waited_before >= policy.max_wait_seconds
    )
    if (verdict.status, verdict.reason) in GOES_ON and not has_waited_out:
        return False
    if is_supervised:
        return True
    # A check by hand does not end what another guard watches over, and one look alone ends nothing but complete work.
    is_watched = opened is not None and is_other_guard_alive(check.subject.guard, opened.supervisor)
    return not is_watched and (policy.wait or verdict.status == "complete")


def _end_iteration(
    change: Change,
    subject: CheckSubject,
    now: datetime,
    result: CheckResult,
    opened: OpenIteration,
) -> None:
    iteration, verdict = subject.iteration, result.verdict
    change.append(
        IterationEnded(
            **event_fields(subject.guard, iteration, now),
            status=verdict.status,
            reason=verdict.reason,
            elapsed_seconds=max(0.0, (now - opened.started_at).total_seconds()),
        )
    )
    message = f"iteration {iteration.number}: {verdict.status}, {verdict.reason}"
    ends_as = BY_VERDICT.get(verdict.status)
    if ends_as is not None:
        with suppress(GuardError):  # A registry that cannot be read holds up no verdict.
            registry.settle_iteration(
                change, now, iteration.run, iteration.number, ends_as, message
            )


def _feed_breaker(change: Change, subject: CheckSubject, result: CheckResult) -> None:
    output, verdict = result.evidence.output, result.verdict
    # To the breaker a fault of guard's own is an error without a name: it counts for nothing.
    by_guard = result.is_held_up_by_guard
    usual = "" if by_guard else verdict.reason
    outcome = breaker.Outcome(
        status="error" if by_guard else verdict.status,
        reason="rescue_refused" if by_guard else verdict.reason,
        fingerprint=(output.fingerprint if output else None) or usual,
        denied=output is not None and output.outcome == "denied",
        rescued=bool(result.rescue and result.rescue.commits and not result.rescue.branch),
        head=result.evidence.work.head or EMPTY,
        run=subject.iteration.run,
        iteration=subject.iteration.number,
    )
    breaker.record(change, breaker.BreakerKey.of(subject.guard), outcome)


def _check_event(
    subject: CheckSubject, now: datetime, result: CheckResult, policy: Policy, is_supervised: bool
) -> CheckMade:
    seen, verdict = result.evidence, result.verdict
    costs = [probe.cost_usd for probe in seen.probes if probe.cost_usd is not None]
    return CheckMade(
        **event_fields(subject.guard, subject.iteration, now),
        status=verdict.status,
        reason=verdict.reason,
        detail=verdict.detail[:512],
        complete=verdict.status == "complete",
        new_commits=seen.own_commits,
        uncommitted=len(seen.uncommitted.names),
        rescued=result.was_rescued,
        rescued_commits=result.rescued_commits,
        probes=len(seen.probes),
        probe_cost_usd=sum(costs) if costs else None,
        alive=sum(is_holding(living, policy) for living in seen.living),
        retry_at=verdict.retry_at,
        elapsed_seconds=result.elapsed_seconds,
        supervised=is_supervised,
        left=result.left,
        aside=result.aside,
        proof=_summarise(result.proof),
        usage=subject.usage,
        policy=policy.model_dump(mode="json"),
        looks=tuple(look.model_dump(mode="json") for look in result.looks),
    )


def _summarise(proof: ProofSummary | None) -> ProofSummary | None:
    return None if proof is None else ProofSummary.model_validate(proof, from_attributes=True)


def _warning_events(
    subject: CheckSubject, now: datetime, result: CheckResult
) -> tuple[CheckWarned, ...]:
    held = result.rescue.held_back if result.rescue is not None else ()
    if not (result.secrets or result.not_scanned or held):
        return ()
    fields = event_fields(subject.guard, subject.iteration, now)
    return (
        CheckWarned(
            **fields, secrets=result.secrets, not_scanned=result.not_scanned, held_back=held
        ),
    )


def _rescue_event(subject: CheckSubject, now: datetime, rescue: Rescue) -> RescueMade:
    return RescueMade(
        **event_fields(subject.guard, subject.iteration, now),
        commits=rescue.commits,
        snapshot=rescue.snapshot.id if rescue.snapshot else None,
        held_back=rescue.held_back,
        branch=rescue.branch,
        reason=rescue.reason,
        detail=rescue.detail,
    )
