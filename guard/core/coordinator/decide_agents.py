"""Decide on the infrastructure, on questions to a person, and on agents that end or are lost."""

from datetime import datetime
from functools import partial
from typing import Literal

from guard.core.base.fields import Line
from guard.core.base.text import shorten
from guard.core.coordinator import agent_events, task_events, upkeep_events
from guard.core.coordinator.decide_support import analyst_draft
from guard.core.coordinator.decide_tasks import (
    auditor_draft,
    dispatch_auditor,
    question_draft,
    refuse_active,
)
from guard.core.coordinator.entries import ActiveAgent
from guard.core.coordinator.fold_tasks import ON_THE_INFRASTRUCTURE, is_awaited
from guard.core.coordinator.requests import SHOW, DecisionTerms, Draft, NotAllowed, leads_to
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import QuestionAbout

_MOST_BECAUSE = 512
_MOST_NAMED = 100
_ISSUE_HINT = "`guard plan remediate --agent ID --issue TEXT` says what is wrong"


@leads_to(task_events.RemediationDispatched)
def dispatch_remediation(
    state: Coordinator,
    terms: DecisionTerms,
    *,
    agent_id: str,
    issue: str | None = None,
    to_start: bool = False,
) -> list[Draft]:
    """Send an agent to repair the infrastructure: one at a time, within the limit of attempts."""
    issue = issue or state.infrastructure_issue
    if not issue:
        raise NotAllowed("no_issue", "no issue of the infrastructure is known", _ISSUE_HINT)
    working = [name for name, agent in state.active_agents.items() if agent.type == "remediation"]
    if working:
        raise NotAllowed(
            "remediation_active", f"{working[0]} is already repairing the infrastructure", SHOW
        )
    _refuse_spent(state, terms)
    refuse_active(state, agent_id)
    return [remediation_draft(agent_id, issue, terms, to_start=to_start)]


def remediation_draft(agent_id: str, issue: str, terms: DecisionTerms, *, to_start: bool) -> Draft:
    return partial(
        task_events.RemediationDispatched,
        agent_id=agent_id,
        issue=issue,
        to_start=to_start,
        **terms.timeout(),
    )


def _refuse_spent(state: Coordinator, terms: DecisionTerms) -> None:
    if state.remediation_attempt_count >= terms.limits.remediation_attempts:
        raise NotAllowed(
            "remediation_limit",
            f"{state.remediation_attempt_count} attempts have failed: a person is needed",
            "answer the question about it: `guard plan show` lists the open ones",
        )


@leads_to(task_events.InfrastructureBlocked)
def block_infrastructure(_state: Coordinator, _terms: DecisionTerms, *, issue: str) -> list[Draft]:
    return [partial(task_events.InfrastructureBlocked, issue=issue)]


@leads_to(agent_events.AgentDispatched)
def dispatch_agent(
    state: Coordinator,
    terms: DecisionTerms,
    *,
    agent_id: str,
    agent_type: Literal["auditor", "health_auditor"] = "auditor",
    task_id: str | None = None,
    to_start: bool = False,
) -> list[Draft]:
    """Send an auditor to a task, or a health auditor to a blocked infrastructure."""
    if agent_type == "auditor":
        return dispatch_auditor(state, terms, task_id=task_id, agent_id=agent_id, to_start=to_start)
    _refuse_unless_blocked(state)
    if any(agent.type == "health_auditor" for agent in state.active_agents.values()):
        raise NotAllowed("audit_under_way", "the infrastructure is being audited", SHOW)
    refuse_active(state, agent_id)
    return [auditor_draft(None, agent_id, terms, to_start=to_start)]


def _refuse_unless_blocked(state: Coordinator) -> None:
    if not state.infrastructure_blocked:
        raise NotAllowed("not_blocked", "the infrastructure is not blocked", _ISSUE_HINT)


@leads_to(task_events.HealthAuditPass)
def pass_health_audit(state: Coordinator, _terms: DecisionTerms, *, agent_id: str) -> list[Draft]:
    _refuse_unless_blocked(state)
    return [
        partial(task_events.HealthAuditPass, agent_id=agent_id),
        task_events.InfrastructureRestored,
    ]


@leads_to(task_events.HealthAuditFail)
def fail_health_audit(
    state: Coordinator, terms: DecisionTerms, *, agent_id: str, issue: str | None = None
) -> list[Draft]:
    """Count a failed attempt to repair the infrastructure; after the last permitted one, ask a person."""
    _refuse_unless_blocked(state)
    _refuse_spent(state, terms)
    drafts: list[Draft] = [partial(task_events.HealthAuditFail, agent_id=agent_id, issue=issue)]
    limit = terms.limits.remediation_attempts
    if state.remediation_attempt_count + 1 >= limit:
        issue = issue or state.infrastructure_issue or "the infrastructure is not healthy"
        text = f"{limit} attempts to remedy the infrastructure have failed: {issue}"
        drafts.append(question_draft(state, "remediation", None, text))
    return drafts


@leads_to(task_events.DeveloperCheckpoint, agent_events.AgentCheckpoint)
def record_checkpoint(
    state: Coordinator, _terms: DecisionTerms, *, agent_id: str, checkpoint: str
) -> list[Draft]:
    if _active_agent(state, agent_id).type == "developer":
        return [partial(task_events.DeveloperCheckpoint, agent_id=agent_id, checkpoint=checkpoint)]
    return [partial(agent_events.AgentCheckpoint, agent_id=agent_id, checkpoint=checkpoint)]


@leads_to(task_events.CheckpointRequested)
def request_checkpoints(
    state: Coordinator, _terms: DecisionTerms, *, words: tuple[tuple[str, str], ...] = ()
) -> list[Draft]:
    """Ask all developers at work how far they are; `words` are what some of them said since their last checkpoint."""
    agents = tuple(
        name for name in state.active_developers if state.active_agents[name].status == "working"
    )
    if not agents:
        raise NotAllowed("no_developers", "no developer is at work", SHOW)
    drafts: list[Draft] = [partial(task_events.CheckpointRequested, agents=agents)]
    for name, word in words:
        if name in agents and word != state.active_agents[name].last_checkpoint:
            drafts.append(partial(task_events.DeveloperCheckpoint, agent_id=name, checkpoint=word))
    return drafts


def _active_agent(state: Coordinator, agent_id: str) -> ActiveAgent:
    agent = state.active_agents.get(agent_id)
    if agent is None:
        raise NotAllowed("agent_not_active", f"agent {agent_id} is not at work", SHOW)
    return agent


@leads_to(task_events.AgentSeeksGuidance)
def ask_question(
    state: Coordinator, _terms: DecisionTerms, *, question: str, agent_id: str | None = None
) -> list[Draft]:
    if not question.strip():
        raise NotAllowed(
            "no_question", "the question is empty", "write what a person should answer"
        )
    agent = _active_agent(state, agent_id) if agent_id is not None else None
    task_id = agent.task_id if agent else None
    return [question_draft(state, "task", task_id, question, agent_id)]


@leads_to(
    upkeep_events.RollbackRequired,
    files=lambda files: tuple(shorten(name, _MOST_BECAUSE) for name in files[:_MOST_NAMED]),
    commit=lambda commit: shorten(commit, _MOST_BECAUSE),
)
def require_rollback(
    state: Coordinator,
    _terms: DecisionTerms,
    *,
    task_id: str,
    agent_id: str,
    reason: str = "",
    commit: str | None = None,
    files: tuple[str, ...] = (),
) -> list[Draft]:
    """Record that an agent wants a completed task undone, and ask a person, for whose answer the agent waits."""
    name = state.task_name(task_id)
    if task_id not in state.completed_tasks:
        raise NotAllowed("not_completed", f"task {name} is not complete", SHOW)
    required = partial(
        upkeep_events.RollbackRequired,
        task_id=task_id,
        agent_id=agent_id,
        reason=reason,
        commit=commit,
        files=files,
    )
    waiting = agent_id if agent_id in state.active_agents else None
    open_ones = [one for one in state.pending_divine_questions if one.about == "rollback"]
    if any((one.task_id, one.agent_id) == (task_id, waiting) for one in open_ones):
        return [required]
    command = f"`guard rollback {state.quoted_task_name(task_id)}`"
    text = f"{agent_id} wants task {name} to be rolled back ({command}): {reason or 'no reason was given'}"
    return [required, question_draft(state, "rollback", task_id, text, waiting)]


@leads_to(task_events.DivineResponseReceived)
def answer_question(
    state: Coordinator, terms: DecisionTerms, *, question_id: str, response: str
) -> list[Draft]:
    """Give the answer to the agent that waits for it; an analyst that left is sent again with the answer."""
    question = state.question(question_id)
    if question is None:
        raise NotAllowed("unknown_question", f"no question {question_id} is open", SHOW)
    drafts: list[Draft] = [
        partial(task_events.DivineResponseReceived, question_id=question_id, response=response)
    ]
    agent_id = question.agent_id
    if agent_id is None or not is_awaited(question, state.active_agents):
        return drafts
    drafts.append(
        partial(
            task_events.AgentResumesWithGuidance,
            question_id=question_id,
            agent_id=agent_id,
            **terms.timeout(),
        )
    )
    if question.about == "expansion" and question.task_id is not None:
        is_taken = agent_id in state.active_agents
        analyst = state.new_name("analyst") if is_taken else agent_id
        drafts.append(
            analyst_draft(question.task_id, analyst, terms, to_start=True, guidance=response)
        )
    return drafts


@leads_to(agent_events.AgentComplete)
def complete_agent(state: Coordinator, _terms: DecisionTerms, *, agent_id: str) -> list[Draft]:
    """End an agent that repairs or audits the infrastructure; other kinds end with events of their own."""
    agent = _active_agent(state, agent_id)
    if agent.type not in ON_THE_INFRASTRUCTURE:
        raise NotAllowed(
            "end_has_a_name",
            f"agent {agent_id} is a {agent.type.replace('_', ' ')}: record its result instead",
            "use `guard plan ready`, `audit` or `expand`",
        )
    return [partial(agent_events.AgentComplete, agent_id=agent_id)]


@leads_to(agent_events.AgentTimeout)
def time_out_agent(
    state: Coordinator,
    terms: DecisionTerms,
    *,
    agent_id: str,
    reason: Line = "",
    has_ended: bool = False,
) -> list[Draft]:
    del reason  # A caller may give a reason, as for a crash, but the event has no field for it.
    return _lose_agent(
        state, terms, agent_id, partial(agent_events.AgentTimeout, has_ended=has_ended)
    )


@leads_to(agent_events.AgentStarted)
def start_agent(
    state: Coordinator, terms: DecisionTerms, *, agent_id: str, incarnation: int | None = None
) -> list[Draft]:
    """Record that an agent was seen to start; its whole time begins."""
    _refuse_absent(state, agent_id)
    started = partial(agent_events.AgentStarted, agent_id=agent_id, incarnation=incarnation)
    return [partial(started, **terms.timeout())]


@leads_to(agent_events.AgentPaused, because=lambda because: shorten(because, _MOST_BECAUSE))
def pause_agent(
    state: Coordinator,
    terms: DecisionTerms,
    *,
    agent_id: str,
    because: str,
    has_ended: bool = False,
    incarnation: int | None = None,
    retry_at: datetime | None = None,
) -> list[Draft]:
    """Leave the task to an agent whose iteration ended; its whole time begins again, after `retry_at` if that is given."""
    _refuse_absent(state, agent_id)
    wait = max(0.0, (retry_at - terms.now).total_seconds() / 60) if retry_at else 0.0
    paused = partial(
        agent_events.AgentPaused,
        agent_id=agent_id,
        because=because,
        has_ended=has_ended,
        incarnation=incarnation,
    )
    return [partial(paused, **terms.timeout(terms.limits.agent_timeout_minutes + wait))]


def _refuse_absent(state: Coordinator, agent_id: str) -> None:
    if agent_id not in state.active_supporting_agents:
        _active_agent(state, agent_id)


@leads_to(agent_events.AgentCrashed)
def crash_agent(
    state: Coordinator, terms: DecisionTerms, *, agent_id: str, reason: str = ""
) -> list[Draft]:
    return _lose_agent(state, terms, agent_id, partial(agent_events.AgentCrashed, reason=reason))


def _lose_agent(
    state: Coordinator, terms: DecisionTerms, agent_id: str, event: Draft
) -> list[Draft]:
    # At the limit of lost agents, guard also asks a person.
    agent = _active_agent(state, agent_id)
    attempts = _losses(state, agent) + 1
    lost = partial(
        event,
        agent_id=agent_id,
        agent_type=agent.type,
        task_id=agent.task_id,
        attempts=attempts,
    )
    if attempts != terms.limits.redispatch_limit + 1:
        return [lost]
    what = f"task {state.task_name(agent.task_id)}" if agent.task_id else "the infrastructure"
    text = f"agents on {what} were lost {attempts} times; the last was {agent_id}"
    about: QuestionAbout = "redispatch" if agent.task_id else "remediation"
    return [lost, question_draft(state, about, agent.task_id, text)]


def _losses(state: Coordinator, agent: ActiveAgent) -> int:
    if agent.task_id is None:
        return state.infrastructure_setbacks
    setback = state.setbacks.get(agent.task_id)
    return setback.attempts if setback else 0
