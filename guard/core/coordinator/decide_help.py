"""Decisions on remediation, on questions to a person, and on agents that are lost."""

from guard.core.coordinator.decide_tasks import refuse_active
from guard.core.coordinator.fold_tasks import ON_THE_INFRASTRUCTURE, is_awaited
from guard.core.coordinator.requests import (
    AgentDone,
    AgentLost,
    Answer,
    Ask,
    BlockInfrastructure,
    Checkpoint,
    DispatchAgent,
    DispatchRemediation,
    Healthy,
    Unhealthy,
)
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.terms import SHOW, DecisionTerms, Draft, NotAllowed, called, named
from guard.core.events.plan import (
    AgentResumesWithGuidance,
    AgentSeeksGuidance,
    DeveloperCheckpoint,
    DivineResponseReceived,
    HealthAuditFail,
    HealthAuditPass,
    InfrastructureBlocked,
    InfrastructureRestored,
    RemediationDispatched,
)
from guard.core.events.plan_agents import (
    AgentCheckpoint,
    AgentComplete,
    AgentCrashed,
    AgentDispatched,
    AgentTimeout,
    BusinessAnalystDispatched,
)

_ISSUE_HINT = "`guard plan remediate --agent ID --issue TEXT` says what is wrong"


def remediate(state: Coordinator, asked: DispatchRemediation, terms: DecisionTerms) -> list[Draft]:
    """One agent at a time repairs the infrastructure, as often as the limit says."""
    issue = asked.issue or state.infrastructure_issue
    if not issue:
        raise NotAllowed("no_issue", "nothing is known to be wrong", _ISSUE_HINT)
    working = [one for one, agent in state.active_agents.items() if agent.type == "remediation"]
    if working:
        raise NotAllowed("remediation_active", f"{working[0]} is at it already", SHOW)
    if state.remediation_attempt_count >= terms.limits.remediation_attempts:
        raise NotAllowed(
            "remediation_limit",
            f"{state.remediation_attempt_count} attempts have failed: a person is needed",
            "answer the question about it: `guard plan show` lists the open ones",
        )
    refuse_active(state, asked.agent_id)
    fields = {"agent_id": asked.agent_id, "to_start": asked.to_start, "issue": issue}
    return [(RemediationDispatched, {**fields, "timeout_at": terms.until})]


def block(_state: Coordinator, asked: BlockInfrastructure, _terms: DecisionTerms) -> list[Draft]:
    """Somebody found the infrastructure broken."""
    return [(InfrastructureBlocked, {"issue": asked.issue})]


def dispatch_health_auditor(
    state: Coordinator, asked: DispatchAgent, terms: DecisionTerms
) -> list[Draft]:
    """Whether the infrastructure is well is looked at when it was not."""
    _refuse_unless_blocked(state)
    if any(agent.type == "health_auditor" for agent in state.active_agents.values()):
        raise NotAllowed("audit_under_way", "the infrastructure is being audited", SHOW)
    refuse_active(state, asked.agent_id)
    fields = {"agent_id": asked.agent_id, "agent_type": "health_auditor", "task_id": None}
    return [(AgentDispatched, {**fields, "timeout_at": terms.until, "to_start": asked.to_start})]


def _refuse_unless_blocked(state: Coordinator) -> None:
    if not state.infrastructure_blocked:
        raise NotAllowed("not_blocked", "the infrastructure is not blocked", _ISSUE_HINT)


def healthy(state: Coordinator, asked: Healthy, _terms: DecisionTerms) -> list[Draft]:
    """Work may go on."""
    _refuse_unless_blocked(state)
    return [(HealthAuditPass, {"agent_id": asked.agent_id}), (InfrastructureRestored, {})]


def unhealthy(state: Coordinator, asked: Unhealthy, terms: DecisionTerms) -> list[Draft]:
    """At the limit a person is asked, once."""
    _refuse_unless_blocked(state)
    limit = terms.limits.remediation_attempts
    if state.remediation_attempt_count >= limit:
        raise NotAllowed(
            "remediation_limit",
            f"{state.remediation_attempt_count} attempts have failed: a person is needed",
            "answer the question about it: `guard plan show` lists the open ones",
        )
    drafts: list[Draft] = [(HealthAuditFail, {"agent_id": asked.agent_id, "issue": asked.issue})]
    if state.remediation_attempt_count + 1 >= limit:
        issue = asked.issue or state.infrastructure_issue or "the infrastructure is not healthy"
        told = f"{limit} attempts to remedy the infrastructure have failed: {issue}"
        drafts.append(_own_question(state, "remediation", None, told))
    return drafts


def _own_question(state: Coordinator, about: str, task_id: str | None, text: str) -> Draft:
    return AgentSeeksGuidance, {
        "question_id": named(state, "question"),
        "agent_id": None,
        "task_id": task_id,
        "question": text[:65536],
        "about": about,
    }


def checkpoint(state: Coordinator, asked: Checkpoint, _terms: DecisionTerms) -> list[Draft]:
    """Developers have an event of their own for it."""
    agent = state.active_agents.get(asked.agent_id)
    if agent is None:
        raise _not_at_work(asked.agent_id)
    event = DeveloperCheckpoint if agent.type == "developer" else AgentCheckpoint
    return [(event, {"agent_id": asked.agent_id, "checkpoint": asked.checkpoint})]


def _not_at_work(agent_id: str) -> NotAllowed:
    return NotAllowed("agent_not_active", f"agent {agent_id} is not at work", SHOW)


def ask(state: Coordinator, asked: Ask, _terms: DecisionTerms) -> list[Draft]:
    """An agent at work asks, or nobody in particular."""
    if not asked.question.strip():
        raise NotAllowed("no_question", "it asks nothing", "say what a person is to answer")
    agent = state.active_agents.get(asked.agent_id) if asked.agent_id is not None else None
    if asked.agent_id is not None and agent is None:
        raise _not_at_work(asked.agent_id)
    fields = {
        "question_id": named(state, "question"),
        "agent_id": asked.agent_id,
        "task_id": agent.task_id if agent else None,
        "question": asked.question,
        "about": "task",
    }
    return [(AgentSeeksGuidance, fields)]


def answer(state: Coordinator, asked: Answer, terms: DecisionTerms) -> list[Draft]:
    """The answer goes to whoever waits for it; an analyst is sent again with it."""
    question = state.question(asked.question_id)
    if question is None:
        raise NotAllowed("unknown_question", f"no question {asked.question_id} is open", SHOW)
    fields = {"question_id": asked.question_id, "response": asked.response}
    drafts: list[Draft] = [(DivineResponseReceived, fields)]
    if is_awaited(question, state.active_agents):
        who = {"agent_id": question.agent_id, "timeout_at": terms.until}
        drafts.append((AgentResumesWithGuidance, {"question_id": asked.question_id, **who}))
        if question.about == "expansion":
            told = {"task_id": question.task_id, "to_start": True, "guidance": asked.response}
            agent_id = question.agent_id
            if agent_id in state.active_agents:
                agent_id = named(state, "analyst")
            drafts.append((BusinessAnalystDispatched, {**who, "agent_id": agent_id, **told}))
    return drafts


def done(state: Coordinator, asked: AgentDone, _terms: DecisionTerms) -> list[Draft]:
    """For those whose end has no event of its own: who repairs the infrastructure, or looks at it."""
    agent = state.active_agents.get(asked.agent_id)
    if agent is None:
        raise _not_at_work(asked.agent_id)
    if agent.type not in ON_THE_INFRASTRUCTURE:
        raise NotAllowed(
            "end_has_a_name",
            f"agent {asked.agent_id} is a {agent.type.replace('_', ' ')}: its work ends otherwise",
            "see `guard plan ready`, `audit`, `expand`",
        )
    return [(AgentComplete, {"agent_id": asked.agent_id})]


def lost(state: Coordinator, asked: AgentLost, terms: DecisionTerms) -> list[Draft]:
    """The agent's task is free again; beyond the limit a person is asked first."""
    agent = state.active_agents.get(asked.agent_id)
    if agent is None:
        raise _not_at_work(asked.agent_id)
    setback = state.setbacks.get(agent.task_id) if agent.task_id is not None else None
    before = setback.attempts if setback else 0
    if agent.task_id is None:
        before = state.infrastructure_setbacks
    fields = {
        "agent_id": asked.agent_id,
        "agent_type": agent.type,
        "task_id": agent.task_id,
        "attempts": before + 1,
    }
    timed_out = asked.type == "agent_timeout"
    drafts: list[Draft] = [
        (AgentTimeout, fields) if timed_out else (AgentCrashed, {**fields, "reason": asked.reason})
    ]
    if before + 1 == terms.limits.redispatch_limit + 1:
        what = f"task {called(state, agent.task_id)}" if agent.task_id else "the infrastructure"
        about = "redispatch" if agent.task_id else "remediation"
        told = f"agents on {what} were lost {before + 1} times; the last was {asked.agent_id}"
        drafts.append(_own_question(state, about, agent.task_id, told))
    return drafts
