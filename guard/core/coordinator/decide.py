"""What is recorded of a request, or why nothing is: one pure function of the state, the request and the terms."""

from collections.abc import Callable, Iterator
from typing import Any

from guard.core.base.fields import Frozen
from guard.core.coordinator import decide_help as helping
from guard.core.coordinator import decide_support as support
from guard.core.coordinator import decide_tasks as tasks
from guard.core.coordinator import decide_upkeep as upkeep
from guard.core.coordinator import requests as asked
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.terms import DecisionTerms, Draft, NotAllowed, Refusal
from guard.core.events.plan import CoordinatorEvent

Decision = tuple[CoordinatorEvent, ...] | Refusal
Decider = Callable[[Coordinator, Any, DecisionTerms], list[Draft]]


def _dispatch_agent(
    state: Coordinator, request: asked.DispatchAgent, terms: DecisionTerms
) -> list[Draft]:
    if request.agent_type == "auditor":
        return tasks.dispatch_auditor(state, request, terms)
    return helping.dispatch_health_auditor(state, request, terms)


_DECIDERS: dict[type[Frozen], Decider] = {
    asked.LoadPlan: upkeep.load,
    asked.DispatchDeveloper: tasks.dispatch_developer,
    asked.DispatchAgent: _dispatch_agent,
    asked.DispatchRemediation: helping.remediate,
    asked.DispatchAnalyst: support.dispatch_analyst,
    asked.ReadyForAudit: tasks.ready,
    asked.Pass: tasks.audit_pass,
    asked.Fail: tasks.audit_fail,
    asked.Block: tasks.audit_blocked,
    asked.BlockInfrastructure: helping.block,
    asked.Healthy: helping.healthy,
    asked.Unhealthy: helping.unhealthy,
    asked.Checkpoint: helping.checkpoint,
    asked.Ask: helping.ask,
    asked.Answer: helping.answer,
    asked.Assess: support.assess,
    asked.Expand: support.expand,
    asked.Clarify: support.clarify,
    asked.Delegate: support.delegate,
    asked.SupportDone: support.support_done,
    asked.SupportFailed: support.support_failed,
    asked.OutOfScope: support.out_of_scope,
    asked.AgentDone: helping.done,
    asked.AgentLost: helping.lost,
    asked.Notice: upkeep.notice,
    asked.Tokens: upkeep.tokens,
    asked.Usage: upkeep.usage,
    asked.RecordFailure: upkeep.record_failure,
    asked.AddPrevention: upkeep.add_prevention,
    asked.IssueWarnings: upkeep.issue_warnings,
    asked.TakeOutbox: upkeep.take_outbox,
}


def decide(state: Coordinator, request: asked.Request, terms: DecisionTerms) -> Decision:
    """The events that the request leads to, or the refusal."""
    try:
        return terms.events(_DECIDERS[type(request)](state, request, terms))
    except NotAllowed as error:
        return error.refusal


def is_told_by(request: asked.Request, event: CoordinatorEvent) -> bool:
    """Whether the event is what this request was recorded as: of its type, and the same in all that both name."""
    if event.type not in _types(request):
        return False
    own = type(event).model_fields
    names = [name for name in type(request).model_fields if name in own and name != "type"]
    same = all(_same(told, getattr(event, name)) for name, told in _recorded_as(request, names))
    if isinstance(request, asked.LoadPlan):
        same = same and (request.plan.tasks, request.plan.supporting_agents) == (
            getattr(event, "tasks", None),
            getattr(event, "supporting_agents", None),
        )
    return same


def _recorded_as(request: asked.Request, names: list[str]) -> Iterator[tuple[str, Any]]:
    """What each of these becomes in the event, whatever the state is."""
    for name in names:
        told = getattr(request, name)
        if isinstance(request, asked.RecordFailure) and name == "cause" and told:
            told = tasks.cause_kept(told)
        if isinstance(request, asked.OutOfScope) and name == "guidance":
            told = support.guidance_kept(told)
        if isinstance(request, asked.Assess) and name == "needs_expansion":
            told = tuple(dict.fromkeys(told))
        yield name, told


def _same(told: Any, recorded: Any) -> bool:
    """What was left to guard may be anything."""
    return told is None or told == recorded


def _types(request: asked.Request) -> tuple[str, ...]:
    if isinstance(request, asked.Checkpoint):
        return ("developer_checkpoint", "agent_checkpoint")
    if isinstance(request, asked.Delegate):
        return ("supporting_agent_delegated", "delegation_queued")
    return (request.type,)
