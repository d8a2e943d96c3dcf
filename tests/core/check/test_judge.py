"""The completion check's decision, rule by rule, in the order in which they are asked."""

from datetime import timedelta

import pytest

from guard.core.check.evidence import Evidence, Living, Policy
from guard.core.check.holders import is_holding, may_commit
from guard.core.check.judge import RULES, Step, Verdict, judge, settle
from guard.core.check.report import facts
from guard.core.check.words import verdict_line
from guard.core.classify import Classification
from guard.core.snapshots.snapshot import HeldBack
from guard.core.work.count import Work
from guard.core.work.leftovers import Uncommitted
from tests.support.events import MOMENT
from tests.support.evidence import (
    COMMITTED,
    LEFT,
    TEAM,
    USERS,
    answered,
    failed,
    living,
    look,
    rescue,
    said,
)

POLICY = Policy()
NO_WAIT = Policy(wait=False)
NO_PROBE = Policy(probe=False)
ONE_LOOK = Policy(probe=False, wait=False)
NO_RESCUE = Policy(rescue=False)
LATER = MOMENT + timedelta(hours=3)
HOURS = 3600.0

Case = tuple[Evidence, Policy, str]


def decision(evidence: Evidence, policy: Policy) -> str:
    """The decision in a few words, as the tables below have it."""
    match judge(evidence, policy).decision:
        case Verdict(status=status, reason=reason):
            return f"{status}: {reason}"
        case Step(action="wait", seconds=seconds, next_round=next_round):
            return f"wait {seconds:g}{', next round' if next_round else ''}"
        case Step(action=action):
            return action


SERVER = living(idle=10, name="vite").model_copy(update={"serves": True})
KILLED = said("interrupted", killed=("npm test",))
FIRST: dict[str, Case] = {
    "helpers killed with the session: interrupted": (
        look(output=KILLED), POLICY, "interrupted: helpers_killed"),
    "helpers killed, with commits: interrupted all the same": (
        look(output=KILLED, work=COMMITTED), POLICY, "interrupted: helpers_killed"),
    "helpers killed by a limit: interrupted": (
        look(output=said("limited", killed=("a",))), POLICY, "interrupted: helpers_killed"),
    "helpers killed, and one outlived the session: wait for it first": (
        look(output=KILLED, living=(living(),)), POLICY, "wait 7200"),
    "helpers killed, and one outlived the session, one look: interrupted": (
        look(output=KILLED, living=(living(),)), ONE_LOOK, "interrupted: helpers_killed"),
    "helpers killed, an idle one alive: interrupted": (
        look(output=KILLED, living=(living(idle=500),)), POLICY,
        "interrupted: helpers_killed"),
    "helpers of a session that hung, ended with it: asked": (
        look(output=KILLED, ended_by_guard="idle"), POLICY, "probe"),
    "it went round in circles: a stall, and nothing is asked": (
        look(output=said("crash"), ended_by_guard="looping", can_ask=True), POLICY,
        "timeout: looping"),
    "it went round in circles, and helpers ended with it: a stall": (
        look(output=KILLED, ended_by_guard="looping"), POLICY, "timeout: looping"),
    "it went round in circles after commits: complete": (
        look(output=said("crash"), ended_by_guard="looping", work=COMMITTED), POLICY,
        "complete: commits"),
    "its time was over while it worked: no stall": (
        look(output=said("crash"), ended_by_guard="max_time"), POLICY, "working: max_time"),
    "its time was over, with commits: complete": (
        look(output=said("crash"), ended_by_guard="max_time", work=COMMITTED), POLICY,
        "complete: commits"),
    "its time was over after it met a limit: limited": (
        look(output=said("limited"), ended_by_guard="max_time"), POLICY, "limited: limited"),
    "helpers of a session whose time was over, ended with it: interrupted": (
        look(output=KILLED, ended_by_guard="max_time"), POLICY, "interrupted: helpers_killed"),
    "commits: complete": (look(work=COMMITTED), POLICY, "complete: commits"),
    "commits, and more left uncommitted: complete": (
        look(work=COMMITTED, uncommitted=LEFT), POLICY, "complete: commits"),
    "commits, and a process at work: complete": (
        look(work=COMMITTED, living=(living(),)), POLICY, "complete: commits"),
    "commits, with nobody to ask: complete": (
        look(work=COMMITTED, can_ask=False), ONE_LOOK, "complete: commits"),
    "commits that cancel each other out: not complete": (
        look(work=Work(new_commits=2, net_change=False)), POLICY, "probe"),
    "empty commits: not complete": (look(work=Work(empty=3)), POLICY, "probe"),
    "imported commits: not complete": (look(work=Work(imported=5)), POLICY, "probe"),
    "rewritten commits: not complete": (
        look(work=Work(copies=2, rewritten=2)), POLICY, "probe"),
    "guard's own rescue commits: not complete by themselves": (
        look(work=Work(rescued=2)), POLICY, "probe"),
    "commits, and an active team: wait": (
        look(work=COMMITTED, team=TEAM, living=(living("member"),)), POLICY, "wait 7200"),
    "commits, a team, part of the wait is over: wait for the rest": (
        look(work=COMMITTED, team=TEAM, waited_seconds=7000.0), POLICY, "wait 200"),
    "commits, a team, the wait is over: waiting": (
        look(work=COMMITTED, team=TEAM, waited_seconds=7200.0), POLICY, "waiting: team"),
    "commits, a team, no wait: waiting": (
        look(work=COMMITTED, team=TEAM), NO_WAIT, "waiting: team"),
    "commits, a team in which all hang: complete": (
        look(work=COMMITTED, team=TEAM, living=(living("member", 2 * HOURS),)),
        POLICY, "complete: commits"),
    "commits, a team in which one of two hangs: wait": (
        look(work=COMMITTED, team=TEAM, living=(living("member", 9e9), living("member"))),
        POLICY, "wait 7200"),
    "commits, a team without active members: complete": (
        look(work=COMMITTED, team=TEAM.model_copy(update={"active": 0})),
        POLICY, "complete: commits"),
}  # fmt: skip

OUTPUT: dict[str, Case] = {
    "auth: blocked": (look(output=said("auth")), POLICY, "blocked: auth"),
    "question: blocked": (look(output=said("question")), POLICY, "blocked: question"),
    "denied: blocked": (look(output=said("denied")), POLICY, "blocked: denied"),
    "limited: limited": (look(output=said("limited")), POLICY, "limited: limited"),
    "transient: limited": (look(output=said("transient")), POLICY, "limited: transient"),
    "turn limit: working": (look(output=said("turn_limit")), POLICY, "working: turn_limit"),
    "budget: working": (look(output=said("budget")), POLICY, "working: budget"),
    "context: working": (look(output=said("context")), POLICY, "working: context"),
    "ok: ask": (look(output=said("ok")), POLICY, "probe"),
    "crash: ask": (look(output=said("crash")), POLICY, "probe"),
    "unknown: ask": (look(output=said("unknown")), POLICY, "probe"),
    "not seen: ask": (look(), POLICY, "probe"),
    "limited, and a helper at work: limited": (
        look(output=said("limited"), living=(living(),)), POLICY, "limited: limited"),
    "limited, in one look: limited": (
        look(output=said("limited")), ONE_LOOK, "limited: limited"),
    **{
        f"{outcome}, with commits: complete": (
            look(output=said(outcome), work=COMMITTED), POLICY, "complete: commits")
        for outcome in ("auth", "question", "denied", "limited", "transient", "turn_limit",
                        "budget", "context", "crash", "unknown")
    },
}  # fmt: skip

ALIVE: dict[str, Case] = {
    "a process at work: wait without a probe": (look(living=(living(),)), POLICY, "wait 7200"),
    "a process at work, in one look: waiting": (
        look(living=(living(),)), ONE_LOOK, "waiting: alive"),
    "a process at work, no wait: waiting": (look(living=(living(),)), NO_WAIT, "waiting: alive"),
    "a process at work, the wait is over: waiting": (
        look(living=(living(),), waited_seconds=7200.0), POLICY, "waiting: alive"),
    "a process that was at work a moment ago: wait": (
        look(living=(living(idle=119.9),)), POLICY, "wait 7200"),
    "an idle process, such as a server: holds nothing": (
        look(living=(living(idle=120),)), POLICY, "probe"),
    "a server that was at work a moment ago: wait": (
        look(living=(SERVER.model_copy(update={"idle_seconds": 9.0}),)), POLICY, "wait 10"),
    "a server that is quiet: holds nothing": (look(living=(SERVER,)), POLICY, "probe"),
    "an idle process beside one at work: wait": (
        look(living=(living(idle=9e9), living())), POLICY, "wait 7200"),
    "a process that is idle within a longer window: wait": (
        look(living=(living(idle=300),)), Policy(progress_window_seconds=600), "wait 7200"),
    "a member of a team with a fresh lease, however quiet: wait": (
        look(living=(living("member", 2 * HOURS - 1),)), POLICY, "wait 7200"),
    "a member of a team, no wait: waiting": (
        look(living=(living("member"),), team=TEAM), NO_WAIT, "waiting: team"),
    "the agent itself at work: wait": (look(living=(living("agent"),)), POLICY, "wait 7200"),
    "the agent itself at work, no wait: working": (
        look(living=(living("agent"),)), NO_WAIT, "working: agent_alive"),
    "the agent itself at work, the wait is over: working": (
        look(living=(living("agent"), living()), waited_seconds=7200.0),
        POLICY, "working: agent_alive"),
    "the agent lives, idle, and its helper is at work, no wait: working": (
        look(living=(living("agent", 200), living())), NO_WAIT, "working: agent_alive"),
    "the agent hangs and its helper is at work, no wait: waiting": (
        look(living=(living("agent", 7200), living())), NO_WAIT, "waiting: alive"),
    "the agent lives and is idle: ask": (look(living=(living("agent", 200),)), POLICY, "probe"),
    "the agent lives and is idle, in one look: working": (
        look(living=(living("agent", 200),)), ONE_LOOK, "working: agent_alive"),
    "the agent lives and is idle, last round: working": (
        look(living=(living("agent", 200),), round=5, probed=True, probes=(answered("working"),)),
        POLICY, "working: agent_alive"),
    "the agent lives without progress for too long, last round: timeout": (
        look(living=(living("agent", 2 * HOURS),), round=5, probed=True,
             probes=(answered("working"),)), POLICY, "timeout: no_commits"),
    "a member without progress for two hours: hung": (
        look(living=(living("member", 2 * HOURS),)), POLICY, "timeout: hung"),
    "two members, both without progress: hung": (
        look(living=(living("member", 8000), living("member", 9000)), team=TEAM),
        POLICY, "timeout: hung"),
    "one of two members without progress: wait for the other": (
        look(living=(living("member", 9000), living("member", 10))), POLICY, "wait 7200"),
    "a hung member, and a process at work: wait": (
        look(living=(living("member", 9000), living())), POLICY, "wait 7200"),
    "a hung member, no wait: hung": (
        look(living=(living("member", 9000),)), ONE_LOOK, "timeout: hung"),
}  # fmt: skip


def asked(*probes: object, **different: object) -> Evidence:
    """A look after this round's probe."""
    return look(probed=True, probes=probes, **different)


LAST = {"round": 5}
PENDING = {"tasks_pending": ("1.2",)}

ASKS = {"needs_person": True, "question": "Which\n  database?"}
ANSWERS: dict[str, Case] = {
    "working, a person has to answer: blocked": (
        asked(answered("working", **ASKS)), POLICY, "blocked: question"),
    "waiting for an answer, nothing lives: blocked": (
        asked(answered("waiting", **ASKS)), POLICY, "blocked: question"),
    "work left, a person has to answer: blocked": (
        asked(answered("working", **ASKS), uncommitted=LEFT), POLICY, "blocked: question"),
    "waiting for an answer, but a process is at work: wait": (
        asked(answered("waiting", **ASKS), living=(living(),)), POLICY, "wait 7200"),
    "complete, and a question on top: nothing to do": (
        asked(answered("complete", **ASKS)), POLICY, "complete: nothing_to_do"),
    "commits, whatever it asks: commits": (
        asked(answered("working", **ASKS), work=COMMITTED), POLICY, "complete: commits"),
    "complete, nothing left: nothing to do": (
        asked(answered("complete")), POLICY, "complete: nothing_to_do"),
    "complete, the output was ok: nothing to do": (
        asked(answered("complete"), output=said("ok")), POLICY, "complete: nothing_to_do"),
    "complete, only the user's own files are dirty: nothing to do": (
        asked(answered("complete"), uncommitted=USERS), POLICY, "complete: nothing_to_do"),
    "complete, all boxes ticked: nothing to do": (
        asked(answered("complete"), open_tasks=0), POLICY, "complete: nothing_to_do"),
    "complete, an earlier check rescued: rescued": (
        asked(answered("complete"), work=Work(rescued=1)), POLICY, "complete: rescued"),
    "complete, nothing left, no wait: nothing to do": (
        asked(answered("complete")), NO_WAIT, "complete: nothing_to_do"),
    "complete, an open box, and nothing can change: timeout": (
        asked(answered("complete"), open_tasks=1), POLICY, "timeout: no_commits"),
    "complete, pending tasks: timeout": (
        asked(answered("complete", **PENDING)), POLICY, "timeout: no_commits"),
    "complete, the output was a crash: timeout": (
        asked(answered("complete"), output=said("crash")), POLICY, "timeout: crashed"),
    "complete, the output could not be read: timeout": (
        asked(answered("complete"), output=said("unknown")), POLICY, "timeout: no_commits"),
    "complete, commits were lost: timeout": (
        asked(answered("complete"), work=Work(lost=2)), POLICY, "timeout: no_commits"),
    "complete, but helpers are active: read as waiting, and nothing bears it out": (
        asked(answered("complete", agents_active=True)), POLICY, "timeout: no_commits"),
    "complete, but would go on: read as working": (
        asked(answered("complete", should_continue=True, **PENDING), uncommitted=LEFT),
        POLICY, "timeout: uncommitted"),
    "complete, work left: rescue": (
        asked(answered("complete"), uncommitted=LEFT), POLICY, "rescue"),
    "complete, something stashed: nothing to rescue": (
        asked(answered("complete"), uncommitted=Uncommitted(stashed=("2" * 40,))),
        POLICY, "timeout: uncommitted"),
    "complete, work left, open boxes: rescue": (
        asked(answered("complete"), uncommitted=LEFT, open_tasks=4), POLICY, "rescue"),
    "complete, work left, pending tasks: rescue": (
        asked(answered("complete", **PENDING), uncommitted=LEFT), POLICY, "rescue"),
    "complete, work left, the output was a crash: rescue": (
        asked(answered("complete"), uncommitted=LEFT, output=said("crash")), POLICY, "rescue"),
    "complete, work left, an idle server: rescue": (
        asked(answered("complete"), uncommitted=LEFT, living=(living(idle=500),)),
        POLICY, "rescue"),
    "complete, work left, a process at work since: wait": (
        asked(answered("complete"), uncommitted=LEFT, living=(living(),)), POLICY, "wait 7200"),
    "complete, work left, the agent itself lives: the round goes on": (
        asked(answered("complete"), uncommitted=LEFT, living=(living("agent", 200),)),
        POLICY, "wait 30, next round"),
    "complete, work left, no wait: timeout, and nothing is committed": (
        asked(answered("complete"), uncommitted=LEFT), NO_WAIT, "timeout: uncommitted"),
    "complete, work left, no rescue: not asked again for one": (
        asked(answered("complete"), uncommitted=LEFT), NO_RESCUE, "timeout: uncommitted"),
    "rescued: complete": (
        asked(answered("complete"), rescue=rescue()), POLICY, "complete: rescued"),
    "rescued, some held back: complete": (
        asked(answered("complete"), rescue=rescue(), uncommitted=LEFT),
        POLICY, "complete: rescued"),
    "rescued, with open boxes: complete": (
        asked(answered("complete"), rescue=rescue(), open_tasks=4), POLICY, "complete: rescued"),
    "rescued onto a branch of its own: timeout": (
        asked(answered("complete"), rescue=rescue(branch="guard/rescue/r-1"), uncommitted=LEFT),
        POLICY, "timeout: rescued"),
    "rescue refused: timeout": (
        asked(answered("complete"), rescue=rescue(0, reason="refused"), uncommitted=LEFT),
        POLICY, "timeout: rescue_refused"),
    "rescue refused, last round: timeout": (
        asked(answered("complete"), rescue=rescue(0, reason="refused"), uncommitted=LEFT, **LAST),
        POLICY, "timeout: rescue_refused"),
    "waiting, and nothing is alive: timeout": (asked(answered("waiting")), POLICY, "timeout: no_commits"),
    "waiting, nothing is alive, work left: timeout": (
        asked(answered("waiting"), uncommitted=LEFT), POLICY, "timeout: uncommitted"),
    "rescued onto a branch of its own, last round: rescued": (
        asked(answered("complete"), rescue=rescue(branch="guard/rescue/r-1"), uncommitted=LEFT, **LAST),
        POLICY, "timeout: rescued"),
    "a crash, and nothing left: crashed": (
        look(output=said("crash", exit_code=3)), ONE_LOOK, "timeout: crashed"),
    "a crash, and work left: crashed": (
        look(output=said("crash", exit_code=3), uncommitted=LEFT), ONE_LOOK, "timeout: crashed"),
    "a crash, and no answer: crashed": (
        asked(failed("timeout"), output=said("crash"), **LAST), POLICY, "timeout: crashed"),
    "a crash of an agent that guard ended: hung": (
        look(output=said("crash"), ended_by_guard="idle"), ONE_LOOK, "timeout: hung"),
    "waiting, last round: timeout": (
        asked(answered("waiting"), **LAST), POLICY, "timeout: no_commits"),
    "waiting, no wait: timeout": (asked(answered("waiting")), NO_WAIT, "timeout: no_commits"),
    "waiting, and an idle process bears it out: wait for it, then ask again": (
        asked(answered("waiting"), living=(living(idle=1200),)), POLICY, "wait 6000, next round"),
    "waiting, idle processes: wait until the newest has hung": (
        asked(answered("waiting"), living=(living(idle=9e9), living(idle=900), living(idle=200))),
        POLICY, "wait 7000, next round"),
    "waiting, an idle process, part of the wait is over: wait for the rest": (
        asked(answered("waiting"), living=(living(idle=200),), waited_seconds=7000.0),
        POLICY, "wait 200, next round"),
    "waiting, an idle process, the wait is over: waiting": (
        asked(answered("waiting"), living=(living(idle=200),), waited_seconds=7200.0),
        POLICY, "waiting: alive"),
    "waiting, an idle process, last round: waiting": (
        asked(answered("waiting"), living=(living(idle=200),), **LAST), POLICY, "waiting: alive"),
    "waiting, an idle process, no wait: waiting": (
        asked(answered("waiting"), living=(living(idle=200),)), NO_WAIT, "waiting: alive"),
    "waiting, the agent lives and is idle, no wait: working": (
        asked(answered("waiting"), living=(living("agent", 200),)), NO_WAIT,
        "working: agent_alive"),
    "waiting, a process that has been idle for too long: timeout": (
        asked(answered("waiting"), living=(living(idle=7200),)), POLICY, "timeout: no_commits"),
    "waiting, and only a server is alive: nothing bears it out": (
        asked(answered("waiting"), living=(SERVER,)), POLICY, "timeout: no_commits"),
    "working, and only a server is alive: timeout": (
        asked(answered("working"), living=(SERVER,)), POLICY, "timeout: no_commits"),
    "working with active helpers, an idle process: wait for it": (
        asked(answered("working", agents_active=True), living=(living(idle=200),)),
        POLICY, "wait 7000, next round"),
    "working, an idle process: look again": (
        asked(answered("working"), living=(living(idle=200),)), POLICY, "wait 30, next round"),
    "waiting in an earlier round, an idle process: ask again": (
        look(round=2, probes=(answered("waiting"),), living=(living(idle=200),)),
        POLICY, "probe"),
    "working, and nothing is alive: timeout": (asked(answered("working")), POLICY, "timeout: no_commits"),
    "working, last round: timeout": (
        asked(answered("working"), **LAST), POLICY, "timeout: no_commits"),
    "working, work left, last round: timeout": (
        asked(answered("working"), uncommitted=LEFT, **LAST), POLICY, "timeout: uncommitted"),
    "complete and doubted, last round: timeout": (
        asked(answered("complete"), open_tasks=1, **LAST), POLICY, "timeout: no_commits"),
    "working, and a ref has moved since it was asked: ask again": (
        asked(answered("working"), changed_since_probe=True), POLICY, "wait 30, next round"),
    "working, a ref has moved, last round: timeout": (
        asked(answered("working"), changed_since_probe=True, **LAST), POLICY,
        "timeout: no_commits"),
    "complete, an open box, an idle process: look again": (
        asked(answered("complete"), open_tasks=1, living=(living(idle=200),)),
        POLICY, "wait 30, next round"),
    "complete, work left, no rescue, an idle process: not asked again for one": (
        asked(answered("complete"), uncommitted=LEFT, living=(living(idle=500),)),
        NO_RESCUE, "timeout: uncommitted"),
    "complete, work left, no rescue, the agent itself lives: look again": (
        asked(answered("complete"), uncommitted=LEFT, living=(living("agent", 200),)),
        NO_RESCUE, "wait 30, next round"),
    "commits since the probe: complete": (
        asked(answered("working"), work=COMMITTED), POLICY, "complete: commits"),
}  # fmt: skip

FAILURES: dict[str, Case] = {
    **{
        f"{failure}: error at once": (asked(failed(failure)), POLICY, f"error: {failure}")
        for failure in ("no_cli", "no_session", "auth")
    },
    **{
        f"{failure}: uses up one probe": (asked(failed(failure)), POLICY, "wait 30, next round")
        for failure in ("timeout", "unreadable", "overloaded", "crashed")
    },
    **{
        f"{failure}, last round: timeout": (
            asked(failed(failure), **LAST), POLICY, "timeout: no_answer")
        for failure in ("timeout", "unreadable", "crashed")
    },
    "unreadable twice: not asked a third time": (
        asked(failed("unreadable"), failed("unreadable"), round=2), POLICY, "timeout: no_answer"),
    "unreadable, then no answer in time, then unreadable: not asked again": (
        asked(failed("unreadable"), failed("timeout"), failed("unreadable"), round=3),
        POLICY, "timeout: no_answer"),
    "no answer in time, then unreadable: asked once more": (
        asked(failed("timeout"), failed("unreadable"), round=2), POLICY, "wait 30, next round"),
    "unreadable, then working: timeout": (
        asked(failed("unreadable"), answered("working"), round=2), POLICY,
        "timeout: no_commits"),
    "no answer in time, again and again: the service may come back": (
        asked(failed("timeout"), failed("timeout"), round=2), POLICY, "wait 30, next round"),
    "hung, and the probe does not end either: ask once more": (
        asked(failed("timeout"), ended_by_guard="idle"), POLICY, "wait 30, next round"),
    "hung, and no second probe ends: hung": (
        asked(failed("timeout"), failed("timeout"), ended_by_guard="idle", round=2), POLICY,
        "timeout: hung"),
    "limited: limited at once": (asked(failed("limited")), POLICY, "limited: probe_limited"),
    "overloaded, last round: limited": (
        asked(failed("overloaded"), **LAST), POLICY, "limited: outage"),
    "overloaded, then no answer in time, last round: limited": (
        asked(failed("overloaded"), failed("timeout"), **LAST), POLICY, "limited: outage"),
    "overloaded, then an answer, then none, last round: timeout": (
        asked(failed("overloaded"), answered("working"), failed("timeout"), **LAST),
        POLICY, "timeout: no_answer"),
    "overloaded, then an answer, last round: timeout": (
        asked(failed("overloaded"), answered("working"), **LAST), POLICY, "timeout: no_commits"),
    "no answer, work left, last round: timeout": (
        asked(failed("timeout"), uncommitted=LEFT, **LAST), POLICY, "timeout: uncommitted"),
    "lasting, with commits since: complete": (
        asked(failed("no_cli"), work=COMMITTED), POLICY, "complete: commits"),
    "lasting, in an earlier round: ask again": (
        look(probes=(failed("no_cli"),), round=2), POLICY, "probe"),
    "a probe that is said to have been made and is not there: the round goes on": (
        asked(), POLICY, "wait 30, next round"),
}  # fmt: skip

ROUNDS: dict[str, Case] = {
    "not asked in this round: ask": (
        look(round=2, probes=(answered("working"),)), POLICY, "probe"),
    "the last round has a probe, too": (look(round=5), POLICY, "probe"),
    "more rounds than before, if the setting says so": (
        asked(failed("overloaded"), **LAST), Policy(max_probes=6), "wait 30, next round"),
    "fewer rounds, if the setting says so": (
        asked(answered("working"), round=3), Policy(max_probes=3), "timeout: no_commits"),
    "the interval is a setting": (
        asked(failed("timeout")), Policy(probe_interval_seconds=7), "wait 7, next round"),
    "no probe, but perhaps a commit lands: another round": (
        look(agent_ended=False), NO_PROBE, "wait 30, next round"),
    "no probe, and the agent has ended: at once": (look(), NO_PROBE, "timeout: no_commits"),
    "no probe, the agent has ended, work left: at once": (
        look(uncommitted=LEFT), NO_PROBE, "timeout: uncommitted"),
    "no probe, the agent has ended, an idle process lives: at once": (
        look(living=(living(idle=500),)), NO_PROBE, "timeout: no_commits"),
    "nobody to ask, and the agent has ended: at once": (
        look(can_ask=False), POLICY, "timeout: no_commits"),
    "nobody to ask, an idle server that the agent left: at once": (
        look(can_ask=False, living=(living(idle=500),)), POLICY, "timeout: no_commits"),
    "nobody to ask, an idle server, and nobody saw the agent end: at once": (
        look(can_ask=False, agent_ended=False, living=(living(idle=500),)), POLICY,
        "timeout: no_commits"),
    "nobody to ask, and the agent itself is idle: another round": (
        look(can_ask=False, agent_ended=False, living=(living("agent", 500),)), POLICY,
        "wait 30, next round"),
    "nobody to ask, and nobody saw the agent end: another round": (
        look(can_ask=False, agent_ended=False), POLICY, "wait 30, next round"),
    "nobody to ask, last round: timeout": (
        look(can_ask=False, agent_ended=False, **LAST), POLICY, "timeout: no_commits"),
    "one look, nothing there: timeout": (look(), ONE_LOOK, "timeout: no_commits"),
    "one look, work left: timeout": (look(uncommitted=LEFT), ONE_LOOK, "timeout: uncommitted"),
    "no wait: one probe": (look(), NO_WAIT, "probe"),
    "ended because it hung: timeout": (
        asked(answered("working"), ended_by_guard="idle", uncommitted=LEFT, **LAST),
        POLICY, "timeout: hung"),
    "no wait, asked: timeout": (asked(failed("timeout")), NO_WAIT, "timeout: no_answer"),
}  # fmt: skip

TABLES = {"first": FIRST, "output": OUTPUT, "alive": ALIVE, "answer": ANSWERS, "probe": FAILURES,
          "rounds": ROUNDS}  # fmt: skip
CASES = {f"{t}: {name}": case for t, table in TABLES.items() for name, case in table.items()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_decision(case: Case) -> None:
    evidence, policy, expected = case
    assert decision(evidence, policy) == expected


def test_the_order_of_the_rules() -> None:
    assert [name for name, _ in RULES] == [
        "helpers killed with the session",
        "new commits",
        "the agent's output",
        "something is at work",
        "a member hangs",
        "the agent went round in circles",
        "the probe failed for good",
        "the session waits for a helper",
        "the session needs the user",
        "the session says complete",
        "ask the session",
        "another round",
        "give up",
    ]


def test_the_trail_ends_at_the_rule_that_decided() -> None:
    assert judge(look(work=COMMITTED), POLICY).trail == (
        "helpers killed with the session",
        "new commits",
    )
    assert judge(look(), ONE_LOOK).trail == tuple(name for name, _ in RULES)


RETRIES: dict[str, Evidence] = {
    "commits": look(output=said("limited", retry_at=LATER), work=COMMITTED),
    "output": look(output=said("limited", retry_at=LATER)),
    "helpers killed by the limit": look(output=said("limited", retry_at=LATER, killed=("a",))),
    "probe limited": asked(failed("limited", retry_at=LATER)),
    "outage": asked(failed("overloaded", retry_at=LATER), failed("timeout"), **LAST),
}


@pytest.mark.parametrize("evidence", RETRIES.values(), ids=RETRIES)
def test_the_end_of_a_limit_is_kept(evidence: Evidence) -> None:
    found = judge(evidence, POLICY).decision
    assert isinstance(found, Verdict)
    assert found.retry_at == LATER


DETAILS = {
    "3 background jobs killed with the session: a, b, c": look(
        output=said("interrupted", killed=("a", "b", "c"))
    ),
    "2 new commits": look(work=COMMITTED),
    "commits are there, but team builders has 1 active member": look(work=COMMITTED, team=TEAM),
    "make, cc at work": look(living=(living(), living(name="cc"), living(idle=500, name="vite"))),
    "ann is alive without progress for 150 min": look(living=(living("member", 9000, "ann"),)),
    "ask the session, probe 3 of 5": look(probes=(answered("working"),) * 2, round=3),
    "round 1 of 5: no new commits, and the session says waiting": asked(
        answered("waiting"), changed_since_probe=True),
    "the agent says it is done, and nothing was left; it claims 7 commits, and git has 0": asked(
        answered("complete", commits_made=7)),
    "no new commits, and the session says working; it claims 1 commit, and git has 0": asked(
        answered("working", commits_made=1)),
    "the new commits cancel each other out, and the session says working": asked(
        answered("working"), work=Work(new_commits=2, net_change=False)),
    "no commits, and work was left uncommitted; it claims 7 commits, and git has 0": asked(
        answered("working", commits_made=7), uncommitted=LEFT),
    "Which database?": asked(answered("working", **ASKS)),
    "the session does not say what it needs": asked(answered("working", needs_person=True)),
    "round 1 of 5: the probe failed: unreadable": asked(failed("unreadable")),
    "the session waits for helpers, and make is alive, idle for 5 min": asked(
        answered("waiting"), living=(living(idle=300),)),
    "1 commit by the rescue": asked(answered("complete"), rescue=rescue()),
    "refused: 0 commits": asked(answered("complete"), rescue=rescue(0, reason="refused"), **LAST,
                                uncommitted=LEFT),
}  # fmt: skip


@pytest.mark.parametrize("detail", DETAILS)
def test_a_decision_says_why(detail: str) -> None:
    assert judge(DETAILS[detail], POLICY).decision.detail == detail


def test_the_evidence_has_what_a_probe_said() -> None:
    seen = asked(answered("complete"), answered("complete", message="All done.", commits_made=7))
    assert [fact.fact for fact in facts(seen) if fact.source == "probe"] == [
        "says complete",
        "says complete: All done.",
        "claims 7 commits; git has 0",
    ]


HOLDING: dict[str, tuple[Living, bool]] = {
    "a process at work": (living(idle=0), True),
    "a process within the window": (living(idle=119), True),
    "an idle process": (living(idle=120), False),
    "the agent at work": (living("agent"), True),
    "the agent, idle": (living("agent", 120), False),
    "a quiet member": (living("member", 7199), True),
    "a hung member": (living("member", 7200), False),
}


@pytest.mark.parametrize(("one", "expected"), HOLDING.values(), ids=HOLDING)
def test_what_a_verdict_waits_for(one: Living, expected: bool) -> None:
    assert is_holding(one, POLICY) == expected


COMMITTING: dict[str, tuple[Evidence, Policy, bool]] = {
    "nothing alive": (look(), POLICY, True),
    "an idle server": (look(living=(living(idle=500),)), POLICY, True),
    "a hung member": (look(living=(living("member", 9000),)), POLICY, True),
    "a process at work": (look(living=(living(),)), POLICY, False),
    "a member": (look(living=(living("member", 500),)), POLICY, False),
    "the agent at work": (look(living=(living("agent"),)), POLICY, False),
    "the agent, idle": (look(living=(living("agent", 500),)), POLICY, False),
    "the agent, hung": (look(living=(living("agent", 7200),)), POLICY, True),
    "no wait": (look(), NO_WAIT, False),
    "no rescue": (look(), NO_RESCUE, False),
}


@pytest.mark.parametrize(("evidence", "policy", "expected"), COMMITTING.values(), ids=COMMITTING)
def test_when_guard_may_commit(evidence: Evidence, policy: Policy, expected: bool) -> None:
    assert may_commit(evidence, policy) == expected


STALLED = Verdict("timeout", "uncommitted", "no commits, and work was left uncommitted")
SETTLED = {
    "no rescue": (STALLED, look(), "uncommitted"),
    "all rescued": (STALLED, look(rescue=rescue()), "rescued"),
    "all on a rescue branch": (STALLED, look(rescue=rescue(branch="b"), uncommitted=LEFT), "rescued"),
    "a crash, all rescued": (Verdict("timeout", "crashed", "x"), look(rescue=rescue()), "rescued"),
    "refused": (STALLED, look(rescue=rescue(0, reason="refused")), "rescue_refused"),
    "nothing to rescue": (STALLED, look(rescue=rescue(0, reason="nothing")), "uncommitted"),
    "a stash is left": (
        STALLED, look(rescue=rescue(), uncommitted=Uncommitted(stashed=("a" * 40,))), "uncommitted"),
    "it hung": (Verdict("timeout", "hung", "x"), look(rescue=rescue()), "hung"),
    "no stall": (Verdict("error", "no_session", "x"), look(rescue=rescue()), "no_session"),
}  # fmt: skip


@pytest.mark.parametrize(("verdict", "seen", "reason"), SETTLED.values(), ids=SETTLED)
def test_the_final_rescue_settles_the_reason(verdict: Verdict, seen: Evidence, reason: str) -> None:
    found = settle(verdict, seen)
    assert (found.status, found.reason) == (verdict.status, reason)


HELD = rescue().model_copy(update={"held_back": (HeldBack(path=".env", why="secret"),)})


def test_a_rescue_that_held_something_back_did_not_save_everything() -> None:
    assert settle(STALLED, look(rescue=HELD)).reason == "rescue_refused"


ENDS = {
    "exit code 3": said("crash", reason="exit_3", exit_code=3),
    "SIGKILL": said("crash", reason="sigkill", exit_code=-9),
    "SIGTERM": said("crash", reason="sigterm", exit_code=143),
    "no_result": said("crash", reason="no_result", exit_code=0),
}


@pytest.mark.parametrize(("words", "ended"), ENDS.items(), ids=ENDS)
def test_a_crash_is_told_with_its_exit_code_or_signal(words: str, ended: Classification) -> None:
    decision = judge(look(output=ended), ONE_LOOK).decision
    assert words in decision.detail


WORDS = {
    "question": said("question", words="PostgreSQL or SQLite?"),
    "denied": said("denied", denied_tools=("Bash", "Write"), words="I need permission."),
    "auth": said("auth", reason="not_logged_in", words="Invalid API key"),
}


@pytest.mark.parametrize(("reason", "ended"), WORDS.items(), ids=WORDS)
def test_the_words_of_a_block_are_in_the_verdict(reason: str, ended: Classification) -> None:
    decision = judge(look(output=ended), POLICY).decision
    assert isinstance(decision, Verdict)
    assert (decision.status, decision.reason) == ("blocked", reason)
    assert (ended.words or "") in decision.detail
    assert ", ".join(ended.denied_tools) in decision.detail


LINES = {
    ("timeout", "no_commits", "no new commits"): "stalled: no_commits (no new commits)",
    ("limited", "limited", "usage_limit"): "limited (usage_limit)",
    ("blocked", "question", "question"): "blocked: question",
    ("complete", "commits", ""): "complete: commits",
    ("error", "error", "error"): "error",
}


@pytest.mark.parametrize(("verdict", "line"), LINES.items(), ids=LINES.values())
def test_a_line_for_people_says_nothing_twice(verdict: tuple[str, str, str], line: str) -> None:
    assert verdict_line(*verdict) == line
