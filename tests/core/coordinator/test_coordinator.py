"""The coordinator, trigger by trigger: before, what is asked, after, and what is logged."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import pytest

from guard.core.coordinator import decide, decide_agents, decide_support, decide_tasks
from guard.core.coordinator.landing_events import LandingTargetChosen, TaskLanded
from guard.core.coordinator.requests import AuditedCommit, Refusal, Request
from guard.core.coordinator.settings import CoordinatorSettings
from guard.core.coordinator.state import CHANGES, Coordinator, CoordinatorFold, task_statuses
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.plan.model import PlanTask
from tests.support.plans import BASE, HEAD, Desk, expert, plan, task

PLAN = plan(
    task("A"),
    task("B", "A"),
    task("C", priority=5, title="Write the migration"),
    agents=(expert(), expert("reviewer", kinds=("task", "review"))),
)
TAKEN = (PLAN, decide_tasks.dispatch_developer(task_id="A", agent_id="dev-1"))
READY = (*TAKEN, decide_tasks.submit_for_audit(task_id="A"))
AUDITED = (*READY, decide_agents.dispatch_agent(task_id="A", agent_id="aud-1"))
BLOCKED = (*AUDITED, decide_tasks.block_audit(task_id="A", agent_id="aud-1", issue="red before"))
REPAIRED = (
    *BLOCKED,
    decide_agents.dispatch_remediation(agent_id="fix-1"),
    decide_agents.complete_agent(agent_id="fix-1"),
)
ASKED = (*TAKEN, decide_agents.ask_question(agent_id="dev-1", question="Which?"))
VAGUE = (PLAN, decide_support.assess_tasks(needs_expansion=("A",)))
ANALYSED = (*VAGUE, decide_support.dispatch_analyst(task_id="A", agent_id="ba-1"))
PLAN_ONLY = (PLAN,)
UNCLEAR = (
    *ANALYSED,
    decide_support.ask_clarification(task_id="A", agent_id="ba-1", question="What for?"),
)


def delegate(summary: str = "help", agent: str = "db-expert") -> Request:
    return decide_support.delegate_request(
        agent_id=agent,
        delegating_agent="dev-1",
        task_id="A",
        request_type="task",
        request_summary=summary,
    )


BUSY = (*TAKEN, delegate("one"), delegate("two"))
QUEUED = (*BUSY, delegate("three"))


def shown(state: Coordinator, *names: str) -> dict[str, Any]:
    """These fields, entries cut down to what tells them apart."""
    return {name: _shown(name, getattr(state, name)) for name in names}


def _shown(name: str, value: Any) -> Any:
    match name:
        case "in_progress_tasks":
            return {
                one.task_id: (one.developer_id, one.status, one.last_checkpoint) for one in value
            }
        case "pending_divine_questions":
            return [(one.question_id, one.agent_id, one.about) for one in value]
        case "active_supporting_agents":
            return {run: one.request_summary for run, one in value.items()}
        case "pending_delegation_requests":
            return [one.request_summary for one in value]
        case "active_agents":
            return {agent: (one.type, one.task_id, one.status) for agent, one in value.items()}
        case "supporting_agent_stats":
            return {
                agent: (one.delegations, one.completions, one.failures, one.out_of_scope)
                for agent, one in value.items()
            }
        case "outbox":
            return [(one.kind, one.agent_id, one.text) for one in value]
        case _:
            return value


ROWS: dict[str, tuple[tuple[Request, ...], dict[str, Any], Request, list[str], dict[str, Any]]] = {
    "developer dispatch": (
        (PLAN,),
        {"available_tasks": ("A", "C"), "in_progress_tasks": {}, "blocked_tasks": {"B": ("A",)}},
        decide_tasks.dispatch_developer(task_id="A", agent_id="dev-1"),
        ["developer_dispatched"],
        {
            "available_tasks": ("C",),
            "in_progress_tasks": {"A": ("dev-1", "implementing", None)},
            "blocked_tasks": {"B": ("A",)},
            "active_developers": {"dev-1": "A"},
            "active_actor_count": 1,
        },
    ),
    "remediation dispatch": (
        (PLAN,),
        {"infrastructure_blocked": False, "active_remediation": None},
        decide_agents.dispatch_remediation(agent_id="fix-1", issue="no disk"),
        ["remediation_dispatched"],
        {
            "infrastructure_blocked": True,
            "active_remediation": "fix-1",
            "infrastructure_issue": "no disk",
        },
    ),
    "ready for audit": (
        TAKEN,
        {"pending_audit": (), "active_actor_count": 1},
        decide_tasks.submit_for_audit(task_id="A", agent_id="dev-1"),
        ["developer_ready_for_audit"],
        {
            "pending_audit": ("A",),
            "in_progress_tasks": {"A": ("dev-1", "awaiting-audit", None)},
            "completed_tasks": (),
            "active_actor_count": 0,
        },
    ),
    "auditor dispatch": (
        READY,
        {"active_auditors": {}},
        decide_agents.dispatch_agent(task_id="A", agent_id="aud-1"),
        ["agent_dispatched"],
        {"active_auditors": {"aud-1": "A"}, "pending_audit": ("A",), "active_actor_count": 1},
    ),
    "auditor PASS": (
        AUDITED,
        {"completed_tasks": (), "blocked_tasks": {"B": ("A",)}},
        decide_tasks.pass_audit(
            task_id="A", agent_id="aud-1", evidence_summary="green", no_commits=True
        ),
        ["task_complete"],
        {
            "completed_tasks": ("A",),
            "pending_audit": (),
            "in_progress_tasks": {},
            "blocked_tasks": {},
            "available_tasks": ("C", "B"),
            "active_auditors": {},
        },
    ),
    "auditor FAIL": (
        AUDITED,
        {"failed_audits": {}},
        decide_tasks.fail_audit(task_id="A", agent_id="aud-1", reason="a test fails"),
        ["auditor_fail", "failure_pattern_recorded"],
        {
            "in_progress_tasks": {"A": ("dev-1", "implementing", None)},
            "pending_audit": (),
            "failed_audits": {"A": 1},
            "active_developers": {"dev-1": "A"},
            "active_auditors": {},
            "outbox": [("rework", "dev-1", "a test fails")],
        },
    ),
    "auditor BLOCKED": (
        AUDITED,
        {"infrastructure_blocked": False},
        decide_tasks.block_audit(task_id="A", agent_id="aud-1", issue="red before"),
        ["auditor_blocked", "infrastructure_blocked"],
        {
            "infrastructure_blocked": True,
            "infrastructure_issue": "red before",
            "pending_audit": ("A",),
            "save_reason": "infrastructure_blocked",
        },
    ),
    "health auditor HEALTHY": (
        (*REPAIRED, decide_agents.fail_health_audit(agent_id="h")),
        {"infrastructure_blocked": True, "remediation_attempt_count": 1},
        decide_agents.pass_health_audit(agent_id="health-1"),
        ["health_audit_pass", "infrastructure_restored"],
        {
            "infrastructure_blocked": False,
            "active_remediation": None,
            "infrastructure_issue": None,
            "remediation_attempt_count": 0,
        },
    ),
    "health auditor UNHEALTHY": (
        REPAIRED,
        {"remediation_attempt_count": 0, "active_remediation": None, "health_audit_due": True},
        decide_agents.fail_health_audit(agent_id="health-1"),
        ["health_audit_fail"],
        {
            "remediation_attempt_count": 1,
            "infrastructure_blocked": True,
            "active_remediation": None,
            "health_audit_due": False,
        },
    ),
    "health auditor UNHEALTHY at the limit": (
        (
            *REPAIRED,
            decide_agents.fail_health_audit(agent_id="h"),
            decide_agents.fail_health_audit(agent_id="h"),
        ),
        {"remediation_attempt_count": 2, "pending_divine_questions": []},
        decide_agents.fail_health_audit(agent_id="health-1"),
        ["health_audit_fail", "agent_seeks_guidance"],
        {
            "remediation_attempt_count": 3,
            "pending_divine_questions": [("question-4", None, "remediation")],
        },
    ),
    "checkpoint of a developer": (
        TAKEN,
        {"in_progress_tasks": {"A": ("dev-1", "implementing", None)}},
        decide_agents.record_checkpoint(agent_id="dev-1", checkpoint="tests written"),
        ["developer_checkpoint"],
        {"in_progress_tasks": {"A": ("dev-1", "implementing", "tests written")}},
    ),
    "checkpoint of an auditor": (
        AUDITED,
        {"in_progress_tasks": {"A": ("dev-1", "awaiting-audit", None)}},
        decide_agents.record_checkpoint(agent_id="aud-1", checkpoint="read it"),
        ["agent_checkpoint"],
        {"in_progress_tasks": {"A": ("dev-1", "awaiting-audit", None)}},
    ),
    "agent seeks clarification": (
        TAKEN,
        {"pending_divine_questions": []},
        decide_agents.ask_question(agent_id="dev-1", question="Which?"),
        ["agent_seeks_guidance"],
        {
            "pending_divine_questions": [("question-2", "dev-1", "task")],
            "in_progress_tasks": {"A": ("dev-1", "awaiting-divine-guidance", None)},
            "active_agents": {"dev-1": ("developer", "A", "awaiting-divine-guidance")},
        },
    ),
    "response received": (
        ASKED,
        {"in_progress_tasks": {"A": ("dev-1", "awaiting-divine-guidance", None)}},
        decide_agents.answer_question(question_id="question-2", response="This one"),
        ["divine_response_received", "agent_resumes_with_guidance"],
        {
            "pending_divine_questions": [],
            "in_progress_tasks": {"A": ("dev-1", "implementing", None)},
            "active_agents": {"dev-1": ("developer", "A", "working")},
            "outbox": [("guidance", "dev-1", "This one")],
        },
    ),
    "task quality assessment": (
        (PLAN,),
        {"task_quality_assessed": False, "available_tasks": ("A", "C")},
        decide_support.assess_tasks(needs_expansion=("A",)),
        ["task_quality_assessment"],
        {
            "task_quality_assessed": True,
            "available_tasks": ("C",),
            "pending_expansions": {"A": "needs-expansion"},
        },
    ),
    "business analyst dispatch": (
        VAGUE,
        {"active_business_analysts": {}},
        decide_support.dispatch_analyst(task_id="A", agent_id="ba-1"),
        ["business_analyst_dispatched"],
        {
            "active_business_analysts": {"ba-1": "A"},
            "pending_expansions": {"A": "ba-1"},
            "active_actor_count": 0,
        },
    ),
    "business analyst, HIGH confidence": (
        ANALYSED,
        {"expanded_tasks": {}},
        decide_support.expand_task(task_id="A", agent_id="ba-1", specification={"steps": ["x"]}),
        ["task_expanded"],
        {
            "expanded_tasks": {"A": {"steps": ["x"]}},
            "pending_expansions": {},
            "active_business_analysts": {},
            "available_tasks": ("A", "C"),
        },
    ),
    "business analyst, LOW confidence": (
        ANALYSED,
        {"pending_divine_questions": []},
        decide_support.ask_clarification(task_id="A", agent_id="ba-1", question="What for?"),
        ["expansion_needs_clarification"],
        {
            "pending_divine_questions": [("question-2", "ba-1", "expansion")],
            "pending_expansions": {"A": "awaiting-clarification"},
            "active_business_analysts": {},
        },
    ),
    "answer to an analyst": (
        UNCLEAR,
        {"active_business_analysts": {}},
        decide_agents.answer_question(question_id="question-2", response="For tests"),
        [
            "divine_response_received",
            "agent_resumes_with_guidance",
            "business_analyst_dispatched",
        ],
        {
            "pending_divine_questions": [],
            "pending_expansions": {"A": "ba-1"},
            "active_business_analysts": {"ba-1": "A"},
            "outbox": [("start", "ba-1", "For tests")],
        },
    ),
    "delegation, agent available": (
        TAKEN,
        {"active_supporting_agents": {}, "supporting_agent_stats": {}},
        delegate("one"),
        ["supporting_agent_delegated"],
        {
            "active_supporting_agents": {"db-expert-run-2": "one"},
            "supporting_agent_stats": {"db-expert": (1, 0, 0, 0)},
            "outbox": [("start", "db-expert-run-2", "one")],
        },
    ),
    "delegation, agent busy": (
        BUSY,
        {"pending_delegation_requests": []},
        delegate("three"),
        ["delegation_queued"],
        {
            "active_supporting_agents": {"db-expert-run-2": "one", "db-expert-run-3": "two"},
            "pending_delegation_requests": ["three"],
            "supporting_agent_stats": {"db-expert": (2, 0, 0, 0)},
        },
    ),
    "supporting agent done": (
        QUEUED,
        {"pending_delegation_requests": ["three"]},
        decide_support.complete_support(
            run_id="db-expert-run-2", confidence="HIGH", result="Use an index"
        ),
        ["supporting_agent_complete", "supporting_agent_delegated"],
        {
            "active_supporting_agents": {"db-expert-run-3": "two", "db-expert-run-5": "three"},
            "pending_delegation_requests": [],
            "supporting_agent_stats": {"db-expert": (3, 1, 0, 0)},
        },
    ),
    "supporting agent failed": (
        QUEUED,
        {"pending_delegation_requests": ["three"]},
        decide_support.fail_support(run_id="db-expert-run-3", reason="no database"),
        ["supporting_agent_failed", "supporting_agent_delegated"],
        {
            "active_supporting_agents": {"db-expert-run-2": "one", "db-expert-run-5": "three"},
            "supporting_agent_stats": {"db-expert": (3, 0, 1, 0)},
        },
    ),
    "supporting agent out of scope, with another": (
        BUSY,
        {"supporting_agent_stats": {"db-expert": (2, 0, 0, 0)}},
        decide_support.decline_support(run_id="db-expert-run-2", suggested="reviewer"),
        ["supporting_agent_out_of_scope", "supporting_agent_delegated"],
        {
            "active_supporting_agents": {"db-expert-run-3": "two", "reviewer-run-4": "one"},
            "supporting_agent_stats": {"db-expert": (2, 0, 0, 1), "reviewer": (1, 0, 0, 0)},
        },
    ),
    "supporting agent out of scope, with nobody else": (
        BUSY,
        {"supporting_agent_stats": {"db-expert": (2, 0, 0, 0)}},
        decide_support.decline_support(
            run_id="db-expert-run-2", suggested="a lawyer", guidance="Not my trade."
        ),
        ["supporting_agent_out_of_scope"],
        {
            "active_supporting_agents": {"db-expert-run-3": "two"},
            "outbox": [
                ("start", "db-expert-run-3", "two"),
                (
                    "support",
                    "dev-1",
                    "out of scope for db-expert: Not my trade. (it suggests a lawyer)",
                ),
            ],
        },
    ),
    "agent crashed": (
        (*TAKEN, decide_agents.record_checkpoint(agent_id="dev-1", checkpoint="half")),
        {"available_tasks": ("C",)},
        decide_agents.crash_agent(agent_id="dev-1", reason="killed"),
        ["agent_crashed"],
        {"available_tasks": ("A", "C"), "in_progress_tasks": {}, "active_agents": {}},
    ),
    "agent timed out": (
        TAKEN,
        {"available_tasks": ("C",)},
        decide_agents.time_out_agent(agent_id="dev-1"),
        ["agent_timeout"],
        {"available_tasks": ("A", "C"), "outbox": [("abort", "dev-1", "its time is up")]},
    ),
    "remediation done": (
        (*BLOCKED, decide_agents.dispatch_remediation(agent_id="fix-1")),
        {"health_audit_due": False},
        decide_agents.complete_agent(agent_id="fix-1"),
        ["agent_complete"],
        {"health_audit_due": True, "active_agents": {}, "active_remediation": None},
    ),
    "usage": (
        (PLAN,),
        {"session_utilisation": None},
        decide.record_usage(session_utilisation=85),
        ["usage_checked"],
        {"session_utilisation": 85, "session_remaining": 15, "session_resets_at": None},
    ),
    "compaction": (
        (PLAN,),
        {"compaction_count": 0, "save_reason": "event"},
        decide.record_compaction(tokens_remaining_percent=9),
        ["compaction"],
        {"compaction_count": 1, "save_reason": "compaction", "tokens_remaining_percent": 9},
    ),
    "session paused": (
        (PLAN,),
        {"save_reason": "event"},
        decide.pause_session(),
        ["session_paused"],
        {"save_reason": "session_pause"},
    ),
    "session resumed": (
        (PLAN,),
        {"session_resume_count": 0},
        decide.resume_session(),
        ["session_resumed"],
        {"session_resume_count": 1},
    ),
    "validation complete": (
        (PLAN,),
        {"validation_complete": False},
        decide.complete_validation(),
        ["validation_complete"],
        {"validation_complete": True},
    ),
    "outbox taken": (
        (*TAKEN, delegate("one")),
        {"outbox": [("start", "db-expert-run-2", "one")]},
        decide.take_outbox(items=("item-1",)),
        ["outbox_taken"],
        {"outbox": []},
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_trigger_has_exactly_its_effects(row: Any) -> None:
    setup, before, request, logged, then = row
    desk = Desk()
    desk.does(*setup)
    assert shown(desk.state, *before) == before
    assert desk.does(request) == logged
    assert shown(desk.state, *then) == then
    assert desk.folded() == desk.state


REFUSED: dict[str, tuple[tuple[Request, ...], Request, str]] = {
    "audit of a task that is not pending": (
        TAKEN,
        decide_tasks.pass_audit(
            task_id="A", agent_id="x", evidence_summary="green", no_commits=True
        ),
        "audit_not_pending",
    ),
    "audit of a task that there is not": (
        PLAN_ONLY,
        decide_tasks.pass_audit(
            task_id="Z", agent_id="x", evidence_summary="green", no_commits=True
        ),
        "audit_not_pending",
    ),
    "audit by its own developer": (
        READY,
        decide_tasks.pass_audit(
            task_id="A", agent_id="dev-1", evidence_summary="green", no_commits=True
        ),
        "own_work",
    ),
    "audit by another than was sent": (
        AUDITED,
        decide_tasks.pass_audit(
            task_id="A", agent_id="x", evidence_summary="green", no_commits=True
        ),
        "not_its_auditor",
    ),
    "a second auditor": (
        AUDITED,
        decide_agents.dispatch_agent(task_id="A", agent_id="aud-2"),
        "audit_under_way",
    ),
    "dispatch of a blocked task": (
        PLAN_ONLY,
        decide_tasks.dispatch_developer(task_id="B", agent_id="x"),
        "task_blocked",
    ),
    "dispatch of a task in progress": (
        TAKEN,
        decide_tasks.dispatch_developer(task_id="A", agent_id="x"),
        "task_in_progress",
    ),
    "dispatch of a complete task": (
        (
            *READY,
            decide_tasks.pass_audit(
                task_id="A", agent_id="x", evidence_summary="green", no_commits=True
            ),
        ),
        decide_tasks.dispatch_developer(task_id="A", agent_id="x"),
        "task_completed",
    ),
    "dispatch of a vague task": (
        VAGUE,
        decide_tasks.dispatch_developer(task_id="A", agent_id="x"),
        "task_in_expansion",
    ),
    "dispatch of an unknown task": (
        PLAN_ONLY,
        decide_tasks.dispatch_developer(task_id="Z", agent_id="x"),
        "unknown_task",
    ),
    "dispatch to an agent that is at work": (
        TAKEN,
        decide_tasks.dispatch_developer(task_id="C", agent_id="dev-1"),
        "agent_active",
    ),
    "dispatch while the infrastructure is blocked": (
        BLOCKED,
        decide_tasks.dispatch_developer(task_id="C", agent_id="x"),
        "infrastructure_blocked",
    ),
    "dispatch while a question is open": (
        ASKED,
        decide_tasks.dispatch_developer(task_id="C", agent_id="x"),
        "open_questions",
    ),
    "ready for a task that nobody has": (
        PLAN_ONLY,
        decide_tasks.submit_for_audit(task_id="A"),
        "task_not_in_progress",
    ),
    "ready twice": (READY, decide_tasks.submit_for_audit(task_id="A"), "task_not_implementing"),
    "ready by another": (
        TAKEN,
        decide_tasks.submit_for_audit(task_id="A", agent_id="x"),
        "not_its_developer",
    ),
    "health of what is well": (
        PLAN_ONLY,
        decide_agents.pass_health_audit(agent_id="x"),
        "not_blocked",
    ),
    "remediation of nothing": (
        PLAN_ONLY,
        decide_agents.dispatch_remediation(agent_id="x"),
        "no_issue",
    ),
    "a second remediation": (
        (*BLOCKED, decide_agents.dispatch_remediation(agent_id="fix-1")),
        decide_agents.dispatch_remediation(agent_id="fix-2"),
        "remediation_active",
    ),
    "remediation beyond the limit": (
        (*REPAIRED, *[decide_agents.fail_health_audit(agent_id="h")] * 3),
        decide_agents.dispatch_remediation(agent_id="fix-2"),
        "remediation_limit",
    ),
    "checkpoint of nobody": (
        PLAN_ONLY,
        decide_agents.record_checkpoint(agent_id="x", checkpoint="y"),
        "agent_not_active",
    ),
    "answer to nothing": (
        PLAN_ONLY,
        decide_agents.answer_question(question_id="q", response="y"),
        "unknown_question",
    ),
    "expansion by another": (
        ANALYSED,
        decide_support.expand_task(task_id="A", agent_id="x", specification={}),
        "not_its_analyst",
    ),
    "a second analyst": (
        ANALYSED,
        decide_support.dispatch_analyst(task_id="A", agent_id="x"),
        "in_expansion",
    ),
    "delegation to a stranger": (TAKEN, delegate(agent="x"), "unknown_supporting_agent"),
    "end of a run that there is not": (
        TAKEN,
        decide_support.fail_support(run_id="x", reason=""),
        "unknown_run",
    ),
    "a plan that lacks what is under way": (TAKEN, plan(task("C")), "task_under_way"),
    "a developer that is simply done": (
        TAKEN,
        decide_agents.complete_agent(agent_id="dev-1"),
        "end_has_a_name",
    ),
    "a parcel that is not there": (TAKEN, decide.take_outbox(items=("item-9",)), "not_in_outbox"),
    "a failure of an unknown task": (
        TAKEN,
        decide.record_failure_pattern(failure_type="t", task_id="Z"),
        "unknown_task",
    ),
}


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED)
def test_what_the_state_does_not_allow_is_refused_with_the_reason(row: Any) -> None:
    setup, request, code = row
    desk = Desk()
    desk.does(*setup)
    assert desk.refuses(request) == code


SPELLED = decide.load_plan(
    plan_file="PLAN.md",
    tasks=tuple(one.model_copy(update={"name": f"{one.id}.1"}) for one in PLAN.fields["tasks"]),
    supporting_agents=PLAN.fields["supporting_agents"],
)


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED)
def test_a_refusal_calls_tasks_as_the_plan_spells_them(row: Any) -> None:
    setup, request, _code = row
    desk = Desk()
    desk.does(*(SPELLED if one is PLAN else one for one in setup))
    refusal = desk.ask(request)
    assert isinstance(refusal, Refusal)
    said = f"{refusal.message} {refusal.hint}"
    assert re.findall(r"\b[ABC]\b(?!\.1)", said) == [], said


@pytest.mark.parametrize(
    ("name", "word"), [("A.1", "A.1"), ("a b; c", "'a b; c'"), ("-rf", "A"), ("$(x)", "'$(x)'")]
)
def test_a_hint_has_a_command_that_can_be_typed(name: str, word: str) -> None:
    desk = Desk()
    desk.does(plan(task("A").model_copy(update={"name": name})))
    refusal = desk.ask(
        decide_tasks.pass_audit(
            task_id="A", agent_id="x", evidence_summary="green", no_commits=True
        )
    )
    assert isinstance(refusal, Refusal)
    assert refusal.hint == f"`guard plan ready {word}` submits it for one"


def test_the_question_about_a_task_calls_it_as_the_plan_spells_it() -> None:
    desk = Desk(limits=CoordinatorSettings(redispatch_limit=0))
    desk.does(SPELLED, *TAKEN[1:], decide_agents.crash_agent(agent_id="dev-1"))
    (question,) = desk.state.pending_divine_questions
    assert question.question == "agents on task A.1 were lost 1 times; the last was dev-1"


def test_every_task_stands_in_one_place_and_one_that_awaits_its_audit_is_called_so() -> None:
    desk = Desk()
    tasks = [task("done"), task("audited"), task("made"), task("vague"), task("free")]
    desk.does(
        plan(*tasks, task("late", "made")), decide_support.assess_tasks(needs_expansion=("vague",))
    )
    for name in ("done", "audited", "made"):
        desk.does(decide_tasks.dispatch_developer(task_id=name, agent_id=f"dev-{name}"))
    desk.does(
        decide_tasks.submit_for_audit(task_id="done"),
        decide_tasks.pass_audit(
            task_id="done", agent_id="aud", evidence_summary="green", no_commits=True
        ),
    )
    desk.does(decide_tasks.submit_for_audit(task_id="audited"))
    places = {
        "done": "completed",
        "audited": "in_progress",
        "made": "in_progress",
        "vague": "pending_expansion",
        "free": "available",
        "late": "blocked",
    }
    assert desk.state.places() == places
    assert task_statuses(desk.state) == {**places, "audited": "pending_audit"}


def test_no_more_agents_than_places_are_at_work() -> None:
    desk = Desk()
    desk.does(plan(*(task(f"T{n}") for n in range(5))))
    desk.does(
        *(decide_tasks.dispatch_developer(task_id=f"T{n}", agent_id=f"dev-{n}") for n in range(3))
    )
    assert (
        desk.refuses(decide_tasks.dispatch_developer(task_id="T3", agent_id="dev-3"))
        == "no_free_slot"
    )
    desk.does(
        decide_tasks.submit_for_audit(task_id="T0"),
        decide_tasks.dispatch_developer(task_id="T3", agent_id="dev-3"),
    )
    assert (
        desk.refuses(decide_agents.dispatch_agent(task_id="T0", agent_id="aud-1")) == "no_free_slot"
    )
    desk.knob(active_developers=4)
    desk.does(decide_agents.dispatch_agent(task_id="T0", agent_id="aud-1"))


def test_rework_without_a_free_place_waits_for_one() -> None:
    desk = Desk()
    desk.does(plan(*(task(f"T{n}") for n in range(4))))
    desk.does(
        decide_tasks.dispatch_developer(task_id="T0", agent_id="dev-0"),
        decide_tasks.submit_for_audit(task_id="T0"),
    )
    desk.does(
        *(decide_tasks.dispatch_developer(task_id=f"T{n}", agent_id=f"dev-{n}") for n in (1, 2, 3))
    )
    desk.does(decide_tasks.fail_audit(task_id="T0", agent_id="aud-1", reason="red"))
    assert desk.state.active_actor_count == 3
    assert shown(desk.state, "in_progress_tasks")["in_progress_tasks"]["T0"][1] == "implementing"
    desk.does(decide_tasks.submit_for_audit(task_id="T1"))
    desk.does(decide_tasks.dispatch_developer(task_id="T0", agent_id="dev-9"))
    assert desk.state.active_developers["dev-9"] == "T0"


UNFOUNDED: dict[
    str, tuple[tuple[Request, ...], AuditedCommit | None, dict[str, Any], str | None]
] = {
    "no commits": (READY, None, {"evidence_summary": "green"}, "no_commits"),
    "none on purpose": (READY, None, {"evidence_summary": "green", "no_commits": True}, None),
    "commits, nothing said": (READY, AuditedCommit(HEAD), {}, "no_evidence"),
    "commits, only spaces said": (
        READY,
        AuditedCommit(HEAD),
        {"evidence_summary": "  "},
        "no_evidence",
    ),
    "commits and evidence": (READY, AuditedCommit(HEAD), {"evidence_summary": "green"}, None),
    "commits, by the auditor that was sent": (AUDITED, AuditedCommit(HEAD), {}, None),
}


@pytest.mark.parametrize("row", UNFOUNDED.values(), ids=UNFOUNDED)
def test_a_pass_needs_commits_and_evidence_or_an_auditor(row: Any) -> None:
    setup, commit, fields, code = row
    desk = Desk(commit=commit)
    desk.does(*setup)
    request = decide_tasks.pass_audit(task_id="A", agent_id="aud-1", **fields)
    if code is not None:
        assert desk.refuses(request) == code
    else:
        assert desk.does(request)[0] == "task_complete"


def test_the_last_pass_completes_the_plan_and_a_larger_plan_reopens_it() -> None:
    desk = Desk()
    desk.does(plan(task("A")), decide_tasks.dispatch_developer(task_id="A", agent_id="d"))
    desk.does(decide_tasks.submit_for_audit(task_id="A"))
    assert desk.does(
        decide_tasks.pass_audit(
            task_id="A", agent_id="x", evidence_summary="green", no_commits=True
        )
    ) == [
        "task_complete",
        "plan_complete",
    ]
    assert desk.state.plan_complete
    desk.does(plan(task("A"), task("B", "A")))
    assert not desk.state.plan_complete
    assert (desk.state.completed_tasks, desk.state.available_tasks) == (("A",), ("B",))


def test_a_pass_records_the_commits_that_were_found_to_be_the_tasks() -> None:
    desk = Desk()
    desk.does(PLAN, decide_tasks.dispatch_developer(task_id="A", agent_id="d1"))
    desk.does(decide_tasks.submit_for_audit(task_id="A"))
    desk.commit = AuditedCommit(HEAD, ("a.py",), "main", BASE, (HEAD,), ("C",))
    desk.does(
        decide_tasks.pass_audit(
            task_id="A", agent_id="x", evidence_summary="green", no_commits=True
        )
    )
    found = desk.state.task_commits["A"]
    assert (found.base_sha, found.commit_sha, found.files_modified) == (BASE, HEAD, ("a.py",))
    assert (found.commits, found.shared_with) == ((HEAD,), ("C",))


def test_a_request_without_a_task_is_about_that_of_the_agent_that_asks() -> None:
    desk = Desk()
    desk.does(*TAKEN)
    request = decide_support.delegate_request(
        agent_id="db-expert",
        delegating_agent="dev-1",
        request_type="task",
        request_summary="Write the migration",
    )
    assert desk.does(request) == ["supporting_agent_delegated"]
    (run,) = desk.state.active_supporting_agents.values()
    assert run.task_id == "A"


def test_averages_of_a_supporting_agent() -> None:
    desk = Desk()
    desk.does(*BUSY)
    desk.waits(seconds=60).does(
        decide_support.complete_support(run_id="db-expert-run-2", confidence="LOW")
    )
    desk.waits(seconds=60).does(
        decide_support.complete_support(run_id="db-expert-run-3", confidence="HIGH")
    )
    stats = desk.state.supporting_agent_stats["db-expert"]
    assert (stats.avg_duration_seconds, stats.avg_confidence) == (90.0, "MEDIUM")
    assert stats.tasks_benefited == ("A",)


def test_failure_patterns_count_and_keep_their_causes() -> None:
    desk = Desk()
    told = decide.record_failure_pattern(
        failure_type="type_errors", task_id="A", cause="wrong type"
    )
    desk.does(
        PLAN,
        told,
        told,
        decide.add_failure_prevention(failure_type="type_errors", prevention="mypy"),
    )
    pattern = desk.state.failure_patterns["type_errors"]
    assert (pattern.count, pattern.tasks) == (2, ("A",))
    assert (pattern.common_causes, pattern.suggested_prevention) == (("wrong type",), "mypy")


def test_the_known_prevention_of_a_kind_is_in_its_pattern() -> None:
    desk = Desk()
    desk.does(*AUDITED)
    desk.does(decide_tasks.fail_audit(task_id="A", agent_id="aud-1", reason="AssertionError"))
    said = desk.state.failure_patterns["test_failures"].suggested_prevention
    assert said is not None
    assert said.startswith("Run the whole test suite")


def touching(name: str, *globs: str, **more: Any) -> PlanTask:
    return task(name, **more).model_copy(update={"touches": globs})


APART = plan(
    touching("A", "src/api/**", priority=2),
    touching("B", "src/api/orders.py", "docs/", priority=1),
    touching("C", "src/web/**"),
    task("D", priority=-1),
)


def test_tasks_that_touch_the_same_files_are_not_worked_on_at_once() -> None:
    desk = Desk()
    desk.does(APART)
    assert desk.tick() == ["developer_dispatched"] * 3
    assert list(desk.state.active_developers.values()) == ["A", "C", "D"]
    assert desk.refuses(decide_tasks.dispatch_developer(task_id="B", agent_id="x")) == (
        "paths_overlap"
    )
    assert {
        name: other.task_id for name, other in decide_tasks.tasks_apart(desk.state).items()
    } == {"B": "A"}
    desk.does(decide_tasks.submit_for_audit(task_id="A"))
    assert "B" in decide_tasks.tasks_apart(desk.state), "it may come back from its audit"
    desk.does(
        decide_tasks.pass_audit(
            task_id="A", agent_id="x", evidence_summary="green", no_commits=True
        )
    )
    desk.does(decide_tasks.dispatch_developer(task_id="B", agent_id="x"))


def test_work_that_has_not_landed_keeps_tasks_apart_where_tasks_land() -> None:
    desk = Desk(commit=AuditedCommit(HEAD))
    desk.does(APART, decide_tasks.dispatch_developer(task_id="A", agent_id="a"))
    chosen = partial(LandingTargetChosen, target="refs/heads/plan")
    desk.take(desk.terms().events([chosen]))
    desk.does(decide_tasks.submit_for_audit(task_id="A"))
    desk.does(
        decide_tasks.pass_audit(
            task_id="A", agent_id="x", evidence_summary="green", no_commits=True
        )
    )
    assert "B" in decide_tasks.tasks_apart(desk.state)
    landed = partial(
        TaskLanded,
        task_id="A",
        target="refs/heads/plan",
        tip=HEAD,
        commit_sha=HEAD,
        kept_ref=None,
        mode="squash",
    )
    desk.take(desk.terms().events([landed]))
    assert decide_tasks.tasks_apart(desk.state) == {}


def test_two_tasks_that_begun_before_they_were_kept_apart_do_not_wait_for_each_other() -> None:
    desk = Desk()
    desk.does(plan(task("A"), task("B")))
    for name in ("A", "B"):
        desk.does(decide_tasks.dispatch_developer(task_id=name, agent_id=f"dev-{name}"))
    desk.does(plan(touching("A", "src/"), touching("B", "src/")))
    for name in ("A", "B"):
        desk.does(decide_agents.crash_agent(agent_id=f"dev-{name}"))
    assert desk.state.in_progress_tasks == ()
    assert desk.tick() == ["developer_dispatched"]


@pytest.mark.parametrize("take", [lambda log: log * 2, lambda log: [e for e in log for _ in "ab"]])
def test_an_event_that_comes_again_changes_nothing(take: Callable[[Any], Any]) -> None:
    desk = Desk()
    desk.does(*REPAIRED, decide_agents.fail_health_audit(agent_id="h"))
    before = desk.state
    desk.log = take(desk.log)
    assert desk.folded() == before


def test_every_event_of_the_coordinator_is_folded() -> None:
    assert set(CHANGES) == set(get_args(CoordinatorEvent))


def test_a_document_stays_what_it_was_while_the_fold_goes_on() -> None:
    desk = Desk()
    desk.does(*TAKEN, decide_agents.record_checkpoint(agent_id="dev-1", checkpoint="one"))
    fold = CoordinatorFold("")
    for event in desk.log:
        fold.apply(event)
    first = fold.contents()
    said = [agent.last_checkpoint for agent in first["active_agents"].values()]
    desk.does(decide_agents.record_checkpoint(agent_id="dev-1", checkpoint="two"))
    fold.apply(desk.log[-1])
    desk.does(decide_agents.record_checkpoint(agent_id="dev-1", checkpoint="three"))
    fold.apply(desk.log[-1])
    assert said == [one.last_checkpoint for one in first["active_agents"].values()] == ["one"]
    assert fold.contents()["active_agents"]["dev-1"].last_checkpoint == "three"


def test_whoever_is_to_start_is_told_what_it_is_about() -> None:
    desk = Desk()
    desk.does(plan(task("A", title="Write the migration")))
    desk.does(decide_tasks.dispatch_developer(task_id="A", agent_id="dev", to_start=True))
    assert [one.text for one in desk.state.outbox] == ["Write the migration"]
    desk.does(
        decide_tasks.submit_for_audit(task_id="A"),
        decide_agents.dispatch_agent(task_id="A", agent_id="aud", to_start=True),
    )
    assert [one.text for one in desk.state.outbox] == ["Write the migration"]


def test_what_blocks_a_task() -> None:
    desk = Desk()
    tasks = [task("A"), task("B", "A"), task("C", "A", "B"), task("D", "C")]
    desk.does(plan(*tasks))
    assert desk.state.blocked_tasks == {"B": ("A",), "C": ("A", "B"), "D": ("C",)}
    desk.does(plan(task("A"), task("D")))
    for name in ("A", "D"):
        desk.does(
            decide_tasks.dispatch_developer(task_id=name, agent_id="dev"),
            decide_tasks.submit_for_audit(task_id=name),
            decide_tasks.pass_audit(
                task_id=name, agent_id="aud", evidence_summary="green", no_commits=True
            ),
        )
    desk.does(plan(*tasks))
    assert desk.state.blocked_tasks == {"C": ("B",)}
