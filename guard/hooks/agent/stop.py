"""Gather the facts when a session wants to stop, have `guard.core.hooks.stop` decide, and record the decision."""

import math
from collections.abc import Callable
from dataclasses import replace

from guard import team as teams
from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.moment import Moment
from guard.core.base.paths import unspell
from guard.core.base.text import utf8_text
from guard.core.hooks.events import StopDecided
from guard.core.hooks.messages import OpenWork, Refutation
from guard.core.hooks.payload import HookCall
from guard.core.hooks.state import HOOKS, Absence, HookSession, HooksState
from guard.core.hooks.stop import (
    StopAnswer,
    StopFacts,
    decide,
    host_waits_for,
    is_clock_set_back,
    turn_failure,
    unlisted_members,
)
from guard.core.iteration.run import RUN, Run
from guard.core.log.events import BaseEvent
from guard.core.prove.known_proof import proof_of_commit
from guard.core.prove.proofs import PROOFS
from guard.core.prove.settings import ProveSettings
from guard.core.rescue.secrets import has_new_sensitive_name
from guard.core.team.count import TeamTerms, completion_event
from guard.core.team.state import Scope
from guard.git.reader import RepositoryReader
from guard.git.refs import read_head
from guard.hooks.agent.ingest import session_scope, team_events
from guard.hooks.ancestors import has_ended
from guard.iteration import baseline as baselines
from guard.iteration.attribution import Away, left_by_iteration, shared_with_user
from guard.iteration.current import CheckTerms, Iteration, current_iteration, last_check
from guard.store import Change

_MOST_DETAIL = 512
_SLACK_SECONDS = 2.0
"""File systems and clocks differ in how exact their times are."""


def decide_stop(
    guard: Invocation, call: HookCall, seconds_left: Callable[[], float]
) -> StopAnswer | None:
    """Decide whether a session may stop, and record it; None for a helper's turn, which ends no session.

    A block that could not be recorded is raised as an error: uncounted, it could hold the session forever.
    """
    if call.helper is not None:
        return None
    most = guard.users_config.settings.hooks.max_blocks
    key = guard.worktree_key
    scope = session_scope(key, guard.store.view(RUN, key), call.session)
    facts = StopFacts(call, turn_failure(call))
    if most and facts.failure is None:
        facts = _add_open_work(guard, scope, facts, seconds_left)
    return _decide_and_record(guard, scope, facts, most)


def _add_open_work(
    guard: Invocation, scope: Scope, facts: StopFacts, seconds_left: Callable[[], float]
) -> StopFacts:
    call = facts.call
    _record_listed_helpers(guard, call)
    _, counting = teams.counting_members(guard.store, scope, guard.clock.moment())
    members = tuple(counting)
    waits = host_waits_for(call, members)
    if waits:
        # The agent CLI waits anyway: git need not be asked.
        return replace(facts, waits=waits)
    hooks = guard.store.view(HOOKS, guard.worktree_key)
    left = _left_by_session(guard, call, hooks, max(0.1, seconds_left()))
    unlisted = unlisted_members(call, members)
    if left is None:
        return replace(facts, members=unlisted, files=None)
    return replace(
        facts,
        members=unlisted,
        files=left.files,
        for_secrets=left.for_secrets,
        refutation=left.refutation,
    )


def _record_listed_helpers(guard: Invocation, call: HookCall) -> None:
    if call.tasks is not None or call.wakeups is not None:
        with guard.writable_store.change() as change:
            change.append(*team_events(guard, change, [call]))


def _decide_and_record(guard: Invocation, scope: Scope, facts: StopFacts, most: int) -> StopAnswer:
    key, call = guard.worktree_key, facts.call
    # Under one lock, so that no two stops take the same count.
    with guard.writable_store.change() as change:
        moment = guard.clock.moment()
        hooks = change.view(HOOKS, key)
        before = hooks.session(call.agent, call.session) if hooks is not None else None
        decision = decide(facts, before, most)
        if not decision.is_twin:
            change.append(
                _event(call, scope, decision, moment),
                *_completion_events(change, scope, decision, before, moment),
            )
    return decision


def _event(call: HookCall, scope: Scope, decision: StopAnswer, moment: Moment) -> StopDecided:
    return StopDecided(
        at=moment.now,
        id=new_id(),
        run=scope.run,
        iteration=scope.iteration,
        worktree=scope.worktree,
        agent=call.agent,
        event=call.event,
        session=call.session,
        prompt=call.prompt,
        decision=decision.decision,
        reason=decision.reason,
        blocks=decision.blocks,
        files=len(decision.left.files),
        members=len(decision.left.members),
        detail=utf8_text(decision.detail)[:_MOST_DETAIL],
        boot_seconds=moment.boot_seconds,
        boot_id=moment.boot_id,
    )


def _completion_events(
    change: Change, scope: Scope, decision: StopAnswer, before: HookSession | None, moment: Moment
) -> tuple[BaseEvent, ...]:
    was_held = before is not None and before.reason in ("waiting", "team")
    if not decision.is_held and not was_held:
        return ()
    name, members = teams.counting_members(change, scope, moment)
    terms, is_held = TeamTerms(scope, moment, new_id(), 0), decision.is_held
    return (
        completion_event(name, len(members), held=is_held, reason=decision.reason, terms=terms),
    )


def _left_by_session(
    guard: Invocation, call: HookCall, hooks: HooksState | None, seconds: float
) -> OpenWork | None:
    """Return what the session would leave uncommitted, or committed and refuted; None if no baseline can tell.

    Each question to git may take `seconds`.
    """
    key = guard.worktree_key
    known = hooks.session(call.agent, call.session) if hooks is not None else None
    if baselines.load(guard.store, key) is None:
        return None
    if not _has_baseline(guard.store.view(RUN, key), call, hooks, known):
        return None
    iteration = current_iteration(guard, CheckTerms())
    settings = guard.settings(iteration.frozen, trusted=iteration.trusted_commits)
    limit = min(settings.completion_check.git_timeout_seconds, seconds)
    last = last_check(guard, iteration)
    has_absences = known is not None and not is_clock_set_back(known, guard.clock.moment())
    git = RepositoryReader(guard.repository, guard.environ, limit)
    left = left_by_iteration(
        git,
        iteration.baseline,
        aside=frozenset(last.aside if last is not None else ()),
        away=map(_make_away, known.away if known is not None and has_absences else ()),
    ).files
    shared = shared_with_user(git, iteration.baseline, left)
    allowed = settings.rescue.allow_secrets
    # A rescue would hold a file back for its name, so the agent is not asked to commit it.
    own = [file.path for file in left if file.path not in shared]
    secret = [path for path in own if has_new_sensitive_name(unspell(path), allowed)]
    files = tuple(path for path in own if path not in secret)
    found = None if files else _refutation(guard, git, iteration, settings.prove)
    return OpenWork(files=files, for_secrets=tuple(secret), refutation=found)


def _refutation(
    guard: Invocation, git: RepositoryReader, iteration: Iteration, settings: ProveSettings
) -> Refutation | None:
    """Return the recorded proof that refutes HEAD, if the session made that commit; nothing is run."""
    proofs = guard.store.view(PROOFS, guard.worktree_key)
    head = read_head(git) if proofs is not None else None
    if head is None or head == iteration.baseline.head:
        return None
    proof = proof_of_commit(proofs, head, settings)
    if proof is None or proof.result != "refuted":
        return None
    weakened = (*proof.weakened, *proof.rewritten)
    return Refutation(head, proof.detail, proof.new_failures, weakened)


def _has_baseline(
    run: Run | None, call: HookCall, hooks: HooksState | None, known: HookSession | None
) -> bool:
    # The newest baseline is not this session's while another session works from it.
    opened = run.open_iteration if run is not None else None
    last = run.last_iteration if run is not None else None
    is_started = known is not None and known.started_at is not None
    if opened is None:
        return is_started or (last is not None and None is not last.session == call.session)
    if opened.session in (None, call.session):
        return True
    return is_started and (_is_over(opened.session, hooks) or has_ended(opened.process))


def _is_over(session: str | None, hooks: HooksState | None) -> bool:
    sessions = hooks.sessions if hooks is not None else ()
    return any(
        known_session.ended for known_session in sessions if known_session.session == session
    )


def _make_away(absence: Absence) -> Away:
    since = absence.since.timestamp() if absence.since is not None else -math.inf
    return Away(since, absence.until.timestamp() - _SLACK_SECONDS)
