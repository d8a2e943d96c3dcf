"""The view of a work tree's breaker: its state, its counts and its history.

What an iteration does to the counts stands here once, in `tally`: the fold applies it, and the policy looks ahead with it.
"""

from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, TypedDict, assert_never, get_args

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Instant, Line
from guard.core.base.first_use import dataclass
from guard.core.base.moment import Moment, Reading, Stamp
from guard.core.breaker.events import (
    BreakerClosed,
    BreakerEvent,
    BreakerOpened,
    BreakerRecorded,
    CooldownRestarted,
    TrialClaimed,
    TrialReturned,
)
from guard.core.breaker.settings import BreakerSettings
from guard.core.iteration.facts import Process, Seconds, Status
from guard.core.log.events import IterationNumber
from guard.core.log.view import Fold, WorktreeView, worktree_view

BreakerState = Literal["closed", "open", "half_open"]
MOST_HISTORY = 50


class Trial(Frozen):
    """The claim on the one iteration that a half-open breaker allows."""

    holder: Process | None
    """The process that may run it; None if its start time could not be read, then only the lease ends the claim."""
    claimed: Reading
    lease_seconds: Seconds
    reason: Line


class Happening(Frozen):
    """One line of the history."""

    at: Instant
    what: Literal[
        "recorded", "opened", "cooldown_restarted", "trial_claimed", "trial_returned", "closed"
    ]
    status: Status | None
    reason: Line
    run: Id | None
    iteration: IterationNumber | None


class BreakerCounts(NamedTuple):
    """What speaks against going on, since the last iteration that brought work."""

    streak: int = 0
    nothing_to_do_streak: int = 0
    rescue_streak: int = 0
    denied_streak: int = 0
    fingerprint: str = ""
    fingerprint_count: int = 0
    refuted_streak: int = 0

    def times(self, fingerprint: str) -> int:
        return self.fingerprint_count if fingerprint == self.fingerprint else 0


class Breaker(WorktreeView):
    """The breaker of one work tree."""

    schema_: Literal["guard/breaker/3"] = Field("guard/breaker/3", alias="schema")
    state: BreakerState
    streak: Count
    """Iterations without work in a row: what opens the breaker at `stall_limit`."""
    nothing_to_do_streak: Count
    rescue_streak: Count
    denied_streak: Count
    refuted_streak: Count = 0
    """Iterations in a row whose work the project's own checks refuted."""
    fingerprint: Line
    """The last error, and how often it came without work between."""
    fingerprint_count: Count
    reason: Line | None
    """Why it is not closed."""
    opened_at: Instant | None
    retry_at: Instant | None
    """When the cooldown is over, by the wall clock of the opening: for people. The boot clock decides."""
    cooldown_seconds: Seconds
    cooling_since: Reading | None
    openings: Count
    """How often it has opened since it was last closed."""
    head: Line | None
    """The last commit that the iterations are known to have left; any other comes from outside."""
    trial: Trial | None
    history: tuple[Happening, ...]

    @property
    def counts(self) -> BreakerCounts:
        return BreakerCounts(*(getattr(self, name) for name in BreakerCounts._fields))


def has_brought_work(event: BreakerRecorded) -> bool:
    """Tell whether the iteration ended with commits, its own or rescued ones."""
    return event.status == "complete" and event.reason != "nothing_to_do"


def tally(before: BreakerCounts, event: BreakerRecorded) -> BreakerCounts:
    """Return the counts after an iteration. Only work sets them back; what is no stall of the agent leaves the streak as it is.

    The final rescue of a `timeout` or an `error` may have made commits: then work was done, and the streak ends, too. With all
    of it on a rescue branch (reason `rescued`) the streak stays as it is.
    """
    judged = event.status in ("complete", "timeout")
    is_on_branch = event.status == "timeout" and event.reason == "rescued"
    had_to = event.rescued or is_on_branch
    rescues = before.rescue_streak + 1 if had_to else 0 if judged else before.rescue_streak
    if has_brought_work(event):
        return BreakerCounts(rescue_streak=rescues if event.rescued else 0)
    streak, nothing = before.streak, before.nothing_to_do_streak
    if event.rescued:
        streak, nothing = 0, 0
    elif event.status == "timeout" and not is_on_branch:
        streak, nothing = streak + 1, 0
    elif event.status == "complete":
        streak, nothing = streak + (nothing > 0), nothing + 1
    error, times = before.fingerprint, before.fingerprint_count
    if _names_an_error(event):
        error, times = event.fingerprint, before.times(event.fingerprint) + 1
    denied = before.denied_streak + event.denied
    refuted = before.refuted_streak + (event.status == "refuted")
    return BreakerCounts(streak, nothing, rescues, denied, error, times, refuted)


def _names_an_error(event: BreakerRecorded) -> bool:
    # The reason of a stall is no error, and neither is a limit.
    if event.status == "timeout":
        return event.fingerprint not in ("", event.reason)
    return event.status == "error" and event.fingerprint != ""


def add_seconds(at: datetime, seconds: float) -> datetime:
    # As late as a date can be, if the sum is too large for one.
    try:
        return at + timedelta(seconds=seconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def clock_reading(event: BreakerOpened | CooldownRestarted | TrialClaimed) -> Reading:
    return Reading(at=event.at, boot_seconds=event.boot_seconds, boot_id=event.boot_id)


class BreakerFold(Fold[Breaker]):
    document_class = Breaker

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._fields: dict[str, Any] = {**_CLOSED}
        self._counts = BreakerCounts()
        self._history: deque[Happening] = deque(maxlen=MOST_HISTORY)

    def restore(self, document: Breaker) -> None:
        self.reached = document.position()
        self._fields = {name: getattr(document, name) for name in _CLOSED}
        self._counts = document.counts
        self._history.extend(document.history)

    def apply(self, event: BreakerEvent) -> None:
        state = self._fields
        match event:
            case BreakerRecorded():
                self._counts = tally(self._counts, event)
                state["head"] = event.head or state["head"]
            case BreakerOpened():
                self._open(event)
            case CooldownRestarted():
                self._cool(event)
            case TrialClaimed():
                state.update(state="half_open", trial=_trial(event))
            case TrialReturned():
                state.update(trial=None)
            case BreakerClosed():
                self._fields, self._counts = {**_CLOSED}, BreakerCounts()
            case _:
                assert_never(event)
        self._history.append(_history_line(event))

    def _open(self, event: BreakerOpened) -> None:
        state = self._fields
        state.update(state="open", reason=event.reason, opened_at=event.at, trial=None)
        state.update(cooldown_seconds=event.cooldown_seconds, openings=state["openings"] + 1)
        state["head"] = event.head or state["head"]
        self._cool(event)

    def _cool(self, event: BreakerOpened | CooldownRestarted) -> None:
        until = add_seconds(event.at, self._fields["cooldown_seconds"])
        self._fields.update(cooling_since=clock_reading(event), retry_at=until)

    def contents(self) -> dict[str, Any]:
        own = {**self._fields, **self._counts._asdict()}
        return {"worktree": self.key, **own, "history": tuple(self._history)}


def _trial(event: TrialClaimed) -> Trial:
    return Trial(
        holder=event.holder,
        claimed=clock_reading(event),
        lease_seconds=event.lease_seconds,
        reason=event.reason,
    )


def _history_line(event: BreakerEvent) -> Happening:
    what: Any = event.type.removeprefix("breaker_")
    return Happening(
        at=event.at,
        what=what,
        status=event.status if isinstance(event, BreakerRecorded) else None,
        reason="" if isinstance(event, CooldownRestarted) else event.reason,
        run=event.run,
        iteration=event.iteration,
    )


_CLOSED: dict[str, Any] = {
    "state": "closed",
    "reason": None,
    "opened_at": None,
    "retry_at": None,
    "cooldown_seconds": 0.0,
    "cooling_since": None,
    "openings": 0,
    "head": None,
    "trial": None,
}

BREAKER = worktree_view(
    Breaker, BreakerFold, get_args(BreakerEvent), "breaker", b'"type":"breaker_'
)


class EventFields(TypedDict):
    at: datetime
    id: str
    run: str | None
    iteration: int | None
    worktree: str


class TimedEventFields(EventFields):
    boot_seconds: float
    boot_id: str | None


@dataclass(frozen=True)
class BreakerCase:
    """A breaker and its limits, with the moment of a decision about it and the stamp of the events that follow."""

    state: Breaker
    settings: BreakerSettings
    moment: Moment
    stamp: Stamp

    def event_fields(self) -> EventFields:
        """Return the fields that every event of the breaker has."""
        return {
            "at": self.moment.now,
            "id": self.stamp.id,
            "run": self.stamp.run,
            "iteration": self.stamp.iteration,
            "worktree": self.state.worktree,
        }

    def timed_event_fields(self) -> TimedEventFields:
        """Return the fields of an event that begins something with an end by the boot clock."""
        seconds, boot = self.moment.boot_seconds, self.moment.boot_id
        return {**self.event_fields(), "boot_seconds": seconds, "boot_id": boot}
