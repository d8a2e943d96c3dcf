"""Decisions on tasks: who may take one up, when it may be audited, and what a verdict leads to."""

from guard.core.base.text import shortened
from guard.core.coordinator.entries import TaskInProgress
from guard.core.coordinator.requests import (
    Block,
    DispatchAgent,
    DispatchDeveloper,
    Fail,
    Pass,
    ReadyForAudit,
)
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.terms import SHOW, DecisionTerms, Draft, NotAllowed, called, typed
from guard.core.events.plan import (
    AuditorBlocked,
    AuditorFail,
    DeveloperDispatched,
    DeveloperReadyForAudit,
    InfrastructureBlocked,
    PlanComplete,
    TaskComplete,
)
from guard.core.events.plan_agents import AgentDispatched
from guard.core.events.plan_upkeep import FailurePatternRecorded, TaskCommitRecorded
from guard.core.failures.diagnose import failure_cause, failure_kind

_MOST_CAUSE = 400


def dispatch_developer(
    state: Coordinator, asked: DispatchDeveloper, terms: DecisionTerms
) -> list[Draft]:
    """A task goes to a developer, if it is free, there is a place, and nothing holds up all work."""
    refuse_unless_free(state, asked.task_id)
    refuse_while_held_up(state)
    refuse_beyond_redispatch(state, asked.task_id, terms)
    refuse_active(state, asked.agent_id)
    refuse_without_slot(state, terms)
    event, fields = developer(asked.task_id, asked.agent_id, terms, to_start=asked.to_start)
    return [(event, {**fields, "registered_in": asked.registered_in})]


def developer(task_id: str, agent_id: str, terms: DecisionTerms, *, to_start: bool) -> Draft:
    """The event by which a task is a developer's."""
    return DeveloperDispatched, {
        "task_id": task_id,
        "agent_id": agent_id,
        "timeout_at": terms.until,
        "to_start": to_start,
        "base_sha": terms.head,
    }


def refuse_unless_free(state: Coordinator, task_id: str) -> None:
    """Only what is available, or is to be reworked and has nobody, can be taken up."""
    place = state.place(task_id)
    if place is None:
        raise NotAllowed("unknown_task", f"the plan has no task {task_id}", SHOW)
    if place == "available" or is_idle(state, state.work(task_id)):
        return
    name = called(state, task_id)
    if place == "blocked":
        waits = ", ".join(called(state, one) for one in state.blocked_tasks[task_id][:5])
        raise NotAllowed("task_blocked", f"task {name} waits for {waits}", SHOW)
    if place == "in_progress":
        work = state.work(task_id)
        assert work is not None
        who = f"task {name} is {work.status} by {work.developer_id}"
        raise NotAllowed("task_in_progress", who, SHOW)
    if place == "completed":
        hint = f"`guard rollback {typed(state, task_id)}` undoes it"
        raise NotAllowed("task_completed", f"task {name} is complete", hint)
    waits = state.pending_expansions[task_id]
    raise NotAllowed("task_in_expansion", f"task {name} is being expanded ({waits})", SHOW)


def is_idle(state: Coordinator, work: TaskInProgress | None) -> bool:
    """Whether a task in progress is to be worked on, and nobody is at it."""
    if work is None or work.status != "implementing":
        return False
    agent = state.active_agents.get(work.developer_id)
    return agent is None or agent.task_id != work.task_id


def refuse_while_held_up(state: Coordinator) -> None:
    """What keeps everybody from new work."""
    refuse_during_rollback(state)
    if state.infrastructure_blocked:
        raise NotAllowed(
            "infrastructure_blocked",
            f"the infrastructure is blocked: {state.infrastructure_issue}",
            "`guard plan remediate` sends somebody, `guard plan health` records that it is well again",
        )
    if state.pending_divine_questions:
        question = state.pending_divine_questions[0]
        raise NotAllowed(
            "open_questions",
            f"{question.question_id} is not answered: {question.question[:200]}",
            f"`guard plan answer {question.question_id} TEXT`",
        )


def refuse_during_rollback(state: Coordinator) -> None:
    """A rollback that was begun has to end first."""
    if state.rollback_in_progress is not None:
        task_id = state.rollback_in_progress.task_id
        raise NotAllowed(
            "rollback_in_progress",
            f"the rollback of {called(state, task_id)} has not ended",
            f"`guard rollback {typed(state, task_id)}` finishes or undoes it",
        )


def refuse_beyond_redispatch(state: Coordinator, task_id: str, terms: DecisionTerms) -> None:
    """A task on which agents are lost again and again waits for a person."""
    setback = state.setbacks.get(task_id)
    if setback is not None and setback.attempts > terms.limits.redispatch_limit:
        raise NotAllowed(
            "redispatch_limit",
            f"agents of task {called(state, task_id)} were lost {setback.attempts} times",
            "answer the question about it: `guard plan show` lists the open ones",
        )


def refuse_active(state: Coordinator, agent_id: str) -> None:
    """An agent does one thing at a time."""
    agent = state.active_agents.get(agent_id)
    if agent is not None:
        what = called(state, agent.task_id) if agent.task_id else "the infrastructure"
        raise NotAllowed(
            "agent_active", f"agent {agent_id} is at work on {what}", "name another agent"
        )


def refuse_without_slot(state: Coordinator, terms: DecisionTerms) -> None:
    """Developers and auditors together are as many as the limit says."""
    if state.active_actor_count >= terms.limits.active_developers:
        raise NotAllowed(
            "no_free_slot",
            f"{state.active_actor_count} of {terms.limits.active_developers} agents are at work",
            "wait for one of them, or raise `coordinator.active_developers`",
        )


def ready(state: Coordinator, asked: ReadyForAudit, _terms: DecisionTerms) -> list[Draft]:
    """Only the developer of a task that is being implemented can call it ready."""
    work, name = state.work(asked.task_id), called(state, asked.task_id)
    if work is None:
        raise NotAllowed("task_not_in_progress", f"task {name} is not in progress", SHOW)
    if work.status != "implementing":
        raise NotAllowed("task_not_implementing", f"task {name} is {work.status}", SHOW)
    agent_id = asked.agent_id or work.developer_id
    if agent_id != work.developer_id:
        raise NotAllowed(
            "not_its_developer",
            f"task {name} is {work.developer_id}'s, not {agent_id}'s",
            SHOW,
        )
    return [(DeveloperReadyForAudit, {"task_id": asked.task_id, "agent_id": agent_id})]


def dispatch_auditor(state: Coordinator, asked: DispatchAgent, terms: DecisionTerms) -> list[Draft]:
    """An auditor takes a place like a developer; each task has one at a time."""
    if asked.task_id is None:
        raise NotAllowed("no_task", "an auditor has a task to audit", "name it")
    refuse_unless_pending(state, asked.task_id)
    if asked.task_id in state.active_auditors.values():
        told = f"task {called(state, asked.task_id)} is being audited"
        raise NotAllowed("audit_under_way", told, SHOW)
    refuse_while_held_up(state)
    refuse_beyond_redispatch(state, asked.task_id, terms)
    refuse_active(state, asked.agent_id)
    refuse_without_slot(state, terms)
    return [auditor(asked.task_id, asked.agent_id, terms, to_start=asked.to_start)]


def auditor(task_id: str, agent_id: str, terms: DecisionTerms, *, to_start: bool) -> Draft:
    """The event by which an audit is an auditor's."""
    return AgentDispatched, {
        "agent_id": agent_id,
        "agent_type": "auditor",
        "task_id": task_id,
        "timeout_at": terms.until,
        "to_start": to_start,
    }


def refuse_unless_pending(state: Coordinator, task_id: str) -> None:
    """Only what a developer called ready can be audited."""
    if task_id not in state.pending_audit:
        place = state.place(task_id)
        where = f"is {place.replace('_', ' ')}" if place else "is not in the plan"
        raise NotAllowed(
            "audit_not_pending",
            f"task {called(state, task_id)} {where}: no audit is pending",
            f"`guard plan ready {typed(state, task_id)}` calls it ready for one",
        )


def _refuse_others_audit(state: Coordinator, task_id: str, agent_id: str) -> None:
    """A verdict is that of the auditor who was sent, and never the developer's own."""
    refuse_unless_pending(state, task_id)
    refuse_during_rollback(state)
    work = state.work(task_id)
    if work is not None and work.developer_id == agent_id:
        raise NotAllowed(
            "own_work",
            f"{agent_id} has developed {called(state, task_id)} itself",
            "let another agent audit it",
        )
    sent = [one for one, audited in state.active_auditors.items() if audited == task_id]
    if sent and agent_id not in sent:
        told = f"task {called(state, task_id)} is audited by {sent[0]}"
        raise NotAllowed("not_its_auditor", told, SHOW)
    if not sent:
        refuse_active(state, agent_id)


def audit_pass(state: Coordinator, asked: Pass, terms: DecisionTerms) -> list[Draft]:
    """The task is complete; with the last one the plan is."""
    _refuse_others_audit(state, asked.task_id, asked.agent_id)
    fields = {name: getattr(asked, name) for name in ("task_id", "agent_id", "evidence_summary")}
    drafts: list[Draft] = [(TaskComplete, fields)]
    if terms.commit is not None:
        drafts.append(_commit(state, asked.task_id, terms))
    done = {*state.completed_tasks, asked.task_id}
    if all(task.id in done for task in state.tasks):
        drafts.append((PlanComplete, {"total_tasks": state.total_tasks}))
    return drafts


def _commit(state: Coordinator, task_id: str, terms: DecisionTerms) -> Draft:
    assert terms.commit is not None
    return TaskCommitRecorded, {
        "task_id": task_id,
        "commit_sha": terms.commit.sha,
        "base_sha": base_of(state, task_id),
        "files_modified": terms.commit.files,
        "branch": terms.commit.branch,
    }


def base_of(state: Coordinator, task_id: str) -> str | None:
    """Where the task's own commits begin: where it was taken up, or where the last task ended that passed since."""
    work = state.work(task_id)
    if work is None:
        return None
    since = [one for one in state.task_commits.values() if one.completed_at > work.dispatched_at]
    return since[-1].commit_sha if since else work.base_sha


def audit_fail(state: Coordinator, asked: Fail, terms: DecisionTerms) -> list[Draft]:
    """The task goes back to its developer, if that one is free and there is a place."""
    _refuse_others_audit(state, asked.task_id, asked.agent_id)
    work = state.work(asked.task_id)
    assert work is not None
    others = state.active_actor_count - (asked.agent_id in state.active_auditors)
    goes_on = (
        others < terms.limits.active_developers and work.developer_id not in state.active_agents
    )
    fields = {name: getattr(asked, name) for name in ("task_id", "agent_id", "reason")}
    failed: Draft = (AuditorFail, {**fields, "timeout_at": terms.until if goes_on else None})
    if not asked.reason.strip():
        return [failed]
    kind, cause = failure_kind(asked.reason), failure_cause(asked.reason)
    return [failed, failure(state, kind, asked.task_id, cause)]


def failure(state: Coordinator, kind: str, task_id: str, cause: str | None) -> Draft:
    """One more failure of its kind."""
    known = state.failure_patterns.get(kind)
    count = (known.count if known else 0) + 1
    fields = {"failure_type": kind, "task_id": task_id, "total_occurrences": count}
    return FailurePatternRecorded, {**fields, "cause": cause_kept(cause) if cause else None}


def cause_kept(cause: str) -> str:
    """As much of a cause as is recorded."""
    return shortened(cause, _MOST_CAUSE)


def audit_blocked(state: Coordinator, asked: Block, _terms: DecisionTerms) -> list[Draft]:
    """The audit is still to be made, when the infrastructure is well again."""
    _refuse_others_audit(state, asked.task_id, asked.agent_id)
    fields = {name: getattr(asked, name) for name in ("task_id", "agent_id", "issue")}
    return [(AuditorBlocked, fields), (InfrastructureBlocked, {"issue": asked.issue})]
