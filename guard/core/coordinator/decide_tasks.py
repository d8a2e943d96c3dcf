"""Decide who may work on a task, when it may be audited, and what follows from a verdict."""

from collections.abc import Collection, Iterator
from functools import partial

from guard.core.base.first_use import dataclass
from guard.core.base.text import plural
from guard.core.coordinator import task_events
from guard.core.coordinator.agent_events import AgentDispatched
from guard.core.coordinator.entries import OpenQuestion, TaskInProgress
from guard.core.coordinator.requests import SHOW, DecisionTerms, Draft, NotAllowed, leads_to
from guard.core.coordinator.settings import HoldOnQuestion
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.upkeep_events import FailurePatternRecorded, TaskCommitRecorded
from guard.core.failures.diagnose import failure_cause, failure_kind
from guard.core.plan.touches import common_path


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
    refuse_while_held_up(state, terms.limits.hold_on_question, task_id)
    refuse_beyond_redispatch(state, task_id, terms)
    refuse_active(state, agent_id)
    _refuse_common_paths(state, task_id)
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


def _refuse_common_paths(state: Coordinator, task_id: str) -> None:
    other = kept_apart_by(state, task_id)
    if other is not None:
        name, theirs = state.task_name(task_id), state.task_name(other.task_id)
        message = f"task {name} touches {other.path}, as task {theirs} does"
        hint = f"wait until {theirs} is complete, or change `touches` in the plan"
        raise NotAllowed("paths_overlap", message, hint)


@dataclass(frozen=True)
class CommonPath:
    """A task that must be complete first, because both change the same files."""

    task_id: str
    path: str


def kept_apart_by(
    state: Coordinator, task_id: str, begun: Collection[str] = ()
) -> CommonPath | None:
    """Return the task under way that changes files of this one; tasks `begun` in the same decision count as under way.

    A completed task that has not landed counts, too, where tasks land: the work of the next would not build on it.
    """
    task = state.task(task_id)
    if task is None or not task.touches:
        return None
    for other in (*begun, *_under_way(state, task_id)):
        planned = state.task(other) if other != task_id else None
        path = common_path(task.touches, planned.touches) if planned is not None else None
        if path is not None:
            return CommonPath(other, path)
    return None


def _under_way(state: Coordinator, task_id: str) -> Iterator[str]:
    # Of two tasks that have no agent now, both begun, each could wait for the other: those do not count.
    is_begun = state.work(task_id) is not None
    for work in state.in_progress_tasks:
        if not (is_begun and is_idle(state, work)):
            yield work.task_id
    if state.landing_target is not None:
        done = (name for name in state.completed_tasks if name in state.task_commits)
        yield from (name for name in done if name not in state.landed_tasks)


def tasks_apart(state: Coordinator) -> dict[str, CommonPath]:
    """Return the available tasks that wait for another one because of common files."""
    found = ((task_id, kept_apart_by(state, task_id)) for task_id in state.available_tasks)
    return {task_id: other for task_id, other in found if other is not None}


def refuse_while_held_up(
    state: Coordinator, hold: HoldOnQuestion = "all", task_id: str | None = None
) -> None:
    """Refuse new work during a rollback, while the infrastructure is blocked, and while a question holds it back.

    Without a task, only what holds back every task counts.
    """
    _refuse_during_rollback(state)
    if state.infrastructure_blocked:
        raise NotAllowed(
            "infrastructure_blocked",
            f"the infrastructure is blocked: {state.infrastructure_issue}",
            "`guard plan remediate` sends an agent, `guard plan health` records that it is healthy again",
        )
    question = holding_question(state, hold, task_id)
    if question is not None:
        raise NotAllowed(
            "open_questions",
            f"{question.question_id} is not answered: {question.question[:200]}",
            f"`guard plan answer {question.question_id} TEXT`",
        )


def holding_question(
    state: Coordinator, hold: HoldOnQuestion, task_id: str | None
) -> OpenQuestion | None:
    """Return the first open question that holds back new work on the task; without a task, on all of them."""
    questions = state.pending_divine_questions
    if hold == "task":
        questions = tuple(one for one in questions if one.task_id in (None, task_id))
    return questions[0] if questions else None


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
    refuse_while_held_up(state, terms.limits.hold_on_question, task_id)
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
    no_commits: bool = False,
) -> list[Draft]:
    """Complete a task and record its commits; the plan is complete with its last task.

    A task without commits passes only with `no_commits`, and one whose auditor the plan did not send only with evidence.
    """
    _refuse_verdict(state, task_id, agent_id)
    _refuse_unfounded(state, terms, task_id, agent_id, evidence_summary, no_commits=no_commits)
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
            base_sha=terms.commit.base,
            files_modified=terms.commit.files,
            branch=terms.commit.branch,
            commits=terms.commit.commits,
            shared_with=terms.commit.shared_with,
        )
        drafts.append(commit)
    done = {*state.completed_tasks, task_id}
    if all(task.id in done for task in state.tasks):
        drafts.append(partial(task_events.PlanComplete, total_tasks=state.total_tasks))
    return drafts


def _refuse_unfounded(
    state: Coordinator,
    terms: DecisionTerms,
    task_id: str,
    agent_id: str,
    evidence: str,
    *,
    no_commits: bool,
) -> None:
    name = state.task_name(task_id)
    if terms.commit is None and not no_commits:
        raise NotAllowed(
            "no_commits",
            f"task {name} has no commits",
            "commit the work first; --no-commits passes a task that needs none",
        )
    if not evidence.strip() and agent_id not in state.active_auditors:
        raise NotAllowed(
            "no_evidence",
            f"nothing tells why task {name} passes",
            f"--message says what {agent_id} saw; an auditor that the plan sent needs none",
        )


@leads_to(task_events.AuditorFail)
def fail_audit(
    state: Coordinator, terms: DecisionTerms, *, task_id: str, agent_id: str, reason: str = ""
) -> list[Draft]:
    """Send the task back to its developer, which continues at once if it is free and a place is free.

    After `audit_limit` failed audits in a row, a person is asked first.
    """
    _refuse_verdict(state, task_id, agent_id)
    work = state.work(task_id)
    assert work is not None
    others = state.active_actor_count - (agent_id in state.active_auditors)
    failures = state.failed_audits_in_a_row.get(task_id, 0) + 1
    is_last = failures >= terms.limits.audit_limit
    goes_on = (
        not is_last
        and others < terms.limits.active_developers
        and work.developer_id not in state.active_agents
    )
    failed = partial(task_events.AuditorFail, task_id=task_id, agent_id=agent_id, reason=reason)
    drafts: list[Draft] = [
        partial(failed, **terms.timeout()) if goes_on else partial(failed, timeout_at=None)
    ]
    if reason.strip():
        drafts.append(failure_draft(state, failure_kind(reason), task_id, failure_cause(reason)))
    if is_last:
        times = plural(failures, "audit")
        text = f"{times} of task {state.task_name(task_id)} failed in a row; the last: {reason}"
        drafts.append(question_draft(state, "audit", task_id, text))
    return drafts


def question_draft(
    state: Coordinator,
    about: task_events.QuestionAbout,
    task_id: str | None,
    text: str,
    agent_id: str | None = None,
) -> Draft:
    return partial(
        task_events.AgentSeeksGuidance,
        question_id=state.new_name("question"),
        agent_id=agent_id,
        task_id=task_id,
        question=text[:65536],
        about=about,
    )


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
