"""The events of agents' hooks: their calls, and guard's answers."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from guard.core.base.fields import BootSeconds, Count, Frozen, Id, Instant, Line
from guard.core.log.events import BaseEvent

HookAgent = Literal["claude", "codex", "gemini", "qwen", "copilot", "opencode"]
SpoolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
HookName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z.]{0,63}$")]
StopDecision = Literal["blocked", "released"]
StopReason = Literal[
    "uncommitted",
    "refuted",
    "team",
    "waiting",
    "clean",
    "cap",
    "limited",
    "auth",
    "failed",
    "off",
    "no_baseline",
    "no_repository",
]


class Calls(Frozen):
    """How often one hook was called since the last record of it."""

    agent: HookAgent
    event: HookName
    count: Count
    last_at: Instant


class Prompted(Frozen):
    """A user prompted a session, by the word of its hook."""

    agent: HookAgent
    session: Line | None
    prompt: Line | None
    """The id of the prompt; None if the agent CLI gives none."""
    at: Instant


class HeardRun(Frozen):
    """A test run that a session's hooks reported."""

    at: Instant
    passed: bool | None
    """None if the agent CLI does not tell how it ended."""


class SessionWork(Frozen):
    """What a session's hooks reported of its work: its test runs, and when it edited code last."""

    agent: HookAgent
    session: Line | None
    edited_at: Instant | None
    runs: tuple[HeardRun, ...]
    """The newest; a green one that is older than the last edit is left out."""


class _HookEvent(BaseEvent):
    worktree: Id


class HooksFolded(_HookEvent):
    """The spooled calls of observing hooks were recorded."""

    type: Literal["hooks_folded"] = "hooks_folded"
    spooled: tuple[SpoolName, ...]
    """The names of the spool files: one that is still there was recorded all the same."""
    calls: tuple[Calls, ...]
    ended: tuple[Line, ...]
    """Sessions that have ended."""
    prompted: tuple[Prompted, ...] = ()
    """The newest prompt of each session that was prompted."""
    worked: tuple[SessionWork, ...] = ()


class _Answered(_HookEvent):
    """An answer to a session, with the boot clock: it tells when the wall clock was set."""

    boot_seconds: BootSeconds | None = None
    boot_id: Line | None = None
    agent: HookAgent
    event: HookName
    session: Line | None


class HookSessionStarted(_Answered):
    """A hook was called for the start of a session."""

    type: Literal["hook_session_started"] = "hook_session_started"
    source: Line
    began: bool
    """Whether an iteration began with the session."""
    detail: Line


class StopDecided(_Answered):
    """A session wanted to stop; guard asked it to go on, or let it stop."""

    type: Literal["stop_decided"] = "stop_decided"
    prompt: Line | None
    decision: StopDecision
    reason: StopReason
    blocks: Count
    """How often the session was asked to go on for this prompt, this time included."""
    files: Count
    members: Count
    detail: Line


HookEvent = HooksFolded | HookSessionStarted | StopDecided
