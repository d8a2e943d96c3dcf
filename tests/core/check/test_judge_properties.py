"""What holds of every judgement, whatever the evidence is, and of every check that is driven by it.

The evidence is drawn at random from all that can be in it, likely or not, with a fixed seed.
"""

from functools import cache
from random import Random
from typing import Any, get_args

from guard.core.check.evidence import Evidence, Living, Policy, TeamEvidence
from guard.core.check.holders import is_holding, may_commit, may_go_on
from guard.core.check.judge import RULES, Step, Verdict, judge
from guard.core.classify import Outcome
from guard.core.probe.answer import ProbeFailure, ProbeResult
from guard.core.snapshots.snapshot import Rescue
from guard.core.work.count import Work
from guard.core.work.leftovers import Uncommitted
from tests.support.evidence import LEFT, answered, failed, living, look, rescue, said

SITUATIONS = 6000
CHECKS = 1500
_SECONDS = (0.0, 1.0, 60.0, 119.0, 120.0, 600.0, 7199.0, 7200.0, 1e6)
_LEFTOVERS = (Uncommitted(), Uncommitted(users=2), LEFT)


def any_living(random: Random) -> Living:
    kind: Any = random.choice(("agent", "process", "member"))
    return living(kind, random.choice(_SECONDS))


def any_probe(random: Random) -> ProbeResult:
    if random.random() < 0.3:
        return failed(random.choice(get_args(ProbeFailure)))
    status: Any = random.choice(("complete", "complete", "waiting", "working"))
    return answered(
        status,
        agents_active=random.random() < 0.2,
        should_continue=random.random() < 0.3,
        needs_person=random.random() < 0.1,
        tasks_pending=random.choice(((), (), ("1.1",))),
    )


def any_work(random: Random) -> Work:
    few = (0, 0, 1, 3)
    return Work(
        new_commits=random.choice((0, 0, 2)),
        net_change=random.random() < 0.7,
        lost=random.choice(few),
        rescued=random.choice(few),
        imported=random.choice(few),
        empty=random.choice(few),
    )


def any_rescue(random: Random) -> Rescue | None:
    branch = random.choice((None, "guard/rescue/r-1"))
    return rescue(random.choice((0, 1, 3)), branch) if random.random() < 0.3 else None


def any_output(random: Random) -> Any:
    killed = ("npm test",) if random.random() < 0.1 else ()
    outcome = random.choice(("ok", "ok", "ok", *get_args(Outcome)))
    return said(outcome, killed=killed) if random.random() < 0.7 else None


def any_evidence(random: Random, **fixed: Any) -> Evidence:
    drawn = {
        "round": random.randint(1, 6),
        "probed": random.random() < 0.7,
        "waited_seconds": random.choice(_SECONDS),
        "work": any_work(random),
        "uncommitted": random.choice(_LEFTOVERS),
        "output": any_output(random),
        "agent_ended": random.random() < 0.5,
        "can_ask": random.random() < 0.7,
        "living": tuple(any_living(random) for _ in range(random.choice((0, 0, 1, 3)))),
        "team": random.choice((None, None, *(TeamEvidence(name="t", active=n) for n in (0, 1)))),
        "probes": tuple(any_probe(random) for _ in range(random.randint(0, 5))),
        "open_tasks": random.choice((None, 0, 2)),
        "rescue": any_rescue(random),
        "ended_by_guard": random.choice((*[None] * 14, "looping")),
    }
    return look(**{**drawn, **fixed})


def any_policy(random: Random) -> Policy:
    return Policy(
        max_probes=random.randint(1, 6),
        probe_interval_seconds=random.choice(_SECONDS),
        progress_window_seconds=random.choice(_SECONDS),
        max_wait_seconds=random.choice(_SECONDS),
        probe=random.random() < 0.8,
        wait=random.random() < 0.8,
        rescue=random.random() < 0.8,
    )


@cache
def situations() -> list[tuple[Evidence, Policy]]:
    random = Random(1)
    return [
        (any_evidence(random), any_policy(random) if random.random() < 0.7 else Policy())
        for _ in range(SITUATIONS)
    ]


def verdicts(status: str) -> list[tuple[Evidence, Policy, Verdict]]:
    ruled = ((seen, policy, judge(seen, policy).decision) for seen, policy in situations())
    found = [
        (seen, policy, decision)
        for seen, policy, decision in ruled
        if isinstance(decision, Verdict) and decision.status == status
    ]
    assert len(found) > 20, "the situations have to reach this verdict, or nothing is tested"
    return found


def test_it_always_decides_and_the_trail_is_the_order_of_the_rules() -> None:
    order = tuple(name for name, _ in RULES)
    deciding = set()
    for seen, policy in situations():
        ruling = judge(seen, policy)
        assert ruling.trail == order[: len(ruling.trail)]
        assert judge(seen, policy) == ruling
        deciding.add(ruling.trail[-1])
    assert deciding == set(order), "every rule decides something"


def test_complete_by_commits_has_commits_and_nothing_that_was_killed() -> None:
    for seen, _, verdict in verdicts("complete"):
        # What ended with an agent that guard ended for its loop had to.
        assert seen.ended_by_guard or not (seen.output and seen.output.killed)
        if verdict.reason == "commits":
            assert seen.work.new_commits
            assert seen.work.net_change


def test_complete_without_commits_has_a_claim_with_nothing_against_it() -> None:
    for seen, policy, verdict in verdicts("complete"):
        if verdict.reason == "commits":
            continue
        claim = seen.probes[-1].answer
        assert claim is not None
        assert seen.probed
        assert claim.reading() == "complete"
        assert not any(is_holding(one, policy) for one in seen.living)
        if seen.rescue is not None and seen.rescue.commits and seen.rescue.branch is None:
            assert verdict.reason == "rescued"
            continue
        against = (seen.uncommitted.has_any, claim.tasks_pending, seen.open_tasks, seen.work.lost)
        assert not any(against)
        assert seen.output is None or seen.output.outcome == "ok"
        assert verdict.reason == ("rescued" if seen.work.rescued else "nothing_to_do")


def test_waiting_and_working_are_proved_by_something_alive_or_by_the_output() -> None:
    for seen, policy, _ in verdicts("waiting"):
        team = seen.team is not None and seen.team.active > 0
        assert team or any(
            is_holding(one, policy) or (seen.probed and may_go_on(one, policy))
            for one in seen.living
        )
    for seen, _, verdict in verdicts("working"):
        agent = any(one.kind == "agent" for one in seen.living)
        assert agent if verdict.reason == "agent_alive" else seen.output is not None


def test_a_stall_has_nothing_at_work_no_commits_and_no_better_reason() -> None:
    for seen, policy, _ in verdicts("timeout"):
        assert not any(is_holding(one, policy) for one in seen.living)
        assert not (seen.work.new_commits and seen.work.net_change)
        outcome = seen.output.outcome if seen.output is not None else "ok"
        ends = ("ok", "crash", "unknown", *(("interrupted",) if seen.ended_by_guard else ()))
        assert outcome in ends


def test_a_rescue_is_never_made_under_the_hands_of_something_alive() -> None:
    rescues = 0
    for seen, policy in situations():
        found = judge(seen, policy).decision
        busy = any(is_holding(one, policy) for one in seen.living)
        assert not (busy and may_commit(seen, policy))
        if isinstance(found, Step) and found.action == "rescue":
            rescues += 1
            assert not busy
            assert may_commit(seen, policy)
            assert (policy.wait, policy.rescue, seen.rescue) == (True, True, None)
            assert seen.uncommitted.has_any
    assert rescues > 20


def test_every_option_is_obeyed() -> None:
    for seen, policy in situations():
        found = judge(seen, policy).decision
        if isinstance(found, Step):
            assert found.action != "probe" or (policy.probe and seen.can_ask and not seen.probed)
            assert found.action != "wait" or policy.wait
            assert found.seconds <= max(policy.max_wait_seconds, policy.probe_interval_seconds)


def drive(random: Random, policy: Policy) -> int:
    """The steps are done as `guard check` does them, in a world that is another one at every look; how many they were."""
    probes: list[ProbeResult] = []
    number, probed, done, waited, steps = 1, False, None, 0.0, 0
    while True:
        state = {"round": number, "probed": probed, "waited_seconds": waited, "rescue": done}
        found = judge(any_evidence(random, probes=tuple(probes), **state), policy).decision
        if isinstance(found, Verdict):
            return steps
        steps += 1
        if found.action == "probe":
            probes, probed = [*probes, any_probe(random)], True
        elif found.action == "rescue":
            done = rescue(random.choice((0, 1)))
        else:
            waited += max(1.0, found.seconds / random.randint(1, 4)) if found.holds else 0
        if found.next_round:
            number, probed, done = number + 1, False, None
        assert max(len(probes), number) <= policy.max_probes
        assert waited <= policy.max_wait_seconds + 1


def test_a_check_ends_whatever_the_world_does() -> None:
    random = Random(2)
    for _ in range(CHECKS):
        policy = any_policy(random)
        assert drive(random, policy) <= 3 * policy.max_probes + 200


def test_a_helper_that_never_stops_is_waited_for_once_and_as_long_as_the_setting_says() -> None:
    waited, steps = 0.0, 0
    while True:
        found = judge(look(living=(living(),), waited_seconds=waited), Policy()).decision
        if isinstance(found, Verdict):
            break
        waited, steps = waited + found.seconds, steps + 1
    assert (found.status, steps, waited) == ("waiting", 1, 7200.0)
