"""What a call of a hook means for the team of its session."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.hooks.payload import CallKind, HookCall
from guard.core.hooks.team_changes import call_moment, sort_calls, team_changes
from guard.core.team.change import Alive, Change, Joined, Kind, MemberLeft, Running
from guard.core.team.state import TeamState
from tests.support.events import MOMENT
from tests.support.teams import BOOT, LEASE, SCOPE, Team

SUB = Joined("a1", "subagent", "general-purpose", None, "hook")
MATE = Joined("a1", "teammate", "alice", "builders", "hook")
SHELL = {"id": "b1", "kind": "background_shell", "running": True, "description": "make"}
LISTED_SUB = {"id": "a1", "kind": "subagent", "running": True, "description": ""}
LISTED_MATE = {"id": "t1", "kind": "teammate", "running": True, "description": "alice"}
OTHER_MATE = {**LISTED_MATE, "id": "t2"}
CRON = {"id": "c1", "description": "hourly"}
B1, C1 = Joined("b1", "background_shell", "make"), Joined("c1", "scheduled_wakeup", "hourly")
T1, T2 = Joined("t1", "teammate", "alice"), Joined("t2", "teammate", "alice")
SHELLS: frozenset[Kind] = frozenset({"background_shell"})
TASKS: frozenset[Kind] = frozenset({"background_shell", "subagent", "teammate"})
WAKEUPS: frozenset[Kind] = frozenset({"scheduled_wakeup"})


def heard(kind: str, seconds: float = 10, wall: float | None = None, **more: Any) -> HookCall:
    shown = MOMENT.timestamp() + (seconds if wall is None else wall)
    document = {
        "agent": "claude",
        "event": "Stop",
        "kind": kind,
        "seconds": shown,
        "boot_seconds": 1000 + seconds,
        "boot_id": BOOT,
        "cwd": "/project",
        "session": SCOPE.session,
        **more,
    }
    return HookCall.model_validate(document, strict=False)


def told(kind: str, seconds: float = 10, **more: Any) -> HookCall:
    return heard(kind, seconds, helper="a1", helper_type="general-purpose", **more)


class Session:
    """A team that hears of its hooks."""

    def __init__(self) -> None:
        self.team = Team()

    @property
    def state(self) -> TeamState | None:
        return self.team.state

    def hears(self, *all_heard: HookCall) -> "Session":
        for one in sort_calls(list(all_heard)):
            self.team.take(*team_changes(one, self.state), now=call_moment(one))
        return self

    @property
    def members(self) -> dict[str, tuple[str, str, int]]:
        listed = self.state.members if self.state is not None else ()
        return {one.member: (one.kind, one.status, one.incarnation) for one in listed}


def state_of(name: str) -> TeamState | None:
    """States of the member a1 to start from, known since the beginning."""
    session = Session()
    match name:
        case "unknown":
            return None
        case "subagent":
            session.team.take(SUB)
        case "ended":
            session.team.take(SUB, MemberLeft("a1", "ended"))
        case "expired":
            session.team.take(SUB)
            session.team.take(now=call_moment(heard("other", LEASE + 1)))
        case "teammate":
            session.team.take(MATE)
        case "idle":
            session.team.take(MATE, Alive("a1", idle=True))
        case "listed":
            session.team.take(Joined("t1", "teammate"), Joined("t2", "teammate"))
        case _:
            raise AssertionError(name)
    return session.state


def runs(*members: Joined, kinds: frozenset[Kind] = TASKS) -> tuple[Change, ...]:
    return (Running(members, kinds),)


STARTED, ENDED = told("helper_started"), told("helper_ended")
IDLE = told("teammate_idle", teammate="alice", team="builders")
END = heard("session_ended")
IS_IDLE, BOB = Alive("a1", idle=True), Joined("bob", "teammate", "bob", None, "hook")
SIGNS = (
    *("tool_starting", "tool_used", "tool_failed", "task_created", "task_completed"),
    *("other", "prompted", "compacting", "stopping"),
)
ROWS: list[tuple[str, HookCall, tuple[Change, ...]]] = [
    ("unknown", STARTED, (SUB,)),
    ("unknown", told("helper_started", team="b"), (replace(SUB, team="b"),)),
    ("ended", STARTED, (SUB,)),
    ("subagent", STARTED, (Alive("a1"),)),
    ("idle", STARTED, (Alive("a1"),)),
    ("expired", told("helper_started", 1000), (Alive("a1"),)),
    ("unknown", heard("helper_started"), ()),
    ("unknown", ENDED, ()),
    ("subagent", ENDED, (MemberLeft("a1", "ended", 1),)),
    (
        "subagent",
        told("helper_ended", tasks=[LISTED_SUB], wakeups=[]),
        (MemberLeft("a1", "ended", 1),),
    ),
    ("teammate", ENDED, (Alive("a1"),)),
    ("unknown", heard("helper_ended"), ()),
    ("unknown", IDLE, (MATE, IS_IDLE)),
    ("ended", IDLE, (MATE, IS_IDLE)),
    ("subagent", IDLE, (MATE, IS_IDLE)),
    ("teammate", IDLE, (IS_IDLE,)),
    ("idle", IDLE, (IS_IDLE,)),
    ("unknown", heard("teammate_idle"), ()),
    ("unknown", heard("teammate_idle", teammate="bob"), (BOB, Alive("bob", idle=True))),
    *[("subagent", told(kind), (Alive("a1"),)) for kind in SIGNS],
    *[("subagent", heard(kind), ()) for kind in (*SIGNS, "session_started")],
    ("subagent", heard("tool_starting", tool="Agent", in_background=True), ()),
    ("unknown", told("tool_used"), ()),
    ("subagent", told("stop_failed"), ()),
    ("subagent", heard("stop_failed"), ()),
    ("unknown", END, ()),
    ("ended", END, ()),
    ("subagent", END, (MemberLeft("a1", "killed", 1),)),
    ("idle", END, (MemberLeft("a1", "killed", 1),)),
    ("subagent", heard("stopping", tasks=[]), runs()),
    ("subagent", heard("stopping", tasks=[SHELL]), runs(B1)),
    ("subagent", heard("stopping", tasks=[{**SHELL, "running": False}]), runs()),
    ("subagent", heard("stopping", tasks=[], wakeups=[CRON]), runs(C1, kinds=TASKS | WAKEUPS)),
    ("subagent", heard("stopping", wakeups=[]), runs(kinds=WAKEUPS)),
    ("subagent", heard("stopping", tasks=[SHELL], tasks_unclear=True), runs(B1, kinds=frozenset())),
    ("unknown", heard("stopping", tasks=[LISTED_SUB]), runs(Joined("a1", "subagent"))),
    ("unknown", heard("stopping", tasks=[LISTED_MATE]), runs(T1, kinds=SHELLS)),
    ("subagent", heard("stopping", tasks=[LISTED_MATE]), runs(kinds=SHELLS)),
    ("idle", heard("stopping", tasks=[LISTED_MATE, SHELL]), runs(B1, kinds=SHELLS)),
    ("listed", heard("stopping", tasks=[LISTED_MATE, OTHER_MATE]), runs(T1, T2, kinds=SHELLS)),
    ("ended", heard("stopping", tasks=[LISTED_MATE]), runs(T1, kinds=SHELLS)),
]


@pytest.mark.parametrize(("state", "word", "expected"), ROWS)
def test_a_word_and_what_it_means(state: str, word: HookCall, expected: tuple[Change, ...]) -> None:
    assert team_changes(word, state_of(state)) == expected


def test_a_subagent_from_its_start_to_its_end() -> None:
    session = Session().hears(told("helper_started", 0), told("tool_used", 50))
    assert session.members == {"a1": ("subagent", "active", 1)}
    session.hears(told("helper_ended", 60))
    assert session.members == {"a1": ("subagent", "left", 1)}


def test_a_teammate_in_the_order_that_was_seen() -> None:
    """Task completed, turn ended, idle; started again for a message; killed with its session."""
    session = Session().hears(told("helper_started", 0), told("task_completed", 5))
    session.hears(told("helper_ended", 6), told("teammate_idle", 7, teammate="alice", team="b"))
    assert session.members == {"a1": ("teammate", "idle", 2)}
    session.hears(told("helper_started", 8))
    assert session.members == {"a1": ("teammate", "active", 2)}
    session.hears(told("helper_ended", 9))
    assert session.members == {"a1": ("teammate", "active", 2)}
    session.hears(told("teammate_idle", 10, teammate="alice", team="b"))
    session.hears(heard("stopping", 11, tasks=[LISTED_MATE]))
    assert session.members == {"a1": ("teammate", "idle", 2)}
    session.hears(heard("session_ended", 12))
    assert session.members == {"a1": ("teammate", "left", 2)}


def test_what_the_host_lists_no_more_has_ended() -> None:
    session = Session().hears(
        told("helper_started", 0), heard("stopping", 1, tasks=[SHELL, LISTED_SUB])
    )
    assert {name: one[1] for name, one in session.members.items()} == {
        "a1": "active",
        "b1": "active",
    }
    session.hears(heard("stopping", 2, tasks=[], tasks_unclear=True))
    assert {name: one[1] for name, one in session.members.items()} == {
        "a1": "active",
        "b1": "active",
    }
    session.hears(heard("stopping", 3, tasks=[LISTED_SUB]))
    assert {name: one[1] for name, one in session.members.items()} == {"a1": "active", "b1": "left"}


LATE = [
    told("tool_used", 5),
    told("helper_ended", 5),
    told("teammate_idle", 5, teammate="alice", team="builders"),
    heard("session_ended", 5),
    told("helper_started", 5),
]


@pytest.mark.parametrize("late", LATE, ids=lambda late: late.kind)
def test_a_late_word_of_an_earlier_life_changes_nothing(late: HookCall) -> None:
    session = Session().hears(told("helper_started", 0), told("helper_ended", 10))
    session.hears(told("helper_started", 20))
    before = session.state
    assert session.hears(late).state == before


def test_a_start_that_is_heard_after_the_end_of_that_life_changes_nothing() -> None:
    session = Session().hears(told("helper_started", 0), told("helper_ended", 10))
    assert session.hears(told("helper_started", 5)).members == {"a1": ("subagent", "left", 1)}
    assert session.hears(told("tool_used", 9)).members == {"a1": ("subagent", "left", 1)}


def test_an_old_sign_of_life_makes_nobody_busy_again() -> None:
    session = Session().hears(told("helper_started", 0))
    session.hears(told("teammate_idle", 10, teammate="alice"))
    assert session.hears(told("tool_used", 9)).members == {"a1": ("teammate", "idle", 2)}
    assert session.hears(told("tool_used", 11)).members == {"a1": ("teammate", "active", 2)}


def test_an_end_is_one_though_a_later_sign_of_life_came_first() -> None:
    session = Session().hears(told("helper_started", 0)).hears(told("tool_used", 12))
    assert session.hears(told("helper_ended", 11)).members == {"a1": ("subagent", "left", 1)}


def test_a_wall_clock_that_was_set_back_changes_no_order() -> None:
    session = Session().hears(told("helper_ended", 20, wall=-5000), told("helper_started", 10))
    assert session.members == {"a1": ("subagent", "left", 1)}
    session = Session().hears(told("helper_started", 10))
    assert session.hears(told("helper_ended", 20, wall=-5000)).members["a1"][1] == "left"


def test_another_boot_comes_after_the_one_before() -> None:
    old, new = told("helper_started", 5000, wall=0), told("tool_used", 0, wall=60, boot_id="boot-2")
    assert sort_calls([new, old]) == [old, new]


def test_without_a_boot_a_clock_set_back_beyond_the_lease_silences_nobody() -> None:
    session = Session().hears(told("helper_started", 0, boot_id=None))
    session.hears(told("tool_used", -LEASE * 2, boot_id=None))
    assert session.members == {"a1": ("subagent", "active", 1)}


LISTS = st.lists(st.sampled_from([SHELL, LISTED_SUB, LISTED_MATE, {**SHELL, "running": False}]))
WORDS = st.builds(
    heard,
    st.sampled_from(get_args(CallKind)),
    st.floats(0, 300),
    helper=st.sampled_from([None, "a1", "a2"]),
    teammate=st.sampled_from([None, "alice"]),
    tasks=st.none() | LISTS,
    tasks_unclear=st.booleans(),
    wakeups=st.sampled_from([None, [], [CRON]]),
)


@given(st.lists(WORDS, max_size=20))
def test_whatever_is_heard_can_be_counted_and_ends_with_the_session(words: list[HookCall]) -> None:
    session = Session()
    for one in words:
        session.hears(one)
    session.hears(heard("session_ended", 301))
    assert session.state is None or session.state.active_teammate_count == 0
