"""What a tick finds due, and what a rollback leaves of the plan."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from guard.core.coordinator.decide import RollbackOrder, rollback_order, take_outbox
from guard.core.coordinator.decide_agents import (
    answer_question,
    ask_question,
    block_infrastructure,
    complete_agent,
    crash_agent,
    fail_health_audit,
    record_checkpoint,
    start_agent,
    time_out_agent,
)
from guard.core.coordinator.decide_support import assess_tasks, delegate_request
from guard.core.coordinator.decide_tasks import (
    dispatch_developer,
    fail_audit,
    pass_audit,
    submit_for_audit,
)
from guard.core.coordinator.landing_events import TaskLanded
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


def passes(name: str) -> Request:
    return pass_audit(task_id=name, agent_id="auditor", evidence_summary="green", no_commits=True)


def asked(summary: str) -> Request:
    return delegate_request(
        agent_id="db-expert",
        delegating_agent="dev-T0",
        request_type="task",
        request_summary=summary,
    )


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


def test_a_task_can_wait_until_what_it_depends_on_has_landed() -> None:
    desk = Desk(commit=AuditedCommit(HEAD))
    desk.does(plan(task("A"), task("B", "A")), taken("A"), submit_for_audit(task_id="A"))
    desk.does(pass_audit(task_id="A", agent_id="auditor", evidence_summary="green"))
    assert desk.tick(landed_only=True) == []
    landed = TaskLanded(
        at=desk.now,
        id="landed",
        task_id="A",
        target="refs/heads/plan",
        tip=HEAD,
        commit_sha=HEAD,
        kept_ref=None,
        mode="squash",
    )
    desk.take((landed,))
    assert desk.tick(landed_only=True) == ["developer_dispatched"]


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


def test_a_checkpoint_alone_is_worth_half_of_the_time_twice(desk: Desk) -> None:
    desk.does(taken("T0"))
    for minutes in (15, 7.5):
        desk.waits(minutes=minutes)
        desk.does(record_checkpoint(agent_id="dev-T0", checkpoint=f"after {minutes}"))
        assert desk.tick(fills=False) == ["agent_timeout_extended"]
        assert desk.log[-1].model_dump()["because"] == "checkpoint"
        assert desk.state.active_agents["dev-T0"].timeout_at == desk.now + timedelta(minutes=7.5)
    desk.does(record_checkpoint(agent_id="dev-T0", checkpoint="still"))
    assert desk.tick(fills=False) == []
    assert desk.waits(minutes=7.5).tick(fills=False) == ["agent_timeout"]


def test_work_renews_the_time_of_an_agent_as_often_as_it_is_seen(desk: Desk) -> None:
    desk.does(taken("T0"))
    for _ in range(10):
        desk.waits(minutes=15).does(record_checkpoint(agent_id="dev-T0", checkpoint="further"))
        assert desk.tick("dev-T0", fills=False) == ["agent_timeout_extended"]
        assert desk.state.active_agents["dev-T0"].timeout_at == desk.now + timedelta(minutes=15)
    assert desk.waits(minutes=15).tick(fills=False) == ["agent_timeout"]


def test_work_renews_the_time_of_a_supporting_agent(desk: Desk) -> None:
    desk.does(plan(*FREE.fields["tasks"], agents=(expert(),)), taken("T0"))
    desk.does(asked("r0"), start_agent(agent_id="dev-T0"))
    desk.delivers().waits(minutes=15)
    (run,) = desk.state.active_supporting_agents
    assert desk.tick("dev-T0", run, fills=False) == ["agent_timeout_extended"] * 2
    assert desk.waits(minutes=14).tick(fills=False) == []
    assert desk.waits(minutes=1).tick("dev-T0", fills=False)[-1] == "supporting_agent_failed"
    assert [(item.kind, item.agent_id) for item in desk.state.outbox] == [
        ("abort", run),
        ("support", "dev-T0"),
    ]


def test_time_does_not_run_before_an_agent_could_be_started(desk: Desk) -> None:
    desk.knob(active_developers=1)
    assert desk.tick() == ["developer_dispatched"]
    for _ in range(9):
        assert desk.waits(hours=1).tick() == [], "no caller empties the outbox"
    (name,) = desk.state.active_agents
    desk.delivers()
    assert desk.waits(minutes=14).tick() == []
    desk.does(start_agent(agent_id=name))
    assert desk.waits(minutes=14).tick() == []
    assert desk.waits(minutes=1).tick() == ["agent_timeout", "developer_dispatched"]
    assert desk.state.setbacks["T0"].attempts == 1
    assert desk.folded() == desk.state


def test_a_start_is_withdrawn_when_the_agent_was_seen_to_start(desk: Desk) -> None:
    desk.tick()
    first = desk.state.outbox[0]
    desk.does(start_agent(agent_id=first.agent_id))
    assert first.item_id not in [item.item_id for item in desk.state.outbox]
    desk.waits(minutes=16).tick()
    assert ("abort", first.agent_id) in [(item.kind, item.agent_id) for item in desk.state.outbox]


LOST: dict[str, Request] = {
    "lost": crash_agent(agent_id="developer-1", reason="gone"),
    "timed out": time_out_agent(agent_id="developer-1"),
    "done": submit_for_audit(task_id="T0"),
}


@pytest.mark.parametrize("end", LOST.values(), ids=LOST)
@pytest.mark.parametrize("is_started", [True, False], ids=["started", "never started"])
def test_what_waits_for_an_agent_is_withdrawn_when_it_is_gone(
    desk: Desk, end: Request, is_started: bool
) -> None:
    desk.knob(active_developers=1)
    desk.tick()
    if is_started:
        desk.delivers()
    desk.does(ask_question(agent_id="developer-1", question="Which?"))
    question = desk.state.pending_divine_questions[0].question_id
    desk.does(answer_question(question_id=question, response="this"))
    assert "guidance" in [item.kind for item in desk.state.outbox]
    desk.does(end)
    is_stopped = is_started and end is LOST["timed out"]
    assert [item.kind for item in desk.state.outbox] == ["abort"] * is_stopped
    assert desk.folded() == desk.state


def test_an_abort_does_not_outlive_the_next_life_of_its_agent(desk: Desk) -> None:
    desk.does(taken("T0", "dev"), time_out_agent(agent_id="dev"))
    (abort,) = desk.state.outbox
    assert (abort.kind, abort.agent_id) == ("abort", "dev")
    desk.does(taken("T0", "dev"))
    assert desk.state.outbox == ()


def test_the_rework_of_a_task_that_is_complete_is_withdrawn(desk: Desk) -> None:
    desk.does(taken("T0", "dev"), submit_for_audit(task_id="T0"))
    desk.does(fail_audit(task_id="T0", agent_id="auditor", reason="red"))
    assert [item.kind for item in desk.state.outbox] == ["rework"]
    desk.does(
        submit_for_audit(task_id="T0"),
        pass_audit(task_id="T0", agent_id="auditor", evidence_summary="green", no_commits=True),
    )
    assert desk.state.outbox == ()


def test_items_are_taken_one_by_one_and_one_that_is_gone_is_no_error(desk: Desk) -> None:
    desk.tick()
    first, second, third = desk.state.outbox
    assert desk.does(take_outbox(items=(second.item_id,))) == ["outbox_taken"]
    assert list(desk.state.outbox) == [first, third]
    assert desk.does(take_outbox(items=(second.item_id,))) == []
    assert desk.does(take_outbox(items=(first.item_id, second.item_id))) == ["outbox_taken"]
    assert list(desk.state.outbox) == [third]
    assert desk.refuses(take_outbox(items=("item-99",))) == "not_in_outbox"


def test_failed_audits_in_a_row_ask_a_person_and_the_answer_begins_a_new_row(desk: Desk) -> None:
    def fail(number: int) -> list[str]:
        if desk.state.active_agents.get("dev") is None:
            desk.does(taken("T0", "dev"))
        desk.does(submit_for_audit(task_id="T0"))
        return desk.does(
            fail_audit(task_id="T0", agent_id="auditor", reason=f"assertion {number} failed")
        )

    for row in (1, 2):
        assert [fail(number)[-1] for number in (1, 2, 3)] == [
            *["failure_pattern_recorded"] * 2,
            "agent_seeks_guidance",
        ]
        (question,) = desk.state.pending_divine_questions
        assert (question.about, question.task_id) == ("audit", "T0")
        said = "3 audits of task T0 failed in a row; the last: assertion 3 failed"
        assert question.question == said
        assert "dev" not in desk.state.active_agents, "its developer does not go on"
        assert desk.tick() == []
        desk.does(answer_question(question_id=question.question_id, response="try again"))
        assert desk.state.failed_audits == {"T0": 3 * row}
    desk.tick()
    assert ("developer", "T0") in kinds(desk)


def test_a_question_holds_back_only_its_task_where_the_settings_say_so(desk: Desk) -> None:
    desk.knob(hold_on_question="task", active_developers=2)
    desk.does(taken("T0"), ask_question(agent_id="dev-T0", question="Which?"))
    assert desk.tick() == ["developer_dispatched"]
    assert kinds(desk) == [("developer", "T0"), ("developer", "T1")]
    desk.does(crash_agent(agent_id="dev-T0"))
    assert desk.refuses(taken("T0")) == "open_questions"
    assert desk.tick() == ["developer_dispatched"]
    assert kinds(desk) == [("developer", "T1"), ("developer", "T2")]


def test_a_question_without_a_task_holds_back_all(desk: Desk) -> None:
    desk.knob(hold_on_question="task")
    desk.does(ask_question(question="Which?"))
    assert desk.refuses(taken("T0")) == "open_questions"
    assert desk.tick() == []


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
        desk.delivers().waits(minutes=16)
    assert desk.tick() == ["agent_timeout", "agent_seeks_guidance"]
    (question,) = desk.state.pending_divine_questions
    assert (question.about, question.task_id) == ("redispatch", "T0")
    assert desk.refuses(taken("T0")) == "open_questions"
    desk.does(answer_question(question_id=question.question_id, response="go on"))
    desk.does(taken("T0"))


def test_a_supporting_agent_that_times_out_makes_room_for_the_next(desk: Desk) -> None:
    desk.does(plan(*FREE.fields["tasks"], agents=(expert(),)), taken("T0"))
    for number in range(3):
        desk.does(asked(f"r{number}"))
        desk.delivers().waits(minutes=1)
    desk.does(ask_question(agent_id="dev-T0", question="Which?"))
    logged = desk.waits(minutes=12.5).tick()
    assert logged == ["supporting_agent_failed", "supporting_agent_delegated"]
    running = [one.request_summary for one in desk.state.active_supporting_agents.values()]
    assert running == ["r1", "r2"]


def test_analysts_are_sent_to_vague_tasks_and_again_when_they_are_lost(desk: Desk) -> None:
    desk.does(assess_tasks(needs_expansion=tuple(f"T{number}" for number in range(6))))
    assert desk.tick() == ["business_analyst_dispatched"] * 3
    assert desk.delivers().waits(minutes=16).tick() == [
        *["agent_timeout"] * 3,
        *["business_analyst_dispatched"] * 3,
    ]
    assert len(desk.state.pending_expansions) == 6


def passed(desk: Desk, *names: str) -> None:
    for number, name in enumerate(names):
        desk.does(taken(name), submit_for_audit(task_id=name))
        desk.commit = AuditedCommit(f"{number + 1:040x}")
        desk.waits(minutes=1).does(passes(name))


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
        CHAIN,
        taken("A"),
        submit_for_audit(task_id="A"),
        pass_audit(task_id="A", agent_id="x", evidence_summary="green", no_commits=True),
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
    desk.delivers().waits(**wall).boot = boot
    due = ["agent_timeout", "supporting_agent_failed"] if is_up else []
    assert desk.tick(fills=False) == due
    assert desk.folded() == desk.state
