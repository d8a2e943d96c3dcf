"""Record the start of a session, and take a baseline if an iteration begins with it."""

from datetime import datetime

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.moment import Moment
from guard.core.base.text import shorten, utf8_text
from guard.core.hooks.event_kinds import MARK
from guard.core.hooks.events import HookSessionStarted
from guard.core.hooks.payload import HookCall
from guard.core.hooks.session_start import has_begun_iteration, is_new_session, session_end
from guard.core.hooks.state import HOOKS, HooksState
from guard.core.iteration.run import RUN, Run
from guard.errors import GuardError, Refused
from guard.hooks.ancestors import calling_agent, has_ended
from guard.hooks.watchdog import TimeIsUp
from guard.iteration.begin import begin
from guard.iteration.current import note_session

_MOST_DETAIL = 400


def record_session_start(guard: Invocation, call: HookCall) -> None:
    if call.helper is not None:
        return  # A helper's: the session has started before.
    moment, hooks = guard.clock.moment(), guard.store.view(HOOKS, guard.worktree_key)
    trouble: GuardError | OSError | TimeIsUp | None = None
    detail, began = "", False
    try:
        detail, began = _begin_iteration(guard, call, hooks, moment.now)
    except (GuardError, OSError, TimeIsUp) as error:
        trouble, detail = error, str(error)
    if call.session is not None:
        mark = guard.environ.get(MARK)
        note_session(guard, call.agent, call.session, mark=mark, process=calling_agent())
    _record(guard, call, hooks, moment, detail, began)
    if trouble is not None:
        raise trouble


def _begin_iteration(
    guard: Invocation, call: HookCall, hooks: HooksState | None, at: datetime
) -> tuple[str, bool]:
    """Begin an iteration if a session begins; return a sentence about it, and whether one began."""
    if not is_new_session(call):
        return "no session begins with it", False

    def find_end(run: Run | None) -> datetime | None:
        opened = run.open_iteration if run is not None else None
        return session_end(opened, hooks, at, gone=opened is not None and has_ended(opened.process))

    def refuse(_guard: Invocation, run: Run | None) -> None:
        if run is not None and run.open_iteration is not None and find_end(run) is None:
            raise Refused(f"iteration {run.open_iteration.number} of run {run.run} is open")

    try:
        ended = find_end(guard.store.view(RUN, guard.worktree_key))
        begun = begin(guard, refuse=refuse, over_since=ended)
    except Refused as error:
        return error.message, False
    return f"iteration {begun.number} of run {begun.run} begins", True


def _record(
    guard: Invocation,
    call: HookCall,
    hooks: HooksState | None,
    moment: Moment,
    detail: str,
    began: bool,
) -> None:
    known = hooks.session(call.agent, call.session) if hooks is not None else None
    with guard.writable_store.change() as change:
        run = change.view(RUN, guard.worktree_key)
        opened = run.open_iteration if run is not None else None
        change.append(
            HookSessionStarted(
                at=moment.now,
                id=new_id(),
                run=run.run if run is not None and opened is not None else None,
                iteration=opened.number if opened is not None else None,
                worktree=guard.worktree_key,
                agent=call.agent,
                event=call.event,
                session=call.session,
                source=call.source,
                began=began or has_begun_iteration(opened, known),
                detail=shorten(utf8_text(detail), _MOST_DETAIL),
                boot_seconds=moment.boot_seconds,
                boot_id=moment.boot_id,
            )
        )
