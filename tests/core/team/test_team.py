"""The accounting of a team: who counts, until when, and whether a completion is held back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.log.view import seal, unseal
from guard.core.team.change import Alive, Change, Joined, Kind, LeftBecause, MemberLeft, Running
from guard.core.team.count import TeamTerms, completion_event, expired_members, is_holding
from guard.core.team.events import TeamMemberAlive, TeamMemberJoined, TeamMemberLeft
from guard.core.team.state import MOST_LEFT, TEAM, Scope, TeamFold, TeamState, team_key
from tests.support.teams import BOOT, LEASE, SCOPE, Team, moment

A, B = Joined("a", "teammate", team="builders"), Joined("b", "teammate", team="others")
GONE = MemberLeft("a", "ended")


def after(*changes: Change) -> Team:
    team = Team()
    team.take(*changes)
    return team


def count(team: Team, seconds: float = 0) -> int:
    state = team.at(moment(seconds))
    return state.active_teammate_count if state else 0


# The five cases of the seed, at the level of the accounting: what the gate emits follows from `holds`.


def test_does_not_emit_complete_event_when_team_is_active() -> None:
    """REQ-001."""
    assert is_holding(after(A).state)


def test_emits_usage_update_instead_of_complete_when_team_is_active() -> None:
    """REQ-002: with the name and the count that the record of the hold has."""
    state = after(A, B).state
    assert state is not None
    held = completion_event(
        state.active_team_name,
        state.active_teammate_count,
        held=True,
        reason="team",
        terms=TeamTerms(SCOPE, moment(), "e1", LEASE),
    )
    assert (held.type, held.name, held.count) == ("completion_held", "builders", 2)


def test_emits_complete_event_normally_when_no_team_is_active() -> None:
    """REQ-003."""
    assert not is_holding(None)
    freed = completion_event(
        None, 0, held=False, reason="none", terms=TeamTerms(SCOPE, moment(), "e1", LEASE)
    )
    assert (freed.type, freed.name, freed.count) == ("completion_released", None, 0)


def test_emits_complete_when_team_exists_but_has_zero_teammates() -> None:
    state = after(A, GONE).state
    assert state is not None
    assert (state.active_team_name, state.active_teammate_count) == ("builders", 0)
    assert not is_holding(state)


def test_transitions_from_usage_update_to_complete_when_team_becomes_inactive() -> None:
    team = after(A, B)
    told = [is_holding(team.state)]
    for change in (GONE, MemberLeft("b", "shutdown")):
        team.take(change)
        told.append(is_holding(team.state))
    assert told == [True, True, False]


STORIES: dict[str, tuple[list[Change], int, str | None]] = {
    "nothing ever happened": ([], 0, None),
    "counted before the spawn returns": ([A], 1, "builders"),
    "a failed spawn": ([A, MemberLeft("a", "spawn_failed")], 0, "builders"),
    "an end": ([A, GONE], 0, "builders"),
    "a shutdown": ([A, MemberLeft("a", "shutdown")], 0, "builders"),
    "an end that is told twice": ([A, GONE, GONE], 0, "builders"),
    "an end of a member that nobody counted": ([GONE], 0, None),
    "a sign of life of a member that nobody counted": ([Alive("a")], 0, None),
    "an idle teammate is not an ended one": ([A, Alive("a", idle=True)], 1, "builders"),
    "the first name is kept": ([A, B], 2, "builders"),
    "the first name is kept after its member left": ([A, B, GONE], 1, "builders"),
    "a name that nobody counts for makes way": ([A, GONE, B], 1, "others"),
    "a helper without a team": ([Joined("x", "subagent")], 1, "session:s1"),
    "a member that is spawned twice counts once": ([A, A], 1, "builders"),
    "a member that comes again": ([A, GONE, A], 1, "builders"),
    "a late end of an earlier incarnation": ([A, GONE, A, MemberLeft("a", "ended", 1)], 1, "builders"),
    "the end of the newest incarnation": ([A, GONE, A, MemberLeft("a", "ended", 2)], 0, "builders"),
    "a sign of life after the end": ([A, GONE, Alive("a")], 0, "builders"),
    "a list names those who run": (
        [Running((A, B), frozenset({"teammate"}))], 2, "builders"),
    "a list without one of them": (
        [A, B, Running((B,), frozenset({"teammate"}))], 1, "builders"),
    "an empty list": ([A, B, Running((), frozenset({"teammate"}))], 0, "builders"),
    "a list of other kinds": ([A, Running((), frozenset({"subagent"}))], 1, "builders"),
    "a list of no kinds": ([A, Running((), frozenset())], 1, "builders"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "counted", "name"), STORIES.values(), ids=STORIES)
def test_stories(changes: list[Change], counted: int, name: str | None) -> None:
    at_once, one_by_one = after(*changes), Team()
    for change in changes:
        one_by_one.take(change)
    for team in (at_once, one_by_one):
        assert count(team) == counted
        assert (team.state.active_team_name if team.state else None) == name
        assert is_holding(team.state) == (name is not None and counted > 0)


@pytest.mark.parametrize("because", get_args(LeftBecause))
def test_an_end_has_its_reason(because: LeftBecause) -> None:
    state = after(A, MemberLeft("a", because)).state
    assert state is not None
    (member,) = state.members
    assert (member.status, member.left_because) == ("left", because)
    assert member.left_at == moment().now


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_counts(kind: Kind) -> None:
    assert is_holding(after(Joined("x", kind)).state)


def test_clear_lets_go_of_everybody_and_of_the_name() -> None:
    team = after(A, B)
    assert [event.type for event in team.clear()] == ["team_cleared"]
    assert team.state is not None
    assert (team.state.active_team_name, count(team)) == (None, 0)
    assert {one.left_because for one in team.state.members} == {"cleared"}
    assert team.clear() == ()
    team.take(B)
    assert team.state.active_team_name == "others"


def test_clear_of_nothing_is_no_event() -> None:
    assert Team().clear() == ()


def test_what_changes_nothing_is_no_event() -> None:
    team = after(A, GONE, A)
    assert (
        team.take(MemberLeft("a", "ended", 1), MemberLeft("x", "ended"), Alive("a", incarnation=1))
        == ()
    )


# Leases.


def test_a_ghost_is_gone_when_its_lease_ran_out_and_its_reason_is_recorded() -> None:
    team = after(A)
    assert (count(team, LEASE - 1), count(team, LEASE)) == (1, 0)
    assert not is_holding(team.at(moment(LEASE)))
    assert [one.member for one in expired_members(team.state, moment(LEASE))] == ["a"]
    (event,) = team.take(now=moment(LEASE + 5))
    assert isinstance(event, TeamMemberLeft)
    assert (event.because, event.detail) == (
        "lease_expired",
        "no sign of life for 105 s; its lease was 100 s",
    )
    assert team.take(now=moment(LEASE + 6)) == ()


@pytest.mark.parametrize("idle", [False, True], ids=["at work", "idle"])
def test_a_sign_of_life_renews_the_lease(idle: bool) -> None:
    team = after(A)
    team.take(Alive("a", idle=idle), now=moment(60))
    assert (count(team, 60 + LEASE - 1), count(team, 60 + LEASE)) == (1, 0)
    member = team.state.members[0] if team.state else None
    assert member is not None
    assert member.status == ("idle" if idle else "active")
    assert member.worked.at == moment(0 if idle else 60).now


def test_a_sign_of_life_of_an_earlier_incarnation_renews_nothing() -> None:
    team = after(A, GONE, A)
    team.take(Alive("a", incarnation=1), now=moment(60))
    assert count(team, LEASE) == 0


def test_a_list_renews_the_leases_of_those_in_it() -> None:
    team = after(A, B)
    team.take(Alive("a", idle=True), Running((A, B), frozenset({"teammate"})), now=moment(60))
    assert count(team, LEASE + 50) == 2
    assert team.state is not None
    assert {one.member: one.status for one in team.state.members} == {"a": "idle", "b": "active"}
    assert {one.incarnation for one in team.state.members} == {1}


@pytest.mark.parametrize(
    ("passed", "lease", "told"),
    [(9, 100, 0), (10, 100, 2), (59, 6000, 0), (60, 6000, 2), (-1, 6000, 2)],
    ids=["new", "a tenth of the lease", "within a minute", "a minute", "a clock set back"],
)
def test_a_list_is_a_sign_of_life_only_now_and_then(passed: int, lease: int, told: int) -> None:
    team = Team()
    team.take(A, B, now=moment(100), lease=lease)
    events = team.take(Running((A, B), frozenset({"teammate"})), now=moment(100 + passed))
    assert [type(event) for event in events] == [TeamMemberAlive] * told


def test_whoever_was_taken_for_dead_and_gives_a_sign_of_life_counts_again() -> None:
    team = after(A)
    events = team.take(Alive("a"), now=moment(LEASE + 1))
    assert [type(event) for event in events] == [TeamMemberLeft, TeamMemberAlive]
    assert count(team, LEASE + 2) == 1
    assert is_holding(team.state)
    assert team.state is not None
    assert team.state.members[0].left_because is None


def test_a_spawn_after_the_lease_ran_out_is_another_incarnation() -> None:
    team = after(A)
    events = team.take(A, now=moment(LEASE + 1))
    assert [(type(event), event.incarnation) for event in events if hasattr(event, "incarnation")] \
        == [(TeamMemberLeft, 1), (TeamMemberJoined, 2)]  # fmt: skip


CLOCKS: dict[str, tuple[Any, int]] = {
    "the wall clock jumps a year ahead": (moment(10, wall=3e7), 1),
    "the wall clock jumps a year back": (moment(10, wall=-3e7), 1),
    "both clocks say it is over": (moment(LEASE), 0),
    "another boot, soon": (moment(-900, wall=10, boot="boot-2"), 1),
    "another boot, later": (moment(-900, wall=LEASE, boot="boot-2"), 0),
    "another boot, the clock a little back": (moment(-900, wall=-10, boot="boot-2"), 1),
    "another boot, the clock a year back": (moment(-900, wall=-3e7, boot="boot-2"), 0),
    "no boot is known": (moment(-900, wall=10, boot=None), 1),
    "a process that looked before the spawn was recorded": (moment(-0.5), 1),
}


@pytest.mark.parametrize(("now", "counted"), CLOCKS.values(), ids=CLOCKS)
def test_clocks_that_jump_neither_end_a_lease_nor_keep_it_for_ever(now: Any, counted: int) -> None:
    state = after(A).at(now)
    assert state is not None
    assert state.active_teammate_count == counted


# The view.


def test_those_that_left_are_bounded_and_a_forgotten_ones_next_life_has_a_higher_number() -> None:
    team = after(A, GONE, A, GONE, B)
    for number in range(MOST_LEFT + 5):
        team.take(Joined(f"m{number}", "subagent"), MemberLeft(f"m{number}", "ended"))
    assert team.state is not None
    assert len(team.state.members) == MOST_LEFT + 1
    assert team.state.member("a") is None
    (event,) = team.take(A)
    assert isinstance(event, TeamMemberJoined)
    assert event.incarnation == 3


def test_a_team_has_a_key_of_its_own_for_each_work_tree_and_session() -> None:
    names = [("w1", None), ("w1", ""), ("w1", "s1"), ("w1", "None"), ("w2", None), ("w1-s1", None)]
    keys = {team_key(*name) for name in names}
    assert len(keys) == len(names)
    assert all(len(key) == 32 for key in keys)


def test_a_team_of_a_session_with_a_long_name() -> None:
    team = Team(Scope("w1", "s" * 512))
    team.take(Joined("a", "subagent"))
    assert team.state is not None
    assert is_holding(team.state)
    assert len(team.state.active_team_name or "") == 512


# Against a simple model: who joined and did not leave, until when.


@dataclass
class Model:
    """What the accounting should come to, in a few lines."""

    now: float = 0
    lives: dict[str, int] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)
    revivable: set[str] = field(default_factory=set)
    name: str | None = None

    def expire(self) -> None:
        for member in [one for one, end in self.until.items() if end <= self.now]:
            del self.until[member]
            self.revivable.add(member)

    def join(self, member: str, team: str) -> None:
        self.name = team if not self.until else self.name
        self.lives[member] = self.lives.get(member, 0) + 1
        self._count(member)

    def leave(self, member: str, life: int | None) -> None:
        if member in self.until and life in (None, self.lives[member]):
            del self.until[member]

    def alive(self, member: str, life: int | None, team: str) -> None:
        known = member in self.until or member in self.revivable
        if known and life in (None, self.lives[member]):
            self.name = team if not self.until else self.name
            self._count(member)

    def _count(self, member: str) -> None:
        self.until[member] = self.now + LEASE
        self.revivable.discard(member)


members = st.sampled_from("abc")
lives = st.none() | st.integers(1, 3)
steps = st.lists(
    st.tuples(st.just("join"), members, st.none())
    | st.tuples(st.just("leave"), members, lives)
    | st.tuples(st.just("alive"), members, lives)
    | st.tuples(st.just("list"), st.frozensets(members), st.none())
    | st.tuples(st.just("pass"), st.sampled_from([1.0, 40.0, LEASE, 1e6]), st.none())
    | st.tuples(st.just("jump"), st.sampled_from([-1e7, -5.0, 5.0, 1e7]), st.none())
    | st.tuples(st.just("clear"), st.none(), st.none())
    | st.tuples(st.just("restart"), st.none(), st.none()),
    max_size=40,
)


def _played(model: Model, what: str, whom: Any, life: int | None) -> Change | None:
    """Take the step in the model; the change that it is."""
    if what == "join":
        model.join(whom, f"team-{whom}")
        return Joined(whom, "teammate", team=f"team-{whom}")
    if what == "leave":
        model.leave(whom, life)
        return MemberLeft(whom, "ended", life)
    if what == "alive":
        model.alive(whom, life, f"team-{whom}")
        return Alive(whom, incarnation=life)
    if what == "list":
        for member in [one for one in model.until if one not in whom]:
            model.leave(member, None)
        for member in sorted(whom):
            known = member in model.until or member in model.revivable
            if model.now - model.until.get(member, 0.0) + LEASE < LEASE / 10:
                continue
            step: Callable[..., None] = model.alive if known else model.join
            step(*((member, None) if known else (member,)), f"team-{member}")
        listed = tuple(Joined(one, "teammate", team=f"team-{one}") for one in sorted(whom))
        return Running(listed, frozenset({"teammate"}))
    return None


@given(steps)
def test_the_count_is_that_of_a_simple_model(told: list[tuple[str, Any, Any]]) -> None:
    team, model, wall = Team(), Model(), 0.0
    for what, whom, life in told:
        if what == "pass":
            model.now += whom
        elif what == "jump":
            wall += whom
        elif what == "restart" and team.state is not None:
            team.fold = reread(team.state)
        now = moment(model.now, wall=model.now + wall)
        # Readers see who is gone before anybody has recorded it.
        model.expire()
        state = team.at(now)
        assert (state.active_teammate_count if state else 0) == len(model.until)
        if what == "clear":
            team.clear(now=now)
            model.until.clear()
            model.revivable.clear()
            model.name = None
        else:
            change = _played(model, what, whom, life)
            team.take(*([change] if change else []), now=now)
        _compare(team, model, now)


def _compare(team: Team, model: Model, now: Any) -> None:
    state = team.at(now)
    if state is None:
        assert not model.lives
        return
    counting = {one.member: one.incarnation for one in state.members if one.counts}
    assert counting == {one: model.lives[one] for one in model.until}
    assert state.active_teammate_count == len(counting)
    assert state.active_team_name == model.name
    assert is_holding(state) == bool(model.name and model.until)


def reread(state: TeamState) -> TeamFold:
    """The fold of a process that begins with the file that another one wrote."""
    fold = TeamFold(state.key())
    fold.restore(unseal(seal(state), TeamState))
    assert fold.document() == unseal(seal(state), TeamState).model_copy(update={"hash": "0" * 64})
    return fold


def test_the_view_lies_where_its_key_says() -> None:
    state = after(A).state
    assert state is not None
    assert TEAM.path(state.key()) == f"teams.d/{SCOPE.key}/team.json"
    assert state.members[0].seen.boot_id == BOOT


CALL, HOOK = Joined("toolu_1", "subagent", told_by="call"), Joined("a1", "subagent", told_by="hook")
HELPERS: frozenset[Kind] = frozenset(("subagent", "teammate"))
ONE_HELPER: dict[str, tuple[Change, ...]] = {
    "the call first": (CALL, HOOK),
    "the hook first": (HOOK, CALL),
    "the host names it too": (CALL, HOOK, MemberLeft("toolu_1", "ended"), Joined("a1", "subagent")),
    "the host lists the call": (HOOK, CALL, Running((CALL,), HELPERS)),
    "the host lists the helper": (HOOK, CALL, Running((Joined("a1", "subagent"),), HELPERS)),
}


@pytest.mark.parametrize("changes", ONE_HELPER.values(), ids=ONE_HELPER)
def test_a_call_and_the_hook_of_its_helper_are_one_member(changes: tuple[Change, ...]) -> None:
    team = after(*changes)
    assert team.state is not None
    assert [one.member for one in team.state.members if one.counts] == ["a1"]
    assert count(after(*changes, Joined("toolu_2", "subagent", told_by="call"))) == 2
    assert count(after(*changes, MemberLeft("a1", "ended"))) == 0


def test_a_hook_names_no_call_of_a_shell() -> None:
    assert count(after(Joined("toolu_1", "background_shell", told_by="call"), HOOK)) == 2
