"""What follows from a check that was made: the events, in one change, the breaker, and the report."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

from guard import breaker
from guard import team as teams
from guard.agents import registry as agents
from guard.check.check import Check, Checked
from guard.check.subject import CheckSubject
from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.agents.agent import BY_VERDICT
from guard.core.base.text import shortened, valid
from guard.core.check.evidence import Policy
from guard.core.check.holding import holds
from guard.core.check.report import BreakerLine, CheckReport, Fact, facts
from guard.core.events.check import CheckMade
from guard.core.events.rescue import RescueMade
from guard.core.events.run import GOES_ON, IterationEnded
from guard.core.events.snapshot import Rescue
from guard.core.iteration.run import RUN, OpenIteration
from guard.core.team.state import Scope
from guard.errors import GuardError
from guard.hooks.git.missed_commits import noticed
from guard.iteration.baseline import EMPTY
from guard.iteration.current import Iteration, lives_elsewhere
from guard.store import Change

Feeds = Literal["never", "with_work", "always"]
"""Whether the breaker hears of the verdict. Of an iteration that guard did not see to its end it hears only if there was work:
what ended with a guard that was killed is no stall."""


def place_of(guard: Invocation) -> breaker.BreakerKey:
    """The work tree whose breaker it is."""
    policy = guard.users_config.settings.breaker
    return breaker.BreakerKey(
        guard.worktree_key, guard.repository, policy, guard.clock, guard.environ
    )


def not_started(guard: Invocation, iteration: Iteration, why: str) -> None:
    """Record an iteration whose agent could not be started: nothing happened, and nothing counts."""
    with guard.writable_store.change() as change:
        change.append(
            IterationEnded(
                at=guard.clock.now(),
                id=new_id(),
                run=iteration.run,
                iteration=iteration.number,
                worktree=guard.worktree_key,
                status="error",
                reason=shortened(f"not_started: {valid(why)}", 400),
                elapsed_seconds=0,
            )
        )


def record(guard: Invocation, check: Check, checked: Checked, feeds: Feeds) -> None:
    """The verdict, and in the same change all that follows from it."""
    key, now, verdict = guard.worktree_key, guard.clock.now(), checked.verdict
    subject, policy = check.subject, check.policy
    common: dict[str, Any] = {
        "at": now,
        "run": subject.run,
        "iteration": subject.iteration,
        "worktree": key,
    }
    with guard.writable_store.change() as change:
        run = change.view(RUN, key)
        scope = Scope(key, subject.session, subject.run, subject.iteration)
        teams.expire(change, scope, guard.clock.moment())
        if checked.rescue is not None:
            change.append(_rescue_event(checked.rescue, {**common, "id": new_id()}))
        change.append(_check_event(checked, policy, feeds != "never", {**common, "id": new_id()}))
        opened = run.opened(subject.run, subject.iteration) if run is not None else None
        waited_out = check.checked_before and (
            not policy.wait or check.waited_before >= policy.max_wait_seconds
        )
        if not _ends(checked, policy, opened, feeds != "never", waited_out):
            return
        if opened is not None:
            change.append(
                IterationEnded(
                    **common,
                    id=new_id(),
                    status=verdict.status,
                    reason=verdict.reason,
                    elapsed_seconds=max(0.0, (now - opened.started_at).total_seconds()),
                )
            )
            message = f"iteration {subject.iteration}: {verdict.status}, {verdict.reason}"
            ends_as = BY_VERDICT.get(verdict.status)
            if ends_as is not None:
                with suppress(GuardError):  # A registry that cannot be read holds up no verdict.
                    agents.settle(change, now, subject.run, subject.iteration, ends_as, message)
        if feeds == "always" or (feeds == "with_work" and verdict.status == "complete"):
            _feed(guard, change, checked, subject)


def _ends(
    checked: Checked,
    policy: Policy,
    opened: OpenIteration | None,
    supervised: bool,
    waited_out: bool,
) -> bool:
    """Whether the verdict ends the iteration: not while something goes on, and not by one look alone.

    What has been waited for as long as may be, and is asked about once more, goes on without the iteration. A check by hand
    does not end what another guard watches over.
    """
    verdict = checked.verdict
    if (verdict.status, verdict.reason) in GOES_ON and not waited_out:
        return False
    if supervised:
        return True
    watched = opened is not None and lives_elsewhere(opened.supervisor)
    return not watched and (policy.wait or verdict.status == "complete")


def _feed(guard: Invocation, change: Change, checked: Checked, subject: CheckSubject) -> None:
    """Tell the breaker of the work tree how the iteration ended."""
    output, verdict = checked.evidence.output, checked.verdict
    outcome = breaker.Outcome(
        status=verdict.status,
        reason=verdict.reason,
        fingerprint=(output.fingerprint if output else None) or verdict.reason,
        denied=output is not None and output.outcome == "denied",
        rescued=bool(checked.rescue and checked.rescue.commits and not checked.rescue.branch),
        head=checked.evidence.work.head or EMPTY,
        run=subject.run,
        iteration=subject.iteration,
    )
    breaker.record(change, place_of(guard), outcome)


def _check_event(
    checked: Checked, policy: Policy, supervised: bool, common: dict[str, Any]
) -> CheckMade:
    seen, verdict = checked.evidence, checked.verdict
    costs = [one.cost_usd for one in seen.probes if one.cost_usd is not None]
    return CheckMade(
        **common,
        status=verdict.status,
        reason=verdict.reason,
        detail=verdict.detail[:512],
        complete=verdict.status == "complete",
        new_commits=seen.own_commits,
        uncommitted=len(seen.uncommitted.names),
        rescued=_was_rescued(checked),
        rescued_commits=_rescued_commits(checked),
        probes=len(seen.probes),
        probe_cost_usd=sum(costs) if costs else None,
        alive=sum(holds(one, policy) for one in seen.living),
        retry_at=verdict.retry_at,
        elapsed_seconds=checked.elapsed_seconds,
        supervised=supervised,
        left=checked.left,
        aside=checked.aside,
        policy=policy.model_dump(mode="json"),
        looks=tuple(look.model_dump(mode="json") for look in checked.looks),
    )


def record_rescue(guard: Invocation, subject: CheckSubject, rescue: Rescue) -> None:
    """A rescue that somebody asked for."""
    common = {
        "at": guard.clock.now(),
        "id": new_id(),
        "run": subject.run,
        "iteration": subject.iteration,
        "worktree": guard.worktree_key,
    }
    with guard.writable_store.change() as change:
        change.append(_rescue_event(rescue, common))


def _rescue_event(rescue: Rescue, common: dict[str, Any]) -> RescueMade:
    return RescueMade(
        **common,
        commits=rescue.commits,
        snapshot=rescue.snapshot.id if rescue.snapshot else None,
        held_back=rescue.held_back,
        branch=rescue.branch,
        reason=rescue.reason,
        detail=rescue.detail,
    )


def _was_rescued(checked: Checked) -> bool:
    return bool(checked.rescue and checked.rescue.commits) or (
        checked.verdict.reason == "rescued" and checked.evidence.work.rescued > 0
    )


def _rescued_commits(checked: Checked) -> int:
    return len(checked.rescue.commits) if checked.rescue else checked.evidence.work.rescued


def _past_the_hooks(guard: Invocation, subject: CheckSubject) -> Iterator[Fact]:
    """Commits that came past guard's hooks in git: for information, no verdict goes by it."""
    with suppress(GuardError):
        for sentence in noticed(guard, subject.baseline).sentences():
            yield Fact(source="git hooks", fact=sentence)


def report(guard: Invocation, subject: CheckSubject, checked: Checked) -> CheckReport:
    """The verdict as scripts read it."""
    seen, verdict = checked.evidence, checked.verdict
    state = breaker.load(guard.store, guard.worktree_key)
    return CheckReport(
        complete=verdict.status == "complete",
        status=verdict.status,
        reason=verdict.reason,
        detail=verdict.detail,
        new_commits=seen.own_commits,
        uncommitted=seen.uncommitted,
        rescued=_was_rescued(checked),
        rescued_commits=_rescued_commits(checked),
        probes=len(seen.probes),
        baseline=subject.baseline.head or EMPTY,
        head=seen.work.head or EMPTY,
        retry_at=verdict.retry_at,
        team=seen.team,
        breaker=BreakerLine(
            state=state.state,
            streak=state.streak,
            reason=state.reason,
            retry_at=state.retry_at,
        ),
        evidence=(*facts(seen), *_past_the_hooks(guard, subject)),
        elapsed_seconds=round(checked.elapsed_seconds, 3),
        run=subject.run,
        iteration=subject.iteration,
        agent=subject.agent,
        session=subject.session,
        exit_code=seen.output.exit_code if seen.output else None,
        work=seen.work,
        snapshot=checked.snapshot,
        rescue=checked.rescue,
    )
