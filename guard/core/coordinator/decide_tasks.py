"""Decide who may work on a task, when it may be audited, and what follows from a verdict."""

from functools import partial

from guard.core.coordinator import task_events
from guard.core.coordinator.agent_events import AgentDispatched
from guard.core.coordinator.entries import TaskInProgress
from guard.core.coordinator.requests import SHOW, DecisionTerms, Draft, NotAllowed, leads_to
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.upkeep_events import FailurePatternRecorded, TaskCommitRecorded
from guard.core.failures.diagnose import failure_cause, failure_kind


@leads_to(task_events.DeveloperDispatched)
def dispatch_developer(
    state: Coordinator,
    terms: DecisionTerms,
    *,
    task_id: str,
    agent_id: str,
    to_start: bool = False,
    registered_in: str | None = None,
) -> list[Draft]:
    """Give a free task to a developer, if a place is free and nothing holds up all work."""
    _refuse_unless_free(state, task_id)
    refuse_while_held_up(state)
    refuse_beyond_redispatch(state, task_id, terms)
    refuse_active(state, agent_id)
    _refuse_without_slot(state, terms)
    return [
        developer_draft(task_id, agent_id, terms, to_start=to_start, registered_in=registered_in)
    ]


def developer_draft(
    task_id: str,
    agent_id: str,
    terms: DecisionTerms,
    *,
    to_start: bool,
    registered_in: str | None = None,
) -> Draft:
    return partial(
        task_events.DeveloperDispatched,
        task_id=task_id,
        agent_id=agent_id,
        to_start=to_start,
        base_sha=terms.head,
        registered_in=registered_in,
        **terms.timeout(),
    )


def _refuse_unless_free(state: Coordinator, task_id: str) -> None:
    place = state.place(task_id)
    if place is None:
        raise NotAllowed("unknown_task", f"the plan has no task {task_id}", SHOW)
    if place == "available" or is_idle(state, state.work(task_id)):
        return
    name = state.task_name(task_id)
    if place == "blocked":
        waits = ", ".join(
            state.task_name(dependency) for dependency in state.blocked_tasks[task_id][:5]
        )
        raise NotAllowed("task_blocked", f"task {name} waits for {waits}", SHOW)
    if place == "in_progress":
        work = state.work(task_id)
        assert work is not None
        who = f"task {name} is {work.status} by {work.developer_id}"
        raise NotAllowed("task_in_progress", who, SHOW)
    if place == "completed":
        hint = f"`guard rollback {state.quoted_task_name(task_id)}` undoes it"
        raise NotAllowed("task_completed", f"task {name} is complete", hint)
    analyst = state.pending_expansions[task_id]
    raise NotAllowed("task_in_expansion", f"task {name} is being expanded ({analyst})", SHOW)


def is_idle(state: Coordinator, work: TaskInProgress | None) -> bool:
    """Tell whether a task is to be implemented and no developer works on it."""
    if work is None or work.status != "implementing":
        return False
    agent = state.active_agents.get(work.developer_id)
    return agent is None or agent.task_id != work.task_id


def refuse_while_held_up(state: Coordinator) -> None:
    """Refuse new work during a rollback, while the infrastructure is blocked, and while a question is open."""
    _refuse_during_rollback(state)
    if state.infrastructure_blocked:
        raise NotAllowed(
            "infrastructure_blocked",
            f"the infrastructure is blocked: {state.infrastructure_issue}",
            "`guard plan remediate` sends an agent, `guard plan health` records that it is healthy again",
        )
    if state.pending_divine_questions:
        question = state.pending_divine_questions[0]
        raise NotAllowed(
            "open_questions",
            f"{question.question_id} is not answered: {question.question[:200]}",
            f"`guard plan answer {question.question_id} TEXT`",
        )


def _refuse_during_rollback(state: Coordinator) -> None:
    if state.rollback_in_progress is not None:
        task_id = state.rollback_in_progress.task_id
        raise NotAllowed(
            "rollback_in_progress",
            f"the rollback of {state.task_name(task_id)} has not ended",
            f"`guard rollback {state.quoted_task_name(task_id)}` finishes or undoes it",
        )


def refuse_beyond_redispatch(state: Coordinator, task_id: str, terms: DecisionTerms) -> None:
    """Refuse a task on which too many agents were lost; it waits for a person."""
    setback = state.setbacks.get(task_id)
    if setback is not None and setback.attempts > terms.limits.redispatch_limit:
        raise NotAllowed(
            "redispatch_limit",
            f"agents of task {state.task_name(task_id)} were lost {setback.attempts} times",
            "answer the question about it: `guard plan show` lists the open ones",
        )


def refuse_active(state: Coordinator, agent_id: str) -> None:
    agent = state.active_agents.get(agent_id)
    if agent is not None:
        what = state.task_name(agent.task_id) if agent.task_id else "the infrastructure"
        raise NotAllowed(
            "agent_active", f"agent {agent_id} is at work on {what}", "name another agent"
        )


def _refuse_without_slot(state: Coordinator, terms: DecisionTerms) -> None:
    if state.active_actor_count >= terms.limits.active_developers:
        raise NotAllowed(
            "no_free_slot",
            f"{state.active_actor_count} of {terms.limits.active_developers} agents are at work",
            "wait for one of them, or raise `coordinator.active_developers`",
        )


@leads_to(task_events.DeveloperReadyForAudit)
def submit_for_audit(
    state: Coordinator, _terms: DecisionTerms, *, task_id: str, agent_id: str | None = None
) -> list[Draft]:
    """Call a task ready for its audit; only its developer may, while it implements the task."""
    work, name = state.work(task_id), state.task_name(task_id)
    if work is None:
        raise NotAllowed("task_not_in_progress", f"task {name} is not in progress", SHOW)
    if work.status != "implementing":
        raise NotAllowed("task_not_implementing", f"task {name} is {work.status}", SHOW)
    agent_id = agent_id or work.developer_id
    if agent_id != work.developer_id:
        raise NotAllowed(
            "not_its_developer",
            f"task {name} belongs to {work.developer_id}, not to {agent_id}",
            SHOW,
        )
    return [partial(task_events.DeveloperReadyForAudit, task_id=task_id, agent_id=agent_id)]


def dispatch_auditor(
    state: Coordinator, terms: DecisionTerms, *, task_id: str | None, agent_id: str, to_start: bool
) -> list[Draft]:
    """Send an auditor to a task; it takes a place like a developer, and each task has only one."""
    if task_id is None:
        raise NotAllowed("no_task", "an auditor needs a task", "name the task to audit")
    _refuse_unless_pending(state, task_id)
    if task_id in state.active_auditors.values():
        message = f"task {state.task_name(task_id)} is being audited"
        raise NotAllowed("audit_under_way", message, SHOW)
    refuse_while_held_up(state)
    refuse_beyond_redispatch(state, task_id, terms)
    refuse_active(state, agent_id)
    _refuse_without_slot(state, terms)
    return [auditor_draft(task_id, agent_id, terms, to_start=to_start)]


def auditor_draft(
    task_id: str | None, agent_id: str, terms: DecisionTerms, *, to_start: bool
) -> Draft:
    """Dispatch an auditor to a task; without a task, one that audits the health of the infrastructure."""
    return partial(
        AgentDispatched,
        agent_id=agent_id,
        agent_type="health_auditor" if task_id is None else "auditor",
        task_id=task_id,
        to_start=to_start,
        **terms.timeout(),
    )


def _refuse_unless_pending(state: Coordinator, task_id: str) -> None:
    if task_id not in state.pending_audit:
        place = state.place(task_id)
        where = f"is {place.replace('_', ' ')}" if place else "is not in the plan"
        raise NotAllowed(
            "audit_not_pending",
            f"task {state.task_name(task_id)} {where}: no audit is pending",
            f"`guard plan ready {state.quoted_task_name(task_id)}` submits it for one",
        )


def _refuse_verdict(state: Coordinator, task_id: str, agent_id: str) -> None:
    # A developer must not judge its own task, and an agent must not judge a task that another one audits.
    _refuse_unless_pending(state, task_id)
    _refuse_during_rollback(state)
    work = state.work(task_id)
    if work is not None and work.developer_id == agent_id:
        raise NotAllowed(
            "own_work",
            f"{agent_id} is the developer of {state.task_name(task_id)}",
            "let another agent audit it",
        )
    sent = [auditor for auditor, audited in state.active_auditors.items() if audited == task_id]
    if sent and agent_id not in sent:
        message = f"task {state.task_name(task_id)} is audited by {sent[0]}"
        raise NotAllowed("not_its_auditor", message, SHOW)
    if not sent:
        refuse_active(state, agent_id)


@leads_to(task_events.TaskComplete)
def pass_audit(
    state: Coordinator,
    terms: DecisionTerms,
    *,
    task_id: str,
    agent_id: str,
    evidence_summary: str = "",
) -> list[Draft]:
    """Complete a task and record its commits; the plan is complete with its last task."""
    _refuse_verdict(state, task_id, agent_id)
    drafts: list[Draft] = [
        partial(
            task_events.TaskComplete,
            task_id=task_id,
            agent_id=agent_id,
            evidence_summary=evidence_summary,
        )
    ]
    if terms.commit is not None:
        commit = partial(
            TaskCommitRecorded,
            task_id=task_id,
            commit_sha=terms.commit.sha,
            base_sha=base_of(state, task_id),
            files_modified=terms.commit.files,
            branch=terms.commit.branch,
        )
        drafts.append(commit)
    done = {*state.completed_tasks, task_id}
    if all(task.id in done for task in state.tasks):
        drafts.append(partial(task_events.PlanComplete, total_tasks=state.total_tasks))
    return drafts


def base_of(state: Coordinator, task_id: str) -> str | None:
    """Return the commit after which the task's own commits begin.

    This is the commit of the last task that passed since this one was dispatched, else the commit at its dispatch.
    """
    work = state.work(task_id)
    if work is None:
        return None
    since = [
        commit for commit in state.task_commits.values() if commit.completed_at > work.dispatched_at
    ]
    return since[-1].commit_sha if since else work.base_sha


@leads_to(task_events.AuditorFail)
def fail_audit(
    state: Coordinator, terms: DecisionTerms, *, task_id: str, agent_id: str, reason: str = ""
) -> list[Draft]:
    """Send the task back to its developer, which continues at once if it is free and a place is free."""
    _refuse_verdict(state, task_id, agent_id)
    work = state.work(task_id)
    assert work is not None
    others = state.active_actor_count - (agent_id in state.active_auditors)
    goes_on = (
        others < terms.limits.active_developers and work.developer_id not in state.active_agents
    )
    failed = partial(task_events.AuditorFail, task_id=task_id, agent_id=agent_id, reason=reason)
    drafts: list[Draft] = [
        partial(failed, **terms.timeout()) if goes_on else partial(failed, timeout_at=None)
    ]
    if reason.strip():
        drafts.append(failure_draft(state, failure_kind(reason), task_id, failure_cause(reason)))
    return drafts


def failure_draft(state: Coordinator, kind: str, task_id: str, cause: str | None) -> Draft:
    known = state.failure_patterns.get(kind)
    return partial(
        FailurePatternRecorded,
        failure_type=kind,
        task_id=task_id,
        cause=cause or None,
        total_occurrences=(known.count if known else 0) + 1,
    )


@leads_to(task_events.AuditorBlocked)
def block_audit(
    state: Coordinator, _terms: DecisionTerms, *, task_id: str, agent_id: str, issue: str
) -> list[Draft]:
    """Block the infrastructure; the audit stays pending until the infrastructure is healthy again."""
    _refuse_verdict(state, task_id, agent_id)
    return [
        partial(task_events.AuditorBlocked, task_id=task_id, agent_id=agent_id, issue=issue),
        partial(task_events.InfrastructureBlocked, issue=issue),
    ]
