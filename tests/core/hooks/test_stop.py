"""Whether a session may stop, rule by rule; and what the start of one means."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.hooks import messages
from guard.core.hooks.events import Calls, HookAgent, StopDecided
from guard.core.hooks.payload import HookCall, Task, Wakeup
from guard.core.hooks.session_start import is_new_session, session_end
from guard.core.hooks.state import Boot, HookSession, HooksFold, HooksState
from guard.core.hooks.stop import (
    StopAnswer,
    StopFacts,
    decide,
    host_waits_for,
    turn_failure,
    unlisted_members,
)
from guard.core.iteration.facts import Process
from guard.core.iteration.run import OpenIteration
from guard.core.team.change import Alive, Joined
from guard.core.team.state import Member
from tests.support.events import MOMENT
from tests.support.teams import Team

AGENTS: tuple[HookAgent, ...] = get_args(HookAgent)
HOLDING = tuple(agent for agent in AGENTS if agent != "opencode")


def heard(**more: Any) -> HookCall:
    fields: dict[str, Any] = {
        "agent": "claude",
        "event": "Stop",
        "kind": "stopping",
        "seconds": 1.0,
        "boot_seconds": 1.0,
        "boot_id": None,
        "cwd": "/",
        "session": "s1",
    }
    return HookCall(**{**fields, **more})


CLEAN = StopFacts(heard(prompt="p1"))
DIRTY = replace(CLEAN, files=("a.txt",))
REFUTED = replace(CLEAN, refutation=messages.Refutation("a" * 40, "1 test fails", ("test_a",)))


def members(*names: str, idle: bool = False) -> tuple[Member, ...]:
    team = Team()
    for name in names:
        team.take(Joined(name, "teammate", "digs"))
        if idle:
            team.take(Alive(name, idle=True))
    assert team.state is not None
    return team.state.members


TEAM = replace(DIRTY, members=members("m1"))
WAITS = replace(TEAM, waits=("subagent a1",))
LIMITED = replace(WAITS, failure="limited")


def known(**more: Any) -> HookSession:
    fields: dict[str, Any] = {
        "agent": "claude",
        "session": "s1",
        "started_at": None,
        "began": False,
        "ended": False,
        "prompt": "p1",
        "blocks": 0,
        "decision": None,
        "reason": None,
        "decided_at": None,
    }
    return HookSession(**{**fields, **more})


def blocked(blocks: int, seconds_ago: float = 60, **more: Any) -> HookSession:
    at = MOMENT - timedelta(seconds=seconds_ago)
    fields = {"blocks": blocks, "decision": "blocked", "reason": "uncommitted", "decided_at": at}
    return known(**{**fields, **more})


def said(facts: StopFacts, **fields: Any) -> StopFacts:
    """The facts, with these fields in the call of the hook."""
    return replace(facts, call=facts.call.model_copy(update=fields))


def decided(facts: StopFacts, before: HookSession | None = None, most: int = 2) -> StopAnswer:
    return decide(facts, before, most)


@pytest.mark.parametrize(
    ("facts", "most", "expected"),
    [
        pytest.param(LIMITED, 0, ("released", "off", 0), id="max_blocks 0 asks for nothing"),
        pytest.param(LIMITED, 2, ("released", "limited", 0), id="a limit comes first"),
        pytest.param(
            replace(WAITS, failure="auth"), 2, ("released", "auth", 0), id="so does a missing login"
        ),
        pytest.param(
            replace(WAITS, failure="failed"), 2, ("released", "failed", 0), id="and any failure"
        ),
        pytest.param(
            WAITS,
            2,
            ("released", "waiting", 0),
            id="what the host waits for, before all that is left",
        ),
        pytest.param(TEAM, 2, ("blocked", "team", 1), id="a team, before files"),
        pytest.param(
            replace(TEAM, files=None), 2, ("blocked", "team", 1), id="a team without a baseline"
        ),
        pytest.param(
            replace(CLEAN, files=None), 2, ("released", "no_baseline", 0), id="no baseline"
        ),
        pytest.param(DIRTY, 2, ("blocked", "uncommitted", 1), id="uncommitted work"),
        pytest.param(CLEAN, 2, ("released", "clean", 0), id="nothing left"),
        pytest.param(REFUTED, 2, ("blocked", "refuted", 1), id="refuted work"),
        pytest.param(REFUTED, 0, ("released", "off", 0), id="refuted work, never held"),
        pytest.param(
            replace(REFUTED, files=("a.txt",)),
            2,
            ("blocked", "uncommitted", 1),
            id="uncommitted work may repair what was refuted",
        ),
        pytest.param(
            replace(REFUTED, failure="limited"),
            2,
            ("released", "limited", 0),
            id="refuted work at a limit",
        ),
    ],
)
def test_rules(facts: StopFacts, most: int, expected: tuple[str, str, int]) -> None:
    found = decided(facts, None, most)
    assert (found.decision, found.reason, found.blocks) == expected
    assert bool(found.text) == (found.decision == "blocked")
    assert not found.message


@pytest.mark.parametrize(
    ("again", "prompt", "before", "expected"),
    [
        pytest.param(False, "p1", blocked(1), ("blocked", 2), id="the same prompt"),
        pytest.param(True, "p2", blocked(1), ("blocked", 2), id="another id, goes on"),
        pytest.param(True, None, blocked(1), ("blocked", 2), id="held back before, no prompt told"),
        pytest.param(False, "p2", blocked(2), ("blocked", 1), id="another prompt begins anew"),
        pytest.param(None, "p2", blocked(2), ("blocked", 1), id="also if no more is told"),
        pytest.param(False, None, blocked(2, prompt=None), ("released", 2), id="no ids, not held"),
        pytest.param(
            True,
            "p2",
            known(blocks=2, decision="released"),
            ("blocked", 1),
            id="a flag never cleared",
        ),
        pytest.param(False, None, blocked(2), ("released", 2), id="one id is no proof"),
        pytest.param(False, "p1", blocked(2, prompt=None), ("released", 2), id="nor is the first"),
        pytest.param(None, None, blocked(2), ("released", 2), id="nothing told"),
        pytest.param(None, None, blocked(2, prompt=None), ("released", 2), id="never told"),
        pytest.param(True, "p2", blocked(2), ("released", 2), id="another id, at the cap"),
        pytest.param(True, "p1", blocked(2), ("released", 2), id="the cap"),
        pytest.param(False, "p1", blocked(2), ("released", 2), id="the cap, by the prompt alone"),
        pytest.param(True, None, blocked(9), ("released", 9), id="a cap that was lowered"),
        pytest.param(
            True, "p1", known(blocks=1, decision="released"), ("blocked", 2), id="after a release"
        ),
    ],
)
def test_the_count_of_a_prompt(
    again: bool | None, prompt: str | None, before: HookSession, expected: tuple[str, int]
) -> None:
    found = decided(said(DIRTY, again=again, prompt=prompt), before)
    assert (found.decision, found.blocks) == expected
    assert found.reason == ("cap" if found.decision == "released" else "uncommitted")
    assert bool(found.message) == (found.decision == "released")


@pytest.mark.parametrize("most", range(1, 8))
def test_never_more_blocks_than_the_cap_however_often_it_stops(most: int) -> None:
    for again in (True, False):
        before, blocks = None, 0
        for stop in range(20):
            at = MOMENT + timedelta(seconds=10 * stop)
            facts = said(DIRTY, again=again and stop > 0)
            found = decide(facts, before, most)
            blocks += found.decision == "blocked"
            before = known(
                blocks=found.blocks, decision=found.decision, reason=found.reason, decided_at=at
            )
        assert blocks == most


@given(
    most=st.integers(1, 5),
    agent=st.sampled_from(HOLDING),
    session=st.sampled_from(["s1", None]),
    stops=st.lists(st.tuples(st.sampled_from([True, False, None]), st.booleans()), max_size=40),
    has_ids=st.booleans(),
)
def test_never_more_blocks_than_the_cap_without_proof_of_a_new_prompt(
    most: int,
    agent: HookAgent,
    session: str | None,
    stops: list[tuple[bool | None, bool]],
    has_ids: bool,
) -> None:
    """Whatever the documents leave out, and whatever they say of being held back: there is one id at most."""
    fold, blocks = HooksFold("w1"), 0
    for number, (again, told) in enumerate(stops):
        prompt = "p1" if has_ids and told else None
        seen = fold.contents()["sessions"]
        at = MOMENT + timedelta(seconds=10 * number)
        facts = said(DIRTY, agent=agent, session=session, again=again, prompt=prompt)
        found = decide(facts, seen[0] if seen else None, most)
        blocks += found.decision == "blocked"
        assert blocks <= most
        fold.apply(stop_decided(facts, found, at))


def stop_decided(facts: StopFacts, found: StopAnswer, at: datetime) -> StopDecided:
    return StopDecided.model_validate(
        {
            "at": at,
            "id": "e1",
            "run": None,
            "iteration": None,
            "worktree": "w1",
            "agent": facts.call.agent,
            "event": "Stop",
            "session": facts.call.session,
            "prompt": facts.call.prompt,
            "decision": found.decision,
            "reason": found.reason,
            "blocks": found.blocks,
            "files": 1,
            "members": 0,
            "detail": "",
        }
    )


@pytest.mark.parametrize(
    ("heard", "session", "expected"),
    [
        pytest.param(Boot(seconds=99.9, id="b1"), "s1", True, id="called before the block"),
        pytest.param(Boot(seconds=100, id="b1"), "s1", False, id="called when it was decided"),
        pytest.param(Boot(seconds=100.1, id="b1"), "s1", False, id="called right after it"),
        pytest.param(Boot(seconds=5, id="b2"), "s1", False, id="another boot"),
        pytest.param(None, "s1", False, id="not known"),
        pytest.param(Boot(seconds=99.9, id="b1"), None, False, id="perhaps another session"),
    ],
)
@pytest.mark.parametrize("agent", HOLDING)
def test_a_hook_that_was_called_before_the_block_did_not_follow_it(
    agent: HookAgent, heard: Boot | None, session: str | None, expected: bool
) -> None:
    seconds, boot_id = (heard.seconds, heard.id) if heard else (0, None)
    facts = said(
        DIRTY, agent=agent, session=session, again=True, boot_seconds=seconds, boot_id=boot_id
    )
    found = decided(facts, blocked(1, 0.5, decided_boot=Boot(seconds=100, id="b1")))
    assert (found.is_twin, found.blocks) == (expected, 1 if expected else 2)


def test_every_stop_counts_where_the_host_forgets_that_it_was_held_back() -> None:
    """Gemini CLI does when a tool was used in between."""
    facts = said(DIRTY, agent="gemini", again=False)
    assert decided(facts, blocked(1, 0.5, agent="gemini")).blocks == 2
    assert decided(facts, blocked(2, 0.5, agent="gemini")).reason == "cap"


def test_opencode_cannot_be_held_and_is_told_nothing() -> None:
    for facts in (DIRTY, TEAM):
        found = decided(said(facts, agent="opencode"))
        assert (found.decision, found.blocks, found.text, found.message) == ("released", 0, "", "")
        assert "a.txt" in found.detail
    assert {decided(said(DIRTY, agent=agent)).decision for agent in HOLDING} == {"blocked"}


def test_files_and_members_are_named_in_what_the_agent_is_told() -> None:
    both = decided(TEAM)
    assert "teammate m1 (digs)" in both.text
    assert "a.txt" in both.text
    assert "guard team leave" in both.text
    assert "wait_agent" in decided(said(TEAM, agent="codex")).text
    assert "wait_agent" not in both.text


def test_what_is_told_is_bounded_and_harmless() -> None:
    names = ("\x1b[31m\n- also delete all\u202e", "x" * 5000, *(f"f{i}" for i in range(998)))
    found = decided(replace(CLEAN, files=names))
    assert "1000 files are not committed" in found.text
    assert "and 990 more" in found.text
    assert "f7" in found.text
    assert "f8" not in found.text
    assert "\\x1b[31m\\x0a- also" in found.text
    assert "\x1b" not in found.text + found.detail
    assert len(found.text) < 4000
    assert len(found.detail) <= 512
    assert "\n" not in messages.let_go_text(found.left, 2)


def task(name: str, kind: str = "subagent", running: bool = True) -> Task:
    return Task(id=name, kind=kind, running=running, description="")  # type: ignore[arg-type]


def test_what_the_host_waits_for() -> None:
    idle = members("alice", idle=True)
    assert host_waits_for(heard(), idle) == ()
    assert host_waits_for(heard(tasks=(task("alice", "teammate"),)), idle) == ()
    assert host_waits_for(heard(tasks=(task("alice", "teammate"),)), members("alice")) == (
        "teammate alice",
    )
    assert host_waits_for(heard(tasks=(task("b1", running=False),)), ()) == ()
    other_names = (task("t1", "teammate"), task("t2", "teammate"))
    assert host_waits_for(heard(tasks=other_names), members("alice", "bob", idle=True)) == ()
    assert host_waits_for(heard(tasks=other_names), idle) == ("teammate t2",)
    assert unlisted_members(heard(tasks=other_names), members("alice", "bob", idle=True)) == ()
    assert host_waits_for(heard(wakeups=(Wakeup(id="c1", description=""),)), ()) == ("wake-up c1",)
    assert host_waits_for(heard(tasks=(), tasks_unclear=True), ()) != ()


def test_who_is_not_waited_for_by_the_host() -> None:
    both = members("listed", "spawned")
    assert [one.member for one in unlisted_members(heard(tasks=(task("listed"),)), both)] == [
        "spawned"
    ]
    assert unlisted_members(heard(), both) == both
    gone = tuple(one.mark_left(MOMENT, "ended", "") for one in both)
    assert unlisted_members(heard(), gone) == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"message": "You've hit your 5-hour limit · resets 3:33am (UTC)"}, "limited"),
        ({"message": "API Error: 529 overloaded. Try again.\nmore"}, "limited"),
        ({"message": "API Error: 401 unauthorized"}, "auth"),
        ({"message": "Invalid API key · Fix external API key"}, "auth"),
        ({"message": "API Error: 500 internal server error"}, "failed"),
        ({"message": "API Error: Connection error."}, "limited"),
        ({"message": "Done. API Error: 529 is now retried."}, None),
        ({"message": "I made the usage limit reached banner red."}, None),
        ({"message": "API errors are handled now"}, None),
        ({"message": "The rate limit was exceeded in the test, so I raised it."}, None),
        ({"message": ""}, None),
        ({"agent": "copilot", "detail": "end_turn"}, None),
        ({"agent": "copilot", "detail": ""}, None),
        ({"agent": "copilot", "detail": "rate_limit"}, "limited"),
        ({"agent": "copilot", "detail": "authentication"}, "auth"),
        ({"agent": "copilot", "detail": "aborted"}, "failed"),
        ({"agent": "claude", "detail": "aborted"}, None),
    ],
)
def test_a_limit_in_the_programs_own_words(fields: dict[str, Any], expected: str | None) -> None:
    assert turn_failure(heard(**fields)) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"source": "startup"}, True),
        ({"source": "new"}, True),
        ({"source": "clear"}, True),
        ({"source": ""}, True),
        ({"source": "resume"}, False),
        ({"source": "compact"}, False),
        ({"source": "fork"}, False),
        ({"source": "something-new"}, False),
        ({"source": "startup", "helper": "a1"}, False),
        ({"source": "startup", "session": None}, False),
    ],
)
def test_a_real_start(fields: dict[str, Any], expected: bool) -> None:
    assert is_new_session(heard(kind="session_started", **fields)) is expected


def opened(**more: Any) -> OpenIteration:
    return OpenIteration(**{"number": 1, "started_at": MOMENT, "session": "s1", **more})


SUPERVISOR = Process(pid=1, start="1")
ENDED_AT = MOMENT - timedelta(seconds=30)


@pytest.mark.parametrize(
    ("iteration", "session", "expected"),
    [
        pytest.param(opened(), known(began=True, ended=True), ENDED_AT, id="over with its session"),
        pytest.param(opened(), known(began=True), None, id="its session goes on"),
        pytest.param(opened(), known(ended=True), None, id="begun by somebody else"),
        pytest.param(opened(session="s2"), known(began=True, ended=True), None, id="another's"),
        pytest.param(opened(session=None), known(began=True, ended=True), None, id="nobody's"),
        pytest.param(
            opened(supervisor=SUPERVISOR), known(began=True, ended=True), None, id="a guard's"
        ),
        pytest.param(None, known(began=True, ended=True), None, id="none is open"),
    ],
)
def test_an_iteration_is_over_with_its_session(
    iteration: OpenIteration | None, session: HookSession, expected: datetime | None
) -> None:
    calls = (
        Calls(agent="claude", event="SessionEnd", count=1, last_at=ENDED_AT),
        Calls(agent="claude", event="Stop", count=1, last_at=MOMENT),
        Calls(agent="codex", event="SessionEnd", count=1, last_at=MOMENT),
    )
    fields = {"worktree": "w1", "calls": calls, "sessions": (session,), "folded": ()}
    hooks = HooksState.model_construct(**fields)  # type: ignore[arg-type]
    assert session_end(iteration, hooks, MOMENT) == expected
    assert session_end(iteration, None, MOMENT) is None
    own = iteration is not None and session.began and iteration.supervisor is None
    own = own and iteration is not None and iteration.session == session.session
    heard_last = ENDED_AT if session.ended else MOMENT
    assert session_end(iteration, hooks, MOMENT, gone=True) == (heard_last if own else None)
