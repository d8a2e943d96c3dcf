"""What a tick finds due, and what a rollback leaves of the plan."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from guard.core.coordinator.decide import RollbackOrder, rollback_order
from guard.core.coordinator.decide_agents import (
    answer_question,
    ask_question,
    block_infrastructure,
    complete_agent,
    fail_health_audit,
    record_checkpoint,
)
from guard.core.coordinator.decide_support import assess_tasks, delegate_request
from guard.core.coordinator.decide_tasks import dispatch_developer, pass_audit, submit_for_audit
from guard.core.coordinator.requests import AuditedCommit, Request
from guard.core.coordinator.upkeep_events import (
    RollbackBlocked,
    RollbackFailed,
    RollbackStarted,
    TaskRolledBack,
)
from tests.support.cost import cpu_limit
from tests.support.plans import HEAD, Desk, expert, plan, task

"""Of CPU time: ten times what it takes."""
FREE = plan(*(task(f"T{number}", priority=-number) for number in range(6)))


def taken(name: str, agent: str = "") -> Request:
    return dispatch_developer(task_id=name, agent_id=agent or f"dev-{name}")


@pytest.fixture
def desk() -> Desk:
    found = Desk()
    found.does(FREE)
    return found


def kinds(desk: Desk) -> list[tuple[str, str | None]]:
    return [(one.type, one.task_id) for one in desk.state.active_agents.values()]


def test_free_places_go_to_audits_first_and_then_to_tasks(desk: Desk) -> None:
    desk.does(taken("T3"), submit_for_audit(task_id="T3"), taken("T5"))
    assert desk.tick() == ["agent_dispatched", "developer_dispatched"]
    assert kinds(desk) == [("developer", "T5"), ("auditor", "T3"), ("developer", "T0")]
    assert [(one.kind, one.task_id) for one in desk.state.outbox] == [
        ("start", "T3"),
        ("start", "T0"),
    ]
    assert desk.tick() == []


@pytest.mark.parametrize(
    "request_",
    [ask_question(question="Which?"), block_infrastructure(issue="red")],
    ids=["asked", "blocked"],
)
def test_nobody_is_sent_to_a_task_while_work_is_held_up(desk: Desk, request_: Any) -> None:
    desk.does(taken("T3"), submit_for_audit(task_id="T3"), request_)
    desk.tick()
    assert desk.state.active_actor_count == 0


def test_a_blocked_infrastructure_is_repaired_and_audited_in_turns(desk: Desk) -> None:
    desk.does(block_infrastructure(issue="red"))
    for attempt in range(3):
        assert desk.tick() == ["remediation_dispatched"]
        assert desk.tick() == []
        (repairing,) = desk.state.active_agents
        desk.does(complete_agent(agent_id=repairing))
        assert desk.tick() == ["agent_dispatched"]
        (auditing,) = desk.state.active_agents
        logged = desk.does(fail_health_audit(agent_id=auditing))
        assert logged == ["health_audit_fail", "agent_seeks_guidance"][: 1 + (attempt == 2)]
    assert desk.tick() == [], "a person is asked"
    question = desk.state.pending_divine_questions[0].question_id
    desk.does(answer_question(question_id=question, response="try again"))
    assert desk.tick() == ["remediation_dispatched"]


def test_a_time_out_frees_the_task_and_another_is_sent_first_of_all(desk: Desk) -> None:
    desk.does(taken("T4"), record_checkpoint(agent_id="dev-T4", checkpoint="half"))
    desk.waits(minutes=15).tick(fills=False)
    assert desk.waits(minutes=8).tick() == ["agent_timeout", *["developer_dispatched"] * 3]
    assert kinds(desk) == [("developer", "T4"), ("developer", "T0"), ("developer", "T1")]
    abort, start = desk.state.outbox[:2]
    assert (abort.kind, abort.agent_id) == ("abort", "dev-T4")
    assert start.text == "T4\nhalf", "the next one is told how far the last was"


@pytest.mark.parametrize("because", ["checkpoint", "activity"])
def test_who_is_at_work_gets_half_of_the_time_again_twice(desk: Desk, because: str) -> None:
    desk.does(taken("T0"))
    for minutes in (15, 7.5):
        desk.waits(minutes=minutes)
        if because == "checkpoint":
            desk.does(record_checkpoint(agent_id="dev-T0", checkpoint=f"after {minutes}"))
        working = ("dev-T0",) if because == "activity" else ()
        assert desk.tick(*working, fills=False) == ["agent_timeout_extended"]
        assert desk.log[-1].model_dump()["because"] == because
        assert desk.state.active_agents["dev-T0"].timeout_at == desk.now + timedelta(minutes=7.5)
    desk.does(record_checkpoint(agent_id="dev-T0", checkpoint="still"))
    assert desk.tick("dev-T0", fills=False) == []
    assert desk.waits(minutes=7.5).tick("dev-T0", fills=False) == ["agent_timeout"]


def test_an_old_checkpoint_is_worth_one_extension(desk: Desk) -> None:
    desk.does(taken("T0"), record_checkpoint(agent_id="dev-T0", checkpoint="early"))
    assert desk.waits(minutes=15).tick(fills=False) == ["agent_timeout_extended"]
    assert desk.waits(minutes=8).tick(fills=False) == ["agent_timeout"]


def test_whoever_waits_for_an_answer_does_not_time_out(desk: Desk) -> None:
    desk.does(taken("T0"), ask_question(agent_id="dev-T0", question="Which?"))
    assert desk.waits(hours=9).tick() == []
    desk.does(answer_question(question_id="question-2", response="this"))
    assert desk.waits(minutes=14).tick(fills=False) == []
    assert desk.waits(minutes=1).tick(fills=False) == ["agent_timeout"]


def test_beyond_the_limit_of_re_dispatches_a_person_is_asked(desk: Desk) -> None:
    desk.knob(active_developers=1)
    for _ in range(4):
        assert "developer_dispatched" in desk.tick()
        assert kinds(desk) == [("developer", "T0")]
        desk.waits(minutes=16)
    assert desk.tick() == ["agent_timeout", "agent_seeks_guidance"]
    (question,) = desk.state.pending_divine_questions
    assert (question.about, question.task_id) == ("redispatch", "T0")
    assert desk.refuses(taken("T0")) == "open_questions"
    desk.does(answer_question(question_id=question.question_id, response="go on"))
    desk.does(taken("T0"))


def test_a_supporting_agent_that_times_out_makes_room_for_the_next(desk: Desk) -> None:
    desk.does(plan(*FREE.fields["tasks"], agents=(expert(),)), taken("T0"))
    for number in range(3):
        told: dict[str, Any] = {"delegating_agent": "dev-T0", "request_type": "task"}
        desk.does(delegate_request(agent_id="db-expert", request_summary=f"r{number}", **told))
        desk.waits(minutes=1)
    desk.does(ask_question(agent_id="dev-T0", question="Which?"))
    logged = desk.waits(minutes=12.5).tick()
    assert logged == ["supporting_agent_failed", "supporting_agent_delegated"]
    running = [one.request_summary for one in desk.state.active_supporting_agents.values()]
    assert running == ["r1", "r2"]


def test_analysts_are_sent_to_vague_tasks_and_again_when_they_are_lost(desk: Desk) -> None:
    desk.does(assess_tasks(needs_expansion=tuple(f"T{number}" for number in range(6))))
    assert desk.tick() == ["business_analyst_dispatched"] * 3
    assert desk.waits(minutes=16).tick() == [
        *["agent_timeout"] * 3,
        *["business_analyst_dispatched"] * 3,
    ]
    assert len(desk.state.pending_expansions) == 6


def passed(desk: Desk, *names: str) -> None:
    for number, name in enumerate(names):
        desk.does(taken(name), submit_for_audit(task_id=name))
        desk.commit = AuditedCommit(f"{number + 1:040x}")
        desk.waits(minutes=1).does(pass_audit(task_id=name, agent_id="auditor"))


CHAIN = plan(task("A"), task("B", "A"), task("C", "B"), task("D", "A"), task("E"))


def rolled(desk: Desk, name: str) -> None:
    terms, sha = desk.terms(), desk.state.task_commits[name].commit_sha
    started = partial(RollbackStarted, task_id=name, branch="main", reason="r")
    desk.take(terms.events([partial(started, commits=(sha,), head=sha, to_sha=HEAD)]))
    assert desk.state.rollback_in_progress is not None
    assert desk.refuses(taken("E")) == "rollback_in_progress"
    assert desk.tick() == []
    ended = partial(TaskRolledBack, task_id=name, from_sha=sha, to_sha=HEAD, reason="r")
    desk.take(desk.terms().events([ended]))


def test_a_task_that_is_rolled_back_is_available_and_its_dependents_are_aborted() -> None:
    desk = Desk()
    desk.does(CHAIN)
    passed(desk, "A")
    desk.does(taken("B"), submit_for_audit(task_id="B"), taken("D"))
    rolled(desk, "A")
    state = desk.state
    assert (state.completed_tasks, dict(state.task_commits)) == ((), {})
    assert (state.in_progress_tasks, state.pending_audit, kinds(desk)) == ((), (), [])
    assert state.available_tasks == ("A", "E")
    assert state.blocked_tasks == {"B": ("A",), "C": ("B",), "D": ("A",)}
    assert ("abort", "dev-D") in [(one.kind, one.agent_id) for one in state.outbox]
    assert desk.folded() == state


def test_completed_dependents_forbid_a_rollback_or_come_first() -> None:
    desk = Desk()
    desk.does(CHAIN)
    passed(desk, "A", "B", "D", "C")
    refusal = rollback_order(desk.state, "A", cascade=False).refusal
    assert refusal is not None
    assert (refusal.func, refusal.keywords["dependents"]) == (RollbackBlocked, ("C", "D", "B"))
    assert rollback_order(desk.state, "A", cascade=True) == RollbackOrder(("C", "D", "B", "A"))
    assert rollback_order(desk.state, "C", cascade=False) == RollbackOrder(("C",))


@pytest.mark.parametrize(
    ("name", "reason"), [("Z", "unknown_task"), ("E", "not_completed"), ("A", "no_commit_recorded")]
)
def test_what_cannot_be_rolled_back(name: str, reason: str) -> None:
    desk = Desk()
    desk.does(
        CHAIN, taken("A"), submit_for_audit(task_id="A"), pass_audit(task_id="A", agent_id="x")
    )
    order = rollback_order(desk.state, name, cascade=True)
    assert order.tasks == ()
    assert order.refusal is not None
    assert (order.refusal.func, order.refusal.keywords["reason"]) == (RollbackFailed, reason)
    desk.take(desk.terms().events([order.refusal]))
    assert desk.folded() == desk.state


def test_a_plan_of_ten_thousand_tasks_is_ticked_in_no_time() -> None:
    desk = Desk()
    rows = [
        task(f"L{row}-{number}", *([f"L{row - 1}-{number}", f"L{row - 1}-0"] if row else []))
        for row in range(10)
        for number in range(1000)
    ]
    desk.does(plan(*rows))
    with cpu_limit(20):
        assert desk.state.available_tasks[0] == "L0-0"
        assert desk.tick() == ["developer_dispatched"] * 3


@pytest.mark.parametrize(
    ("wall", "boot", "is_up"),
    [
        ({"days": 1}, (60.0, "here"), False),
        ({"days": -400}, (60.0, "here"), False),
        ({}, (901.0, "here"), True),
        ({"days": -400}, (901.0, "here"), True),
        ({"minutes": 16}, (60.0, "after a restart"), True),
        ({"minutes": 14}, (5000.0, "after a restart"), False),
        ({"minutes": -14}, (60.0, None), False),
        ({"days": -400}, (60.0, None), True),
    ],
    ids=[
        "set forward",
        "set back",
        "time passed",
        "set back, and time passed",
        "another boot, by the wall",
        "another boot, not yet",
        "no boot clock, set back a little",
        "no boot clock, set far back",
    ],
)
def test_time_is_up_by_the_boot_clock(
    wall: dict[str, float], boot: tuple[float, str | None], is_up: bool
) -> None:
    """Nobody loses its time because the wall clock was set, nor keeps it for ever."""
    desk = Desk(boot=(0.0, "here"))
    desk.does(plan(task("A"), agents=(expert("db"),)), taken("A"))
    desk.does(
        delegate_request(
            agent_id="db", delegating_agent="dev-A", request_type="task", request_summary="x"
        )
    )
    desk.waits(**wall).boot = boot
    due = ["agent_timeout", "supporting_agent_failed"] if is_up else []
    assert desk.tick(fills=False) == due
    assert desk.folded() == desk.state
