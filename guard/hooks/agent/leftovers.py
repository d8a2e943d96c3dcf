"""What a session would leave uncommitted if it stopped now: as a check sees it, and changed while it was there."""

import math

from guard.context.invocation import Invocation
from guard.core.base.paths import unspelled
from guard.core.hooks.clock_set_back import was_set_back
from guard.core.hooks.payload import HookCall
from guard.core.hooks.state import Absence, HookSession, HooksState
from guard.core.iteration.events import DirtyFile
from guard.core.iteration.run import RUN, Run
from guard.core.rescue.secrets import SENSITIVE_NAME, has_sensitive_name, is_allowed
from guard.hooks.agent.host import is_gone
from guard.iteration import baseline as baselines
from guard.iteration.attribution import Away, left_by_iteration, shared_with_user
from guard.iteration.current import CheckTerms, Iteration, current, last_check

_SLACK_SECONDS = 2.0
"""File systems and clocks differ in how exact their times are."""


def left_by(
    guard: Invocation, heard: HookCall, hooks: HooksState | None, seconds: float
) -> tuple[str, ...] | None:
    """The files, without what may be somebody else's; None if no baseline can tell. Git may take so many seconds at a time."""
    key = guard.worktree_key
    known = hooks.session(heard.agent, heard.session) if hooks is not None else None
    if baselines.load(guard.store, key) is None:
        return None
    if not _tells(guard.store.view(RUN, key), heard, hooks, known):
        return None
    return _files(guard, current(guard, CheckTerms()), known, seconds)


def _tells(
    run: Run | None, heard: HookCall, hooks: HooksState | None, known: HookSession | None
) -> bool:
    """Whether the newest baseline says anything of this session: not while another session works from it."""
    opened = run.open_iteration if run is not None else None
    last = run.last_iteration if run is not None else None
    heard_of = known is not None and known.started_at is not None
    if opened is None:
        return heard_of or (last is not None and None is not last.session == heard.session)
    if opened.session in (None, heard.session):
        return True
    return heard_of and (_has_ended(opened.session, hooks) or is_gone(opened.process))


def _has_ended(session: str | None, hooks: HooksState | None) -> bool:
    sessions = hooks.sessions if hooks is not None else ()
    return any(one.ended for one in sessions if one.session == session)


def _files(
    guard: Invocation, iteration: Iteration, known: HookSession | None, seconds: float
) -> tuple[str, ...]:
    settings, before = guard.settings(iteration.frozen), iteration.baseline
    moment = guard.clock.moment()
    limit = min(settings.completion_check.git_timeout_seconds, seconds)
    last = last_check(guard, iteration)
    aside = frozenset(last.aside if last is not None else ())
    away: tuple[Absence, ...] = ()
    if known is not None and not was_set_back(known, moment):
        away = known.away
    left = left_by_iteration(
        guard.repository, before, guard.environ, limit, aside=aside, away=map(_away, away)
    ).files
    shared = shared_with_user(guard.repository, before, left, guard.environ, limit)
    allowed = settings.rescue.allow_secrets
    return tuple(
        file.path for file in left if file.path not in shared and not _is_secret(file, allowed)
    )


def _away(absence: Absence) -> Away:
    since = absence.since.timestamp() if absence.since is not None else -math.inf
    return Away(since, absence.until.timestamp() - _SLACK_SECONDS)


def _is_secret(file: DirtyFile, allowed: str) -> bool:
    """Nobody is asked to commit what a rescue would hold back for its name."""
    return has_sensitive_name(unspelled(file.path)) and not is_allowed(
        SENSITIVE_NAME, file.path, allowed
    )
