"""Random sequences of legal and illegal requests: what must hold after every one of them."""

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from guard.core.coordinator.requests import (
    AgentDone,
    AgentLost,
    Answer,
    Ask,
    Assess,
    Block,
    Checkpoint,
    Clarify,
    Delegate,
    DispatchAgent,
    DispatchAnalyst,
    DispatchDeveloper,
    DispatchRemediation,
    Expand,
    Fail,
    Healthy,
    OutOfScope,
    Pass,
    ReadyForAudit,
    SupportDone,
    SupportFailed,
    Unhealthy,
)
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.terms import Commit, Refusal
from guard.core.events.plan_upkeep import TaskRolledBack
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
    plan(task("A"), task("B")),
)
AGENTS = ("a1", "a2", "a3", "a4")

tasks, agents = st.sampled_from(TASKS), st.sampled_from(AGENTS)
runs = st.integers(1, 12).map(lambda number: f"db-expert-run-{number}")
questions = st.integers(1, 12).map(lambda number: f"question-{number}")

requests: st.SearchStrategy[Any] = st.one_of(
    st.builds(DispatchDeveloper, task_id=tasks, agent_id=agents),
    st.builds(DispatchDeveloper, task_id=tasks, agent_id=agents),
    st.builds(ReadyForAudit, task_id=tasks),
    st.builds(ReadyForAudit, task_id=tasks),
    st.builds(DispatchAgent, task_id=tasks, agent_id=agents),
    st.builds(Pass, task_id=tasks, agent_id=agents),
    st.builds(Pass, task_id=tasks, agent_id=agents),
    st.builds(Fail, task_id=tasks, agent_id=agents),
    st.builds(Block, task_id=tasks, agent_id=agents, issue=st.just("red")),
    st.builds(DispatchRemediation, agent_id=agents, issue=st.sampled_from([None, "red"])),
    st.builds(DispatchAgent, agent_type=st.just("health_auditor"), agent_id=agents),
    st.builds(Healthy, agent_id=agents),
    st.builds(Unhealthy, agent_id=agents),
    st.builds(Checkpoint, agent_id=agents, checkpoint=st.just("half")),
    st.builds(Ask, agent_id=agents, question=st.just("?")),
    st.builds(Answer, question_id=questions, response=st.just("!")),
    st.builds(Assess, needs_expansion=st.lists(tasks, max_size=2).map(tuple)),
    st.builds(DispatchAnalyst, task_id=tasks, agent_id=agents),
    st.builds(Expand, task_id=tasks, agent_id=agents, specification=st.just({})),
    st.builds(Clarify, task_id=tasks, agent_id=agents, question=st.just("?")),
    st.builds(
        Delegate,
        agent_id=st.sampled_from(["db-expert", "other"]),
        delegating_agent=agents,
        request_type=st.just("task"),
        request_summary=st.just("help"),
    ),
    st.builds(SupportDone, run_id=runs, confidence=st.sampled_from(["HIGH", "MEDIUM", "LOW"])),
    st.builds(SupportFailed, run_id=runs, reason=st.just("no")),
    st.builds(OutOfScope, run_id=runs, suggested=st.sampled_from([None, "other", "db-expert"])),
    st.builds(AgentDone, agent_id=agents),
    st.builds(AgentLost, type=st.sampled_from(["agent_timeout", "agent_crashed"]), agent_id=agents),
    st.sampled_from(PLANS),
)
steps = st.one_of(
    requests, requests, requests, st.sampled_from(["tick", "later", "roll back", "answer"])
)


def step(desk: Desk, what: Any) -> None:
    state = desk.state
    if what == "tick":
        desk.tick(*list(state.active_agents)[:1])
    elif what == "later":
        desk.waits(minutes=9)
    elif what == "answer" and state.pending_divine_questions:
        desk.ask(Answer(question_id=state.pending_divine_questions[0].question_id, response="!"))
    elif what == "roll back" and state.completed_tasks:
        last = state.completed_tasks[-1]
        told = {"task_id": last, "from_sha": HEAD, "to_sha": HEAD, "reason": ""}
        desk.take(desk.terms().events([(TaskRolledBack, told)]))
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


@settings(max_examples=150)
@given(st.lists(steps, min_size=5, max_size=60))
def test_whatever_is_asked_the_state_holds_together(story: list[Any]) -> None:
    desk = Desk(commit=Commit(HEAD))
    desk.does(PLANS[0])
    for what in story:
        step(desk, what)
        holds(desk, desk.state)
        assert desk.folded() == desk.state, "the log alone gives the same"
    completions(desk)
    assert len({event.id for event in desk.log}) == len(desk.log)
    assert all(one.at <= two.at for one, two in pairwise(desk.log))
