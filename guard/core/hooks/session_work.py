"""Tell from hook calls which tests a session ran, and when it edited code last."""

import json
from collections.abc import Iterable

from guard.core.hooks.events import HeardRun, SessionWork
from guard.core.hooks.payload import HookCall
from guard.core.hooks.team_changes import call_moment, sort_calls
from guard.core.tool_calls.read import ToolCall, read_hook
from guard.core.tool_calls.test_runs import edits_code, run_that_counts

MOST_RUNS = 10


def session_work(calls: Iterable[HookCall]) -> tuple[SessionWork, ...]:
    """Return what these calls add to the work of each session."""
    found: dict[str | None, SessionWork] = {}
    for call in sort_calls([call for call in calls if call.tool_document is not None]):
        done = _read(call)
        if done is not None:
            before = found.get(call.session)
            found[call.session] = join_work(before, done) if before is not None else done
    return tuple(found.values())


def join_work(before: SessionWork, after: SessionWork) -> SessionWork:
    """Add newer work to what is known of a session: an edit makes the green runs before it worthless."""
    times = [work.edited_at for work in (before, after) if work.edited_at is not None]
    edited = max(times, default=None)
    runs = sorted((*before.runs, *after.runs), key=lambda run: run.at)
    kept = [run for run in runs if run.passed is False or edited is None or run.at >= edited]
    return after.model_copy(update={"edited_at": edited, "runs": tuple(kept[-MOST_RUNS:])})


def _read(call: HookCall) -> SessionWork | None:
    at, used = call_moment(call).now, _tool_call(call)
    if used is None:
        return None
    run = run_that_counts(used)
    is_edit = edits_code(used)
    if run is None and not is_edit:
        return None
    # A call in the background only says that the program was started.
    passed = run.passed if run is not None and not call.in_background else None
    return SessionWork(
        agent=call.agent,
        session=call.session,
        # An edit in the command line of a run came before the run.
        edited_at=at if is_edit else None,
        runs=(HeardRun(at=at, passed=passed),) if run is not None else (),
    )


def _tool_call(call: HookCall) -> ToolCall | None:
    try:
        document = json.loads(call.tool_document or "null")
    except (ValueError, RecursionError):
        return None
    return read_hook(document) if isinstance(document, dict) else None
