"""A session wants to stop: gather the facts, let `core.hooks.stopping` decide, record it, and answer."""

from collections.abc import Callable
from dataclasses import replace

from guard import team as teams
from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.moment import Moment
from guard.core.base.text import valid
from guard.core.hooks.events import StopDecided
from guard.core.hooks.failure import failure
from guard.core.hooks.payload import HookCall
from guard.core.hooks.state import HOOKS, Boot, HookSession
from guard.core.hooks.stop import Facts, StopAnswer, decide, unlisted, waited_for
from guard.core.iteration.run import RUN
from guard.core.log.event import BaseEvent
from guard.core.team import count as accounting
from guard.core.team.state import TEAM, Scope
from guard.hooks.agent import answers
from guard.hooks.agent.ingest import team_events
from guard.hooks.agent.leftovers import left_by
from guard.store import Change

_LONGEST = 512


def decided(guard: Invocation, heard: HookCall, seconds_left: Callable[[], float]) -> str:
    """What the agent's program is answered. A block that could not be recorded is none: uncounted it could loop."""
    if heard.helper is not None:
        return answers.NOTHING  # A helper's turn: the session itself goes on.
    most = guard.users_config.settings.hooks.max_blocks
    scope = _scope(guard, heard)
    facts = Facts(
        heard.agent, heard.session, heard.prompt, heard.again, _called(heard), failure(heard)
    )
    if most and facts.failure is None:
        facts = _looked(guard, heard, scope, facts, seconds_left)
    decision = _recorded(guard, heard, scope, facts, most)
    if decision.decision == "blocked":
        return answers.block(heard.agent, decision.text)
    return answers.message(heard.agent, decision.message)


def _called(heard: HookCall) -> Boot | None:
    return Boot(seconds=heard.boot_seconds, id=heard.boot_id) if heard.boot_id else None


def _scope(guard: Invocation, heard: HookCall) -> Scope:
    """The team of this session; whoever joined an iteration before its session was known belongs to that session."""
    run = guard.store.view(RUN, guard.worktree_key)
    opened = run.open_iteration if run is not None else None
    if run is None or opened is None or opened.session not in (None, heard.session):
        return Scope(guard.worktree_key, heard.session)
    return Scope(guard.worktree_key, heard.session, run.run, opened.number)


def _looked(
    guard: Invocation,
    heard: HookCall,
    scope: Scope,
    facts: Facts,
    seconds_left: Callable[[], float],
) -> Facts:
    """The facts with what runs and what is left; git is not asked while the host waits anyway."""
    _take_list(guard, heard)
    _, counting = teams.counting(guard.store, scope, guard.clock.moment())
    members = tuple(counting)
    waits = waited_for(heard, members)
    if waits:
        return replace(facts, waits=waits)
    hooks = guard.store.view(HOOKS, guard.worktree_key)
    files = left_by(guard, heard, hooks, max(0.1, seconds_left()))
    return replace(facts, members=unlisted(heard, members), files=files)


def _take_list(guard: Invocation, heard: HookCall) -> None:
    """What the host lists in the background is news for the accounting of the team."""
    if heard.tasks is not None or heard.wakeups is not None:
        with guard.writable_store.change() as change:
            change.append(*team_events(guard, change, [heard]))


def _recorded(
    guard: Invocation, heard: HookCall, scope: Scope, facts: Facts, most: int
) -> StopAnswer:
    """Decided and recorded under one lock, so that no two stops take the same count."""
    key = guard.worktree_key
    with guard.writable_store.change() as change:
        moment = guard.clock.moment()
        hooks = change.view(HOOKS, key)
        before = hooks.session(heard.agent, heard.session) if hooks is not None else None
        decision = decide(facts, before, most, moment.now)
        if not decision.twin:
            change.append(
                _event(heard, scope, decision, moment),
                *_held(change, scope, decision, before, moment),
            )
    return decision


def _event(heard: HookCall, scope: Scope, decision: StopAnswer, moment: Moment) -> StopDecided:
    return StopDecided(
        at=moment.now,
        id=new_id(),
        run=scope.run,
        iteration=scope.iteration,
        worktree=scope.worktree,
        agent=heard.agent,
        event=heard.event,
        session=heard.session,
        prompt=heard.prompt,
        decision=decision.decision,
        reason=decision.reason,
        blocks=decision.blocks,
        files=len(decision.left.files),
        members=len(decision.left.members),
        detail=valid(decision.detail)[:_LONGEST],
        boot_seconds=moment.boot_seconds,
        boot_id=moment.boot_id,
    )


def _held(
    change: Change, scope: Scope, decision: StopAnswer, before: HookSession | None, moment: Moment
) -> tuple[BaseEvent, ...]:
    """That the completion is held back for the team, or no longer."""
    was_held = before is not None and before.reason in ("waiting", "team")
    if not decision.held and not was_held:
        return ()
    state = change.view(TEAM, scope.key)
    current = accounting.as_of(state, moment) if state is not None else None
    terms = accounting.TeamTerms(scope, moment, new_id(), 0)
    return (
        accounting.completion(current, held=decision.held, reason=decision.reason, terms=terms),
    )
