"""The breaker: what each outcome counts for, when it opens, whom it lets through, and what the clocks may do to it."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.base.moment import Moment, Stamp
from guard.core.breaker.allow import (
    BreakerPermission,
    claim,
    is_clock_set_back,
    permission,
    restart,
)
from guard.core.breaker.events import BreakerEvent, BreakerRecorded
from guard.core.breaker.record import after_iteration, reset, trip
from guard.core.breaker.settings import BreakerSettings
from guard.core.breaker.state import Breaker, BreakerCase, BreakerFold
from guard.core.iteration.facts import Process, Status
from guard.core.log.record import Position
from guard.core.log.view import seal, unseal

NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
HOLDER = Process(pid=4242, start="77@boot")
STAMP = Stamp("e1", "r1", 1)


def moment(minutes: float = 0, *, wall: float | None = None, boot: str | None = "boot-1") -> Moment:
    """So many minutes after noon, by the boot clock and by the wall clock, or by each differently."""
    now = NOON + timedelta(minutes=minutes if wall is None else wall)
    return Moment(now, 1000 + 60 * minutes, boot)


@dataclass
class Told:
    """A breaker and everything that happened to it."""

    policy: BreakerSettings = field(default_factory=BreakerSettings)
    events: list[BreakerEvent] = field(default_factory=list)
    fold: BreakerFold = field(default_factory=lambda: BreakerFold("w1"))

    @property
    def state(self) -> Breaker:
        return self.fold.document()

    def take(self, *events: BreakerEvent) -> None:
        for event in events:
            self.events.append(event)
            self.fold.apply(event)
            seq = len(self.events)
            self.fold.reached = Position(1, seq * 100, seq, f"{seq:064x}")

    def record(self, *words: str, at: Moment | None = None, head: str | None = "aaa") -> None:
        """Iterations told in short: `timeout`, `complete:commits`, `error#E1`, `blocked:denied`."""
        for word in words:
            self.take(*self._after(word, at or moment(), head))

    def _after(self, word: str, at: Moment, head: str | None) -> tuple[BreakerEvent, ...]:
        told, _, fingerprint = word.partition("#")
        status, _, reason = told.partition(":")
        rescued = reason == "rescued"
        case = self.case(at)
        recorded = BreakerRecorded(
            **case.event_fields(),
            status=next(one for one in STATUSES if one == status),
            reason=reason,
            fingerprint=fingerprint,
            denied=reason == "denied",
            rescued=rescued,
            head=head,
        )
        return after_iteration(case, recorded)

    def case(self, at: Moment) -> BreakerCase:
        return BreakerCase(self.state, self.policy, at, STAMP)

    def ask(
        self, at: Moment, head: str | None = "aaa", holder_alive: bool = True
    ) -> BreakerPermission:
        return permission(self.state, self.policy, at, head=head, holder_alive=holder_alive)

    def claim(self, at: Moment, holder: Process | None = HOLDER) -> None:
        self.take(claim(self.case(at), self.ask(at).reason, holder))


STATUSES: tuple[Status, ...] = (
    "complete",
    "waiting",
    "working",
    "timeout",
    "error",
    "limited",
    "blocked",
    "interrupted",
)
NEUTRAL = ("waiting", "working", "limited", "blocked:question", "interrupted", "error")


def told(*words: str, **limits: Any) -> Told:
    story = Told(BreakerSettings(**limits))
    story.record(*words)
    return story


def opened(*words: str, **limits: Any) -> Told:
    """A breaker that three stalls have opened at noon."""
    return told("timeout", "timeout", "timeout", *words, **limits)


def in_trial(**limits: Any) -> Told:
    """The same, half an hour later, with its trial claimed."""
    story = opened(**limits)
    story.claim(moment(30))
    return story


STREAKS: dict[str, tuple[str, int]] = {
    "nothing yet": ("", 0),
    "a stall": ("timeout", 1),
    "two stalls": ("timeout timeout", 2),
    "three stalls": ("timeout timeout timeout", 3),
    "work sets it back": ("timeout timeout complete:commits", 0),
    "rescued work sets it back": ("timeout timeout complete:rescued", 0),
    "a stall whose work was rescued is none": ("timeout timeout timeout:rescued", 0),
    "an error after which work was rescued sets it back": ("timeout timeout error:rescued", 0),
    "work without a reason sets it back": ("timeout complete", 0),
    "nothing to do leaves it the first time": ("timeout complete:nothing_to_do", 1),
    "nothing to do raises it the second time": (
        "timeout complete:nothing_to_do complete:nothing_to_do",
        2,
    ),
    "nothing to do raises it each time after": (" ".join(["complete:nothing_to_do"] * 3), 2),
    "nothing to do, over a limit, is in a row": (
        "complete:nothing_to_do limited complete:nothing_to_do",
        1,
    ),
    "a stall breaks the row of nothing to do": (
        "complete:nothing_to_do timeout complete:nothing_to_do",
        1,
    ),
    "work breaks the row of nothing to do": (
        "complete:nothing_to_do complete:commits complete:nothing_to_do",
        0,
    ),
    **{f"{word} leaves it": (f"timeout {word} {word} {word} {word}", 1) for word in NEUTRAL},
}


@pytest.mark.parametrize(("words", "streak"), STREAKS.values(), ids=STREAKS)
def test_the_streak_after(words: str, streak: int) -> None:
    assert told(*words.split()).state.streak == streak


OPENINGS: dict[str, tuple[str, str | None]] = {
    "two stalls": ("timeout timeout", None),
    "three stalls": ("timeout timeout timeout", "no_commits"),
    "three stalls with other ends between": (
        "timeout limited timeout waiting error timeout",
        "no_commits",
    ),
    "work between the stalls": ("timeout timeout complete:commits timeout timeout", None),
    "nothing to do four times": (" ".join(["complete:nothing_to_do"] * 4), "no_commits"),
    "nothing to do three times": (" ".join(["complete:nothing_to_do"] * 3), None),
    "the same error four times": (" ".join(["error#E1"] * 4), None),
    "the same error five times": (" ".join(["error#E1"] * 5), "same_error"),
    "the same error, limits between": (" limited ".join(["error#E1"] * 5), "same_error"),
    "another error begins anew": ("error#E1 " * 4 + "error#E2 " + "error#E1 " * 4, None),
    "work between the errors": ("error#E1 " * 4 + "complete:commits " + "error#E1", None),
    "errors without a name": ("error " * 20, None),
    "a limit with the name of an error": ("limited#E1 " * 9, None),
    "denied once": ("blocked:denied", None),
    "denied twice": ("blocked:denied blocked:denied", "denied"),
    "denied twice with a stall between": ("blocked:denied timeout blocked:denied", "denied"),
    "denied, then work, then denied": ("blocked:denied complete:commits blocked:denied", None),
    "denied and work at once": ("complete:denied complete:denied complete:denied", None),
    "a question twice": ("blocked:question blocked:question", None),
    "rescued four times": ("complete:rescued " * 4, None),
    "rescued five times": ("complete:rescued " * 5, "always_rescued"),
    "stalls whose work was rescued, four times": ("timeout:rescued " * 4, None),
    "stalls whose work was rescued, five times": ("timeout:rescued " * 5, "always_rescued"),
    "rescued, with nothing to do between": (
        "complete:rescued " * 4 + "complete:nothing_to_do complete:rescued",
        None,
    ),
    "own commits between the rescues": (
        "complete:rescued " * 4 + "complete:commits complete:rescued",
        None,
    ),
    **{f"{word} twenty times": (f"{word} " * 20, None) for word in NEUTRAL},
}


@pytest.mark.parametrize(("words", "reason"), OPENINGS.values(), ids=OPENINGS)
def test_it_opens_after(words: str, reason: str | None) -> None:
    state = told(*words.split()).state
    assert (state.state, state.reason) == ("open" if reason else "closed", reason)


LIMITS: dict[str, tuple[dict[str, int], str, str | None]] = {
    "stall_limit": ({"stall_limit": 1}, "timeout", "no_commits"),
    "stall_limit off": ({"stall_limit": 0}, "timeout " * 50, None),
    "same_error_limit": ({"same_error_limit": 2}, "error#E error#E", "same_error"),
    "same_error_limit counts crashes that end as stalls": (
        {"stall_limit": 0},
        "timeout:crash#E1 error#E1 " * 2 + "timeout:crash#E1",
        "same_error",
    ),
    "same_error_limit does not count stalls by their reason": (
        {"stall_limit": 0},
        "timeout:no_commits#no_commits " * 50,
        None,
    ),
    "same_error_limit off": ({"same_error_limit": 0}, "error#E " * 50, None),
    "denied_limit": ({"denied_limit": 1}, "blocked:denied", "denied"),
    "denied_limit off": ({"denied_limit": 0}, "blocked:denied " * 50, None),
    "rescue_limit": ({"rescue_limit": 1}, "complete:rescued", "always_rescued"),
    "rescue_limit off": ({"rescue_limit": 0}, "complete:rescued " * 50, None),
}


@pytest.mark.parametrize(("limits", "words", "reason"), LIMITS.values(), ids=LIMITS)
def test_each_limit_is_a_knob(limits: dict[str, int], words: str, reason: str | None) -> None:
    assert told(*words.split(), **limits).state.reason == reason


@pytest.mark.parametrize("word", NEUTRAL)
def test_a_limit_that_was_lowered_opens_at_the_next_stall_and_not_before(word: str) -> None:
    story = told("timeout", "timeout")
    story.policy = BreakerSettings(stall_limit=1)
    story.record(word)
    assert story.state.state == "closed"
    story.record("timeout")
    assert story.state.reason == "no_commits"


def test_what_is_recorded_while_it_is_open_does_not_move_it() -> None:
    story = opened()
    before = story.state
    story.record("complete:commits", "timeout", "timeout", "timeout", at=moment(10), head="bbb")
    after = story.state
    assert (after.state, after.opened_at, after.openings) == ("open", before.opened_at, 1)
    assert (after.streak, after.head) == (3, "bbb")


PERMISSIONS: dict[str, tuple[Moment, str | None, bool, str]] = {
    "at once": (moment(0), "aaa", False, "cooling_down"),
    "just before its end": (moment(29.9), "aaa", False, "cooling_down"),
    "at its end": (moment(30), "aaa", True, "cooldown_over"),
    "long after": (moment(100_000), "aaa", True, "cooldown_over"),
    "after a commit from outside": (moment(1), "bbb", True, "commit_outside"),
    "when nobody could look at the commits": (moment(1), None, False, "cooling_down"),
    "the wall clock jumped to 2099": (moment(1, wall=38_000_000), "aaa", False, "cooling_down"),
    "the wall clock jumped back": (moment(1, wall=-38_000_000), "aaa", False, "cooling_down"),
    "the wall clock jumped back, and the time is over": (
        moment(30, wall=-38_000_000),
        "aaa",
        True,
        "cooldown_over",
    ),
    "another boot, too early": (moment(0, wall=29, boot="boot-2"), "aaa", False, "cooling_down"),
    "another boot, late enough": (moment(0, wall=30, boot="boot-2"), "aaa", True, "cooldown_over"),
    "another boot, and the clock was set back": (
        moment(9999, wall=-60, boot="boot-2"),
        "aaa",
        False,
        "cooling_down",
    ),
    "a boot without a name, late enough": (
        moment(0, wall=30, boot=None),
        "aaa",
        True,
        "cooldown_over",
    ),
    "a boot clock that went back": (moment(-5), "aaa", False, "cooling_down"),
}


@pytest.mark.parametrize(("at", "head", "allowed", "reason"), PERMISSIONS.values(), ids=PERMISSIONS)
def test_an_open_breaker_asked(at: Moment, head: str | None, allowed: bool, reason: str) -> None:
    answer = opened().ask(at, head)
    assert (answer.allowed, answer.trial, answer.reason) == (allowed, allowed, reason)
    if not allowed:
        assert answer.retry_at
        assert timedelta(0) < answer.retry_at - at.now <= timedelta(minutes=30)


def test_a_closed_breaker_lets_through_and_needs_no_trial() -> None:
    assert told("timeout", "timeout").ask(moment()) == BreakerPermission(True, False, "closed")


def test_without_a_commit_known_at_the_opening_none_comes_from_outside() -> None:
    story = Told()
    story.record("timeout", "timeout", "timeout", head=None)
    assert story.ask(moment(1), "bbb").reason == "cooling_down"


def test_a_clock_that_was_set_back_holds_it_for_one_more_cooldown_and_not_for_years() -> None:
    story = Told()
    story.record("timeout", "timeout", "timeout", at=moment(0, wall=38_000_000, boot=None))
    now = moment(0, boot=None)
    assert story.ask(now).reason == "cooling_down"
    assert is_clock_set_back(story.state, now)
    before = story.state
    story.take(restart(story.case(now)))
    assert not is_clock_set_back(story.state, now)
    assert (story.state.opened_at, story.state.openings) == (before.opened_at, 1)
    assert story.ask(moment(29, boot=None)).reason == "cooling_down"
    assert story.ask(moment(30, boot=None)).reason == "cooldown_over"


@pytest.mark.parametrize(
    ("story", "at"),
    [
        (opened(), moment(1)),
        (opened(), moment(1, wall=-60)),
        (told("timeout"), moment(-10, boot=None)),
        (in_trial(), moment(-10, boot=None)),
    ],
    ids=["time goes on", "the boot clock knows better", "closed", "half open"],
)
def test_a_cooldown_that_runs_is_not_restarted(story: Told, at: Moment) -> None:
    assert not is_clock_set_back(story.state, at)


TRIALS: dict[str, tuple[Moment, bool, Process | None, str]] = {
    "the holder lives": (moment(40), True, HOLDER, "trial_taken"),
    "the holder died": (moment(40), False, HOLDER, "holder_gone"),
    "the lease is over": (moment(30 + 240), True, HOLDER, "lease_over"),
    "just before the end of the lease": (moment(30 + 239.9), True, HOLDER, "trial_taken"),
    "nobody knows the holder": (moment(40), False, None, "trial_taken"),
    "nobody knows the holder, and the lease is over": (moment(270), False, None, "lease_over"),
    "the wall clock jumped to 2099": (moment(40, wall=38_000_000), True, HOLDER, "trial_taken"),
    "the clock was set back under a living holder": (
        moment(0, wall=-60, boot=None),
        True,
        HOLDER,
        "trial_taken",
    ),
    "the clock was set back under nobody": (
        moment(0, wall=-60, boot=None),
        False,
        None,
        "lease_over",
    ),
}


@pytest.mark.parametrize(("at", "living", "holder", "reason"), TRIALS.values(), ids=TRIALS)
def test_a_half_open_breaker_asked(
    at: Moment, living: bool, holder: Process | None, reason: str
) -> None:
    story = opened()
    story.claim(moment(30), holder)
    assert (story.state.state, story.state.trial and story.state.trial.holder) == (
        "half_open",
        holder,
    )
    answer = story.ask(at, "bbb", living)
    taken = reason == "trial_taken"
    assert (answer.allowed, answer.trial, answer.reason) == (not taken, not taken, reason)
    assert (answer.retry_at is not None) == taken


OUTCOMES: dict[str, tuple[str, str, float]] = {
    "work": ("complete:commits", "closed", 0),
    "rescued work": ("complete:rescued", "closed", 0),
    "a stall": ("timeout", "open", 3600),
    "a stall whose work was rescued": ("timeout:rescued", "half_open", 1800),
    "nothing to do": ("complete:nothing_to_do", "half_open", 1800),
    "nothing to do again": ("complete:nothing_to_do complete:nothing_to_do", "open", 3600),
    "an error": ("error#E1", "half_open", 1800),
    "the fifth same error": ("error#E1 " * 5, "open", 3600),
    "denied": ("blocked:denied", "half_open", 1800),
    "denied again": ("blocked:denied blocked:denied", "open", 3600),
    **{word: (word, "half_open", 1800) for word in NEUTRAL},
    "limits, then work": ("limited limited complete:commits", "closed", 0),
}


@pytest.mark.parametrize(("words", "state", "cooldown"), OUTCOMES.values(), ids=OUTCOMES)
def test_a_trial_that_ends_with(words: str, state: str, cooldown: float) -> None:
    story = in_trial()
    for word in words.split():
        assert story.state.state == "half_open"
        story.record(word, at=moment(40))
    after = story.state
    assert (after.state, after.cooldown_seconds, after.trial) == (state, cooldown, None)
    if state == "half_open":
        assert story.ask(moment(40)) == BreakerPermission(True, True, "trial_returned")


AGAIN: dict[str, tuple[str, str, str]] = {
    "the same error": ("error#E1 " * 5, "error#E1", "open"),
    "another error": ("error#E1 " * 5, "error#E2", "half_open"),
    "denied again": ("blocked:denied " * 2, "blocked:denied", "open"),
    "rescued again": ("complete:rescued " * 5, "complete:rescued", "open"),
    "its own commits": ("complete:rescued " * 5, "complete:commits", "closed"),
}


@pytest.mark.parametrize(("words", "trial", "state"), AGAIN.values(), ids=AGAIN)
def test_a_trial_fails_when_it_shows_what_the_breaker_opened_for(
    words: str, trial: str, state: str
) -> None:
    story = told(*words.split())
    reason = story.state.reason
    story.claim(moment(30))
    story.record(trial, at=moment(40))
    assert story.state.state == state
    assert story.state.reason == (None if state == "closed" else reason)


@pytest.mark.parametrize(
    ("word", "state"), [("timeout", "open"), ("error#E1", "half_open"), ("complete", "closed")]
)
def test_the_trial_of_a_breaker_that_was_tripped_by_hand(word: str, state: str) -> None:
    story = Told()
    story.take(trip(story.case(moment()), "lunch"))
    story.claim(moment(30))
    story.record(word, at=moment(40))
    assert story.state.state == state


def test_the_cooldown_doubles_up_to_its_maximum_and_begins_anew_after_work() -> None:
    story, at, cooldowns = opened(), 0.0, []
    for _ in range(5):
        cooldowns.append(story.state.cooldown_seconds)
        at += story.state.cooldown_seconds / 60
        assert story.ask(moment(at - 0.1)).allowed is False
        story.claim(moment(at))
        story.record("timeout", at=moment(at))
    assert cooldowns == [1800, 3600, 7200, 14400, 14400]
    assert story.state.openings == 6
    story.claim(moment(at + 240))
    story.record("complete:commits", at=moment(at + 240))
    story.record("timeout", "timeout", "timeout", at=moment(at + 240))
    assert (story.state.cooldown_seconds, story.state.openings) == (1800, 1)


@pytest.mark.parametrize(
    ("limits", "first", "second"),
    [
        ({"cooldown_seconds": 60}, 60, 120),
        ({"cooldown_max_seconds": 2000}, 1800, 2000),
        ({"cooldown_max_seconds": 600}, 600, 600),
        ({"cooldown_seconds": 0}, 0, 0),
    ],
    ids=["shorter", "a lower maximum", "a maximum below the first", "none"],
)
def test_cooldowns_are_knobs(limits: dict[str, float], first: float, second: float) -> None:
    story = opened(**limits)
    assert story.state.cooldown_seconds == first
    story.claim(moment(first / 60))
    story.record("timeout", at=moment(first / 60))
    assert story.state.cooldown_seconds == second


def test_a_lower_maximum_also_ends_a_cooldown_that_runs() -> None:
    story = opened()
    story.policy = BreakerSettings(cooldown_max_seconds=60)
    assert story.ask(moment(1)).reason == "cooldown_over"


def test_the_lease_is_a_knob() -> None:
    story = in_trial(trial_lease_seconds=60)
    assert story.ask(moment(30.9)).reason == "trial_taken"
    assert story.ask(moment(31)).reason == "lease_over"


def test_tripped_by_hand_and_reset_by_hand() -> None:
    story = told("timeout", "error#E1", "complete:nothing_to_do")
    story.take(trip(story.case(moment()), "lunch"))
    assert (story.state.state, story.state.reason, story.state.streak) == ("open", "lunch", 1)
    assert story.state.retry_at == NOON + timedelta(minutes=30)
    story.take(reset(story.case(moment(1)), "back"))
    state = story.state
    assert (state.state, state.reason, state.opened_at, state.retry_at) == (
        "closed",
        None,
        None,
        None,
    )
    assert set(state.counts) == {0, ""}
    assert [(one.what, one.reason) for one in state.history[-2:]] == [
        ("opened", "lunch"),
        ("closed", "back"),
    ]


def test_tripping_an_open_breaker_begins_the_same_cooldown_again() -> None:
    story = in_trial()
    story.record("timeout", at=moment(40))
    story.take(trip(story.case(moment(50)), "stop"))
    assert (story.state.cooldown_seconds, story.state.reason) == (3600, "stop")
    assert story.ask(moment(109)).reason == "cooling_down"
    assert story.ask(moment(110)).reason == "cooldown_over"


def test_the_newest_fifty_happenings_are_kept() -> None:
    story = told(*["limited"] * 60, *["timeout"] * 3)
    history = story.state.history
    assert len(history) == 50
    assert [(one.what, one.status, one.reason) for one in history[-2:]] == [
        ("recorded", "timeout", ""),
        ("opened", None, "no_commits"),
    ]
    assert (history[-1].run, history[-1].iteration, history[-1].at) == ("r1", 1, NOON)


def test_events_of_one_decision_have_ids_of_their_own() -> None:
    assert [event.id for event in opened().events[-2:]] == ["e1", "e1-2"]


def test_the_last_moment_of_all_can_be_the_end_of_a_cooldown() -> None:
    story = Told()
    end = replace(moment(), now=datetime.max.replace(tzinfo=UTC))
    story.record("timeout", "timeout", "timeout", at=end)
    assert story.state.retry_at == end.now
    assert story.ask(end).retry_at == end.now


WORDS = ["complete:commits", "complete:rescued", "complete:nothing_to_do", "claim"]
WORDS += ["error#E1", "error#E2", "blocked:denied"]
stories = st.lists(st.sampled_from([*STATUSES, *WORDS]), max_size=60)


def lived(words: list[str]) -> Told:
    story, at = Told(), 0
    for word in words:
        at += 45
        if word != "claim":
            story.record(word, at=moment(at))
        elif story.ask(moment(at)).trial:
            story.claim(moment(at))
    return story


@given(stories, st.data())
def test_a_fold_restored_at_any_place_ends_in_the_same_bytes(
    words: list[str], data: st.DataObject
) -> None:
    story = lived(words)
    if not story.events:
        return
    cut = data.draw(st.integers(1, len(story.events)))
    before = Told()
    before.take(*story.events[:cut])
    after = Told(events=before.events)
    after.fold.restore(unseal(seal(before.state), Breaker))
    after.take(*story.events[cut:])
    assert seal(after.state) == seal(story.state)


@given(stories)
def test_whatever_happens_it_is_in_one_of_three_states_and_ends(words: list[str]) -> None:
    state = lived(words).state
    assert (state.state == "closed") == (state.reason is None) == (state.opened_at is None)
    assert state.trial is None or state.state == "half_open"
    assert state.cooldown_seconds <= 14400
    later = lived(words).ask(moment(45 * 61 + 240))
    assert later.allowed


@given(st.lists(st.sampled_from(NEUTRAL), max_size=100))
def test_what_is_no_stall_never_opens_it(words: list[str]) -> None:
    assert lived(words).state.state == "closed"
