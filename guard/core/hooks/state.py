"""Keep the view of the agent hooks of one work tree: each hook's last call, and how often each session was asked to go on."""

from datetime import datetime
from typing import Any, Literal, assert_never, get_args

from pydantic import Field

from guard.core.base.fields import BootSeconds, Count, Frozen, Instant, Line
from guard.core.hooks.event_kinds import KINDS, RESTARTS, STARTS
from guard.core.hooks.events import (
    Calls,
    HookAgent,
    HookEvent,
    HookSessionStarted,
    HooksFolded,
    Prompted,
    SessionWork,
    SpoolName,
    StopDecided,
    StopDecision,
    StopReason,
)
from guard.core.hooks.session_work import join_work
from guard.core.log.view import Fold, WorktreeView, worktree_view

MOST_SESSIONS = 50
MOST_HELD = 150
"""How many more sessions are kept that were asked to go on and have not ended.

Without its count such a session could be held back forever.
"""
MOST_ABSENCES = 8


class Boot(Frozen):
    """A moment by the boot clock, which cannot be set."""

    seconds: BootSeconds
    id: Line

    @classmethod
    def of(cls, event: HookSessionStarted | StopDecided) -> "Boot | None":
        if event.boot_seconds is None or event.boot_id is None:
            return None
        return cls.model_construct(seconds=event.boot_seconds, id=event.boot_id)


class Absence(Frozen):
    """A time in which a session was not there."""

    since: Instant | None
    """When a hook of the session was called last; None for all time before `until`."""
    until: Instant


class HookSession(Frozen):
    """What the hooks know of one session of an agent."""

    agent: HookAgent
    session: Line | None
    started_at: Instant | None
    """When the session was started or resumed last; None if no hook told so."""
    began: bool
    """Whether an iteration began with the session."""
    ended: bool
    prompt: Line | None
    """The id of the newest prompt since the session started or was resumed."""
    blocks: Count
    """How often the session was asked to go on for this prompt."""
    decision: StopDecision | None
    reason: StopReason | None
    decided_at: Instant | None
    started_boot: Boot | None = None
    """`started_at` by the boot clock; None if it is not known."""
    decided_boot: Boot | None = None
    """`decided_at` by the boot clock; None if it is not known."""
    seen_at: Instant | None = None
    """When the session started, wanted to stop or ended last."""
    away: tuple[Absence, ...] = ()
    """The times before its start, and before each time that it was resumed."""


class HooksState(WorktreeView):
    """The hooks of one work tree."""

    schema_: Literal["guard/hooks/2"] = Field("guard/hooks/2", alias="schema")
    calls: tuple[Calls, ...]
    """Each hook that was ever called, how often, and when last."""
    sessions: tuple[HookSession, ...]
    """The sessions of agents, the newest last."""
    folded: tuple[SpoolName, ...]
    """The spool files that were recorded last."""
    worked: tuple[SessionWork, ...]
    """What the sessions did that edited code or ran tests last, the newest last."""

    def session(self, agent: str, session: str | None) -> HookSession | None:
        name = _name(agent, session)
        return next(
            (known for known in self.sessions if _name(known.agent, known.session) == name), None
        )


def _name(agent: str, session: str | None) -> tuple[str, str]:
    # Copilot CLI calls the hooks of Claude Code, too: an id is one session, for whichever agent it was given.
    return ("session", session) if session is not None else ("agent", agent)


class HooksFold(Fold[HooksState]):
    document_class = HooksState

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._calls: dict[tuple[str, str], Calls] = {}
        self._sessions: dict[tuple[str, str], HookSession] = {}
        self._folded: tuple[str, ...] = ()
        self._worked: dict[str | None, SessionWork] = {}

    def restore(self, document: HooksState) -> None:
        self.reached = document.position()
        self._calls = {(call.agent, call.event): call for call in document.calls}
        self._sessions = {
            _name(session.agent, session.session): session for session in document.sessions
        }
        self._folded = document.folded
        self._worked = {work.session: work for work in document.worked}

    def apply(self, event: HookEvent) -> None:
        match event:
            case HooksFolded():
                self._folded = event.spooled
                for calls in event.calls:
                    self._count(calls)
                self._add_work(event.worked)
                for prompted in event.prompted:
                    self._begin_prompt(prompted)
                at = _end_of_session(event)
                for session in tuple(self._sessions.values()):
                    if session.session in event.ended:
                        seen = {"seen_at": at or session.seen_at, "ended": True}
                        self._keep(session.model_copy(update=seen))
            case HookSessionStarted():
                self._count(_single_call(event))
                known = self._take_session(event)
                # A session that is resumed has not ended; one that is compacted was there all the time.
                news: dict[str, Any] = {"began": event.began, "ended": False, "seen_at": event.at}
                if event.source in RESTARTS or known.started_at is None:
                    news |= {"started_at": event.at, "started_boot": Boot.of(event)}
                    news["away"] = _absences(known, event)
                if event.source in RESTARTS:
                    # The user who resumes it prompts it anew, though perhaps in the same words.
                    news |= {"prompt": None, "blocks": 0}
                self._keep(known.model_copy(update=news))
            case StopDecided():
                self._count(_single_call(event))
                known = self._take_session(event)
                decided = {name: getattr(event, name) for name in _DECIDED}
                # A document without a prompt, such as one that cannot be read, does not make the last one unknown.
                decided |= {"prompt": event.prompt or known.prompt}
                decided |= {"decided_at": event.at, "decided_boot": Boot.of(event)}
                decided["seen_at"] = event.at
                self._keep(known.model_copy(update=decided))
            case _:
                assert_never(event)

    def _count(self, calls: Calls) -> None:
        key = (calls.agent, calls.event)
        count = self._calls[key].count if key in self._calls else 0
        self._calls[key] = calls.model_copy(update={"count": count + calls.count})

    def _add_work(self, worked: tuple[SessionWork, ...]) -> None:
        for work in worked:
            before = self._worked.pop(work.session, None)
            self._worked[work.session] = join_work(before, work) if before is not None else work
        while len(self._worked) > MOST_SESSIONS:
            del self._worked[next(iter(self._worked))]

    def _begin_prompt(self, prompted: Prompted) -> None:
        known = self._sessions.get(_name(prompted.agent, prompted.session))
        if known is None or (known.decided_at is not None and prompted.at <= known.decided_at):
            return
        if prompted.prompt is None or prompted.prompt != known.prompt:
            self._keep(known.model_copy(update={"prompt": prompted.prompt, "blocks": 0}))

    def _take_session(self, event: HookSessionStarted | StopDecided) -> HookSession:
        key = _name(event.agent, event.session)
        return self._sessions.pop(key, None) or HookSession.model_construct(
            agent=event.agent,
            session=event.session,
            started_at=None,
            began=False,
            ended=False,
            prompt=None,
            blocks=0,
            decision=None,
            reason=None,
            decided_at=None,
        )

    def _keep(self, session: HookSession) -> None:
        self._sessions[_name(session.agent, session.session)] = session
        if len(self._sessions) > MOST_SESSIONS:
            self._forget()

    def _forget(self) -> None:
        # The oldest, and fewer of those that may still be held back.
        kinds: dict[bool, list[tuple[str, str]]] = {False: [], True: []}
        for key, session in self._sessions.items():
            kinds[session.blocks > 0 and not session.ended].append(key)
        for key in (*kinds[False][:-MOST_SESSIONS], *kinds[True][:-MOST_HELD]):
            del self._sessions[key]

    def contents(self) -> dict[str, Any]:
        return {
            "worktree": self.key,
            "calls": tuple(self._calls[key] for key in sorted(self._calls)),
            "sessions": tuple(self._sessions.values()),
            "folded": self._folded,
            "worked": tuple(self._worked.values()),
        }


_DECIDED = ("blocks", "decision", "reason")


def _single_call(event: HookSessionStarted | StopDecided) -> Calls:
    return Calls.model_construct(agent=event.agent, event=event.event, count=1, last_at=event.at)


def _end_of_session(event: HooksFolded) -> datetime | None:
    # Where several sessions ended, the event does not tell when each of them did.
    ends = [call for call in event.calls if KINDS[call.agent].get(call.event) == "session_ended"]
    return ends[0].last_at if sum(call.count for call in ends) == 1 else None


def _absences(known: HookSession, event: HookSessionStarted) -> tuple[Absence, ...]:
    # Of very many the oldest become one.
    since = known.seen_at if event.source not in STARTS else None
    if since is None or since > event.at:
        return (Absence.model_construct(since=None, until=event.at),)
    away = (*known.away, Absence.model_construct(since=since, until=event.at))
    if len(away) <= MOST_ABSENCES:
        return away
    first = Absence.model_construct(since=away[0].since, until=away[1].until)
    return (first, *away[2:])


HOOKS = worktree_view(
    HooksState,
    HooksFold,
    get_args(HookEvent),
    "hooks",
    b'"type":"hooks_folded"',
    b'"type":"hook_session_started"',
    b'"type":"stop_decided"',
)
