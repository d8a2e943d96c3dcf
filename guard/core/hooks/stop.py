"""Whether a session may stop: a limit always lets it, then work that its host waits for, then nothing left to be done.

A session is asked to go on only so often for one prompt, by a count of guard's own: that a hook has held it back before is
told by its host for ever after, and some hosts would be held back without end. What a host does not tell proves nothing: the
count goes on.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from guard.core.hooks import messages as saying
from guard.core.hooks.events import StopDecision, StopReason
from guard.core.hooks.failure import Failure
from guard.core.hooks.messages import OpenWork
from guard.core.hooks.payload import HookCall
from guard.core.hooks.state import Boot, HookSession
from guard.core.team.state import Member

CANNOT_HOLD = ("opencode",)
"""Agents whose program cannot be kept from stopping."""
_TELL_AGAIN = ("claude", "codex", "qwen")
"""Agents whose program tells of every stop after a block that it is one. Gemini CLI forgets it when a tool was used between."""
_HELD: tuple[StopReason, ...] = ("waiting", "team")
_TWICE = timedelta(seconds=2)
"""Two hooks for the same stop, of the user and of the project, are called at the same time, or one after the other."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known when a session wants to stop."""

    agent: str
    session: str | None
    prompt: str | None = None
    again: bool | None = None
    """Whether the host says that it was held back before; None if it does not say."""
    heard: Boot | None = None
    """When the hook was called."""
    failure: Failure | None = None
    waits: tuple[str, ...] = ()
    """What its host waits for by itself."""
    members: tuple[Member, ...] = ()
    """Who counts, and is not waited for by the host."""
    files: tuple[str, ...] | None = ()
    """What the session left uncommitted; None if there is no baseline to tell."""


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """The answer to a session that wants to stop, and why."""

    decision: StopDecision
    reason: StopReason
    blocks: int
    left: OpenWork
    text: str = ""
    """For the agent, if it is asked to go on."""
    message: str = ""
    """For the user, if the session stops though something is left."""
    detail: str = ""
    twin: bool = False
    """Whether this very stop was decided already, for another hook."""

    @property
    def held(self) -> bool:
        """Whether the team is what the session is not done for."""
        return self.reason in _HELD


def waited_for(heard: HookCall, members: tuple[Member, ...]) -> tuple[str, ...]:
    """What the host waits for: all that runs in its list. A teammate that is idle stays listed as running."""
    idle = [one.member for one in members if one.status == "idle"]
    nameless = _listed_by_other_names(heard, members)
    unmatched = len([name for name in idle if name not in _listed(heard)])
    at_rest = {*idle, *nameless[:unmatched]}
    running = [
        f"{task.kind.replace('_', ' ')} {task.id}"
        for task in heard.tasks or ()
        if task.running and not (task.kind == "teammate" and task.id in at_rest)
    ]
    unclear = ["something that guard does not know"] if heard.tasks_unclear else []
    return (*running, *unclear, *(f"wake-up {one.id}" for one in heard.wakeups or ()))


def unlisted(heard: HookCall, members: tuple[Member, ...]) -> tuple[Member, ...]:
    """The members that count and that the host does not list: it will not wait for them."""
    listed = _listed(heard)
    known = ("teammate",) if _listed_by_other_names(heard, members) else ()
    return tuple(
        one for one in members if one.counts and one.member not in listed and one.kind not in known
    )


def _listed(heard: HookCall) -> set[str]:
    return {task.id for task in heard.tasks or ()} | {one.id for one in heard.wakeups or ()}


def _listed_by_other_names(heard: HookCall, members: tuple[Member, ...]) -> list[str]:
    """Teammates in the list that are no members: the hooks call them otherwise than the list does."""
    names = {one.member for one in members}
    teammates = (one for one in heard.tasks or () if one.kind == "teammate" and one.running)
    return [one.id for one in teammates if one.id not in names]


def decide(facts: Facts, before: HookSession | None, max_blocks: int, now: datetime) -> StopAnswer:
    """Whether the session may stop; `before` is what is known of it."""
    reason = _reason(facts, max_blocks)
    left = OpenWork(facts.members, facts.files or ())
    asked = _asked_so_far(facts, before)
    detail = "; ".join(facts.waits) if reason == "waiting" else saying.listed(left)
    asks = reason in ("team", "uncommitted")
    if not asks or facts.agent in CANNOT_HOLD:
        return StopAnswer("released", reason, asked, left, detail=detail)
    twin = _is_twin(facts, before, now)
    if asked >= max_blocks and not twin:
        message = saying.let_go(left, asked)
        return StopAnswer("released", "cap", asked, left, message=message, detail=detail)
    blocks = asked if twin else asked + 1
    text = saying.go_on(facts.agent, left)
    return StopAnswer("blocked", reason, blocks, left, text=text, detail=detail, twin=twin)


def _reason(facts: Facts, max_blocks: int) -> StopReason:
    if max_blocks == 0:
        return "off"
    if facts.failure is not None:
        return facts.failure
    if facts.waits:
        return "waiting"
    if facts.members:
        return "team"
    if facts.files is None:
        return "no_baseline"
    return "uncommitted" if facts.files else "clean"


def _asked_so_far(facts: Facts, before: HookSession | None) -> int:
    """How often for this prompt."""
    return before.blocks if before is not None and not _is_new_prompt(facts, before) else 0


def _is_new_prompt(facts: Facts, before: HookSession) -> bool:
    """Whether that is proven: by another id, or where there are none by the host's word that nobody held it back."""
    if facts.again or (facts.prompt is None) != (before.prompt is None):
        return False
    return facts.again is False if facts.prompt is None else facts.prompt != before.prompt


def _is_twin(facts: Facts, before: HookSession | None, now: datetime) -> bool:
    """Whether the same stop was blocked already, for another hook."""
    if before is None or before.decision != "blocked" or before.decided_at is None:
        return False
    if _was_heard_before(facts, before):
        return True
    # A stop that follows a block says so, and the twin of the first one does not.
    if facts.agent not in _TELL_AGAIN:
        return False
    same = facts.prompt is not None and facts.prompt == before.prompt
    return same and facts.again is False and timedelta(0) <= now - before.decided_at < _TWICE


def _was_heard_before(facts: Facts, before: HookSession) -> bool:
    """Whether the hook was called before that was decided: then the decision cannot be what the stop followed."""
    heard, decided = facts.heard, before.decided_boot
    if heard is None or decided is None or facts.session is None:
        return False
    return heard.id == decided.id and heard.seconds < decided.seconds
