"""Random sequences of legal and illegal requests: what must hold after every one of them."""

from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from guard.core.coordinator import decide_agents, decide_support, decide_tasks
from guard.core.coordinator.agent_events import AgentsEvent
from guard.core.coordinator.requests import AuditedCommit, Refusal
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import TaskEvent
from guard.core.coordinator.upkeep_events import TaskRolledBack
from tests.support.plans import HEAD, Desk, expert, plan, task

TASKS = ("A", "B", "C", "D", "E")
PLANS = (
    plan(
        task("A"),
        task("B", "A"),
        task("C", "A"),
        task("D", "B", "C"),
        task("E"),
        agents=(expert(),),
    ),
    plan(
        task("B", priority=3),
        task("A", "B"),
        task("C"),
        task("D"),
        task("E", "D"),
        agents=(expert(), expert("other")),
    ),
    plan(task("A")),
)
AGENTS = ("a1", "a2", "a3", "a4")

STEPS = 80


def requests(random: Random, state: Coordinator) -> list[Any]:
    """One request of every kind, about what there is as often as about what there is not."""

    def one(*groups: Iterable[str]) -> str:
        known = [name for group in groups for name in group]
        return random.choice(known) if known and random.random() < 0.8 else random.choice(TASKS)

    agent = random.choice(AGENTS)
    free, ready = one(state.available_tasks), one(state.pending_audit)
    auditor = one([a for a, audited in state.active_auditors.items() if audited == ready], AGENTS)
    active, run = one(state.active_agents), one(state.active_supporting_agents)
    analyst, vague = one(state.active_business_analysts), one(state.pending_expansions)
    expanded = state.active_business_analysts.get(analyst, vague)
    question = one(q.question_id for q in state.pending_divine_questions)
    repairing = [a for a, known in state.active_agents.items() if known.type == "remediation"]
    support = random.choice(["db-expert", "other"])
    lose: Any = random.choice([decide_agents.time_out_agent, decide_agents.crash_agent])
    sure: Any = random.choice(["HIGH", "MEDIUM", "LOW"])
    return [
        decide_tasks.dispatch_developer(task_id=free, agent_id=agent),
        decide_tasks.submit_for_audit(task_id=one(state.active_developers.values())),
        decide_agents.dispatch_agent(task_id=ready, agent_id=agent),
        decide_tasks.pass_audit(
            task_id=ready, agent_id=auditor, evidence_summary="green", no_commits=True
        ),
        decide_tasks.fail_audit(task_id=ready, agent_id=auditor),
        decide_tasks.block_audit(task_id=ready, agent_id=auditor, issue="red"),
        decide_agents.dispatch_remediation(
            agent_id=agent, issue=random.choice([None, None, "red"])
        ),
        decide_agents.dispatch_agent(agent_type="health_auditor", agent_id=agent),
        decide_agents.pass_health_audit(agent_id=agent),
        decide_agents.fail_health_audit(agent_id=agent),
        decide_agents.record_checkpoint(agent_id=active, checkpoint="half"),
        decide_agents.ask_question(agent_id=active, question="?"),
        decide_agents.answer_question(question_id=question, response="!"),
        decide_support.assess_tasks(
            needs_expansion=(one(state.available_tasks, state.blocked_tasks),)
        ),
        decide_support.dispatch_analyst(task_id=vague, agent_id=agent),
        decide_support.expand_task(task_id=expanded, agent_id=analyst, specification={}),
        decide_support.ask_clarification(task_id=expanded, agent_id=analyst, question="?"),
        decide_support.delegate_request(
            agent_id=support, delegating_agent=active, request_type="task", request_summary="x"
        ),
        decide_support.delegate_request(
            agent_id=support, delegating_agent=active, request_type="task", request_summary="y"
        ),
        decide_support.complete_support(run_id=run, confidence=sure),
        decide_support.fail_support(run_id=run, reason="no"),
        decide_support.decline_support(
            run_id=run, suggested=random.choice([None, "other", "db-expert"])
        ),
        decide_agents.complete_agent(agent_id=one(repairing, state.active_agents)),
        lose(agent_id=active),
        decide_agents.start_agent(agent_id=one([active], [run]), incarnation=2),
        decide_agents.pause_agent(agent_id=one([active], [run]), because="limited"),
        decide_agents.request_checkpoints(words=((active, "half"),)),
        random.choice(PLANS),
    ]


def likely(random: Random, state: Coordinator) -> Any:
    """What brings the plan on comes more often than the rest, or no story would come far."""
    found = requests(random, state)
    if state.infrastructure_blocked and random.random() < 0.3:
        return random.choice([decide_agents.pass_health_audit(agent_id="h"), found[6], found[22]])
    if state.pending_divine_questions and random.random() < 0.3:
        return "answer"
    if random.random() < 0.15:
        return random.choice(["tick", "later", "roll back", "tick", "later"])
    # The first bring tasks on; of the requests to supporting agents there are more than they may take at once.
    return random.choice(random.choice([found[:4], found[:4], found[17:19], found]))


def step(desk: Desk, what: Any) -> None:
    state = desk.state
    if what == "tick":
        desk.tick(*list(state.active_agents)[:1])
    elif what == "later":
        desk.waits(minutes=9)
    elif what == "answer" and state.pending_divine_questions:
        desk.ask(
            decide_agents.answer_question(
                question_id=state.pending_divine_questions[0].question_id, response="!"
            )
        )
    elif what == "roll back" and state.completed_tasks:
        last = state.completed_tasks[-1]
        draft = partial(TaskRolledBack, task_id=last, from_sha=HEAD, to_sha=HEAD, reason="")
        desk.take(desk.terms().events([draft]))
    elif not isinstance(what, str):
        before = desk.state
        if isinstance(desk.ask(what), Refusal):
            assert desk.state == before


def holds(desk: Desk, state: Coordinator) -> None:
    """What is true whatever happened."""
    planned = {one.id for one in state.tasks}
    working = {one.task_id for one in state.in_progress_tasks}
    expanding, blocked = set(state.pending_expansions), set(state.blocked_tasks)
    available, done = set(state.available_tasks), set(state.completed_tasks) & planned
    places = [working, expanding, blocked, available, done]
    assert set().union(*places) == planned
    assert sum(map(len, places)) == len(planned), "a task is in exactly one place"
    awaiting = {one.task_id for one in state.in_progress_tasks if one.status == "awaiting-audit"}
    assert set(state.pending_audit) == awaiting, "and one that awaits its audit in two"
    for one in (state.completed_tasks, state.pending_audit, state.available_tasks):
        assert len(set(one)) == len(one)
    assert state.active_actor_count == len(state.active_developers) + len(state.active_auditors)
    assert state.active_actor_count <= desk.limits.active_developers
    assert len(set(state.active_developers.values())) == len(state.active_developers)
    for task_id in state.active_developers.values():
        assert task_id in working, "nobody works on what is not in progress"
    busy = [run.agent_id for run in state.active_supporting_agents.values()]
    assert all(busy.count(one) <= desk.limits.max_concurrent_per_agent for one in busy)
    for task_id, waits in state.blocked_tasks.items():
        assert waits, task_id
        assert not set(waits) & set(state.completed_tasks)
    assert state.total_tasks == len(state.tasks)
    assert 0 <= state.remediation_attempt_count <= desk.limits.remediation_attempts
    assert not state.plan_complete or planned <= set(state.completed_tasks)
    assert state.next_available_tasks == state.available_tasks[:10]


def completions(desk: Desk) -> None:
    """A task becomes complete by a PASS and by nothing else."""
    told = [event.model_dump() for event in desk.log]
    passed = [one["task_id"] for one in told if one["type"] == "task_complete"]
    rolled = [one["task_id"] for one in told if one["type"] == "task_rolled_back"]
    assert set(desk.state.completed_tasks) <= set(passed)
    for task_id in set(passed):
        left = passed.count(task_id) - rolled.count(task_id)
        assert left == (task_id in desk.state.completed_tasks)


@settings(max_examples=80)
@given(st.integers(0, 2**32))
def test_whatever_is_asked_the_state_holds_together(seed: int) -> None:
    random, desk = Random(seed), Desk(commit=AuditedCommit(HEAD))
    desk.does(PLANS[0])
    for _ in range(STEPS):
        step(desk, likely(random, desk.state))
        holds(desk, desk.state)
        assert desk.folded() == desk.state, "the log alone gives the same"
    completions(desk)
    assert len({event.id for event in desk.log}) == len(desk.log)
    assert all(one.at <= two.at for one, two in pairwise(desk.log))


def test_the_stories_come_everywhere() -> None:
    """What never happens in them would not be tested."""
    found: set[str] = set()
    for seed in range(80):
        random, desk = Random(seed), Desk(commit=AuditedCommit(HEAD))
        desk.does(PLANS[0])
        for _ in range(STEPS):
            step(desk, likely(random, desk.state))
        found |= {event.type for event in desk.log}
    never = {"rollback_started", "rollback_failed", "rollback_blocked", "validation_complete"}
    names = {cls.model_fields["type"].default for cls in get_args(TaskEvent | AgentsEvent)}
    assert names - found - never == set()
