"""Decide whether a session may stop.

A limit or an error always lets it stop, then work that its agent CLI waits for by itself, then that nothing is left to do. A
session is asked to go on only so often for one prompt, by a count of guard's own. The flag of an agent CLI that a hook has
held the session back before does not serve for that: some never clear it, and others never set it.
"""

import re
from dataclasses import dataclass
from typing import Literal

from guard.core.base.moment import Moment
from guard.core.classify.errors import error_meaning
from guard.core.classify.plain import is_known_failure
from guard.core.hooks.events import StopDecision, StopReason
from guard.core.hooks.messages import OpenWork, Refutation, go_on_text, let_go_text, summary
from guard.core.hooks.payload import HookCall
from guard.core.hooks.state import HookSession
from guard.core.team.state import Member

CANNOT_HOLD = ("opencode",)
"""Agents whose CLI cannot be kept from stopping."""
_HELD: tuple[StopReason, ...] = ("waiting", "team")
_BLOCKING: tuple[StopReason, ...] = ("team", "uncommitted", "refuted")
_SET_BACK_SECONDS = 1.0
"""By less than this the two clocks differ although neither was set."""

Failure = Literal["limited", "auth", "failed"]
_CLI_ERROR = re.compile(
    r"\[?API Error:?\s*(?:\(?[45]\d\d\b|\{|Connection (?:error|closed|refused|reset)\b|Request timed out|Overloaded\b)"
)
_ORDERLY_ENDS = ("", "end_turn", "stop", "complete", "completed")
"""How Copilot CLI names an end without a failure; other agent CLIs do not say."""
_FAILURES: dict[str, Failure] = {
    "limited": "limited",
    "transient": "limited",
    "budget": "limited",
    "turn_limit": "limited",
    "auth": "auth",
}


@dataclass(frozen=True, slots=True)
class StopFacts:
    """The facts about a session that wants to stop."""

    call: HookCall
    failure: Failure | None = None
    waits: tuple[str, ...] = ()
    """What the agent CLI waits for by itself."""
    members: tuple[Member, ...] = ()
    """The helpers that count, and that the agent CLI does not wait for."""
    files: tuple[str, ...] | None = ()
    """The files that the session left uncommitted; None if no baseline can tell."""
    refutation: Refutation | None = None
    """What refutes the commit that the session made last, if nothing else is left."""
    for_secrets: tuple[str, ...] = ()
    """Files besides whose names are made for secrets: they are to stay uncommitted."""


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """The answer to a session that wants to stop, and its reason."""

    decision: StopDecision
    reason: StopReason
    blocks: int
    left: OpenWork
    text: str = ""
    """For the agent, if it is asked to go on."""
    message: str = ""
    """For the user, if the session stops though something is left."""
    detail: str = ""
    is_twin: bool = False
    """Whether this very stop was decided already, for another hook."""

    @property
    def is_held(self) -> bool:
        """Tell whether the session is held back for its team."""
        return self.reason in _HELD


def decide(facts: StopFacts, before: HookSession | None, max_blocks: int) -> StopAnswer:
    """Decide whether the session may stop; `before` is what the hooks know of it."""
    reason = _reason(facts, max_blocks)
    refutation = facts.refutation if reason == "refuted" else None
    left = OpenWork(facts.members, facts.files or (), facts.for_secrets, refutation)
    blocks = before.blocks if before is not None and not _is_new_prompt(facts.call, before) else 0
    detail = "; ".join(facts.waits) if reason == "waiting" else summary(left)
    if reason not in _BLOCKING or facts.call.agent in CANNOT_HOLD:
        return StopAnswer("released", reason, blocks, left, detail=detail)
    is_twin = _is_twin(facts.call, before)
    if blocks >= max_blocks and not is_twin:
        message = let_go_text(left, blocks)
        return StopAnswer("released", "cap", blocks, left, message=message, detail=detail)
    blocks = blocks if is_twin else blocks + 1
    text = go_on_text(facts.call.agent, left)
    return StopAnswer("blocked", reason, blocks, left, text=text, detail=detail, is_twin=is_twin)


def turn_failure(call: HookCall) -> Failure | None:
    """Return why the agent CLI could not go on (a limit, no login, an error); None if it could.

    Only the CLI's own words count: a sentence that it is known to print, or its error line. An agent that speaks of limits has
    not hit one.
    """
    if call.agent == "copilot" and call.detail not in _ORDERLY_ENDS:
        return _failure_in("", call.detail)
    line = call.message.strip().partition("\n")[0]
    if is_known_failure(line) or _CLI_ERROR.match(line):
        return _failure_in(line)
    return None


def host_waits_for(call: HookCall, members: tuple[Member, ...]) -> tuple[str, ...]:
    """Name what the agent CLI waits for by itself: all that runs in its list, except idle teammates."""
    idle = [member.member for member in members if member.status == "idle"]
    # A teammate that is idle stays listed as running, perhaps by another name than its hooks gave it.
    nameless = _teammates_by_other_names(call, members)
    unmatched = len([name for name in idle if name not in _listed_ids(call)])
    at_rest = {*idle, *nameless[:unmatched]}
    running = [
        f"{task.kind.replace('_', ' ')} {task.id}"
        for task in call.tasks or ()
        if task.running and not (task.kind == "teammate" and task.id in at_rest)
    ]
    unclear = ["something that guard does not know"] if call.tasks_unclear else []
    return (*running, *unclear, *(f"wake-up {wakeup.id}" for wakeup in call.wakeups or ()))


def unlisted_members(call: HookCall, members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Return the members that count and that the agent CLI does not list: it will not wait for them."""
    listed = _listed_ids(call)
    skipped = ("teammate",) if _teammates_by_other_names(call, members) else ()
    return tuple(
        member
        for member in members
        if member.counts and member.member not in listed and member.kind not in skipped
    )


def is_clock_set_back(known: HookSession, moment: Moment) -> bool:
    """Tell whether the wall clock was set back since the session began or was resumed: then file times say nothing."""
    if known.started_at is None:
        return False
    passed = (moment.now - known.started_at).total_seconds()
    boot = known.started_boot
    if boot is None or boot.id != moment.boot_id:
        return passed < 0
    return passed < moment.boot_seconds - boot.seconds - _SET_BACK_SECONDS


def _failure_in(text: str, *codes: str) -> Failure:
    found = error_meaning(text, None, *codes)
    return _FAILURES.get(found.outcome, "failed") if found is not None else "failed"


def _listed_ids(call: HookCall) -> set[str]:
    return {task.id for task in call.tasks or ()} | {wakeup.id for wakeup in call.wakeups or ()}


def _teammates_by_other_names(call: HookCall, members: tuple[Member, ...]) -> list[str]:
    # Their hooks named them otherwise than the list does.
    names = {member.member for member in members}
    teammates = (task for task in call.tasks or () if task.kind == "teammate" and task.running)
    return [task.id for task in teammates if task.id not in names]


def _reason(facts: StopFacts, max_blocks: int) -> StopReason:
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
    if facts.files:
        return "uncommitted"
    return "refuted" if facts.refutation is not None else "clean"


def _is_new_prompt(call: HookCall, before: HookSession) -> bool:
    # Only another id proves it here; a prompt without an id has set the count back when its hook was recorded.
    if call.prompt is None or before.prompt is None or call.prompt == before.prompt:
        return False
    # Perhaps the agent CLI gives a session that goes on after a block another id.
    return not (call.again and before.decision == "blocked")


def _is_twin(call: HookCall, before: HookSession | None) -> bool:
    # A hook that was called before a block was decided cannot follow that block: it is another hook for the same stop.
    if before is None or before.decision != "blocked" or call.session is None:
        return False
    decided = before.decided_boot
    return (
        decided is not None and call.boot_id == decided.id and call.boot_seconds < decided.seconds
    )
