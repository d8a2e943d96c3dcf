"""Turn a signal in an agent's output into a request; an agent can speak only for itself and its own task."""

from guard.core.coordinator import decide_agents, decide_support, decide_tasks
from guard.core.coordinator.requests import SHOW, NotAllowed, Request
from guard.core.coordinator.state import Coordinator
from guard.core.log.events import BaseEvent
from guard.core.plan.signals import AgentSignal
from guard.core.plan.task_ids import make_id, normalize_name

_MOST_LINE, _MOST_TEXT = 512, 65536


def request_from(
    state: Coordinator, agent_id: str, signal: AgentSignal, known: BaseEvent | None = None
) -> Request:
    """Return the request that an agent's signal makes.

    The state supplies what the signal leaves out. For a signal that was recorded before, the `known` event supplies it,
    because the state has changed since.
    """
    if signal.kind in ("agent_complete", "out_of_scope"):
        return _support_request(state, agent_id, signal, known)
    if signal.kind == "seeking_clarification":
        question = _question(signal)
        if not question.strip():
            raise NotAllowed(
                "no_question",
                "the signal has no question",
                "write the question on a line `Question: …`",
            )
        return decide_agents.ask_question(agent_id=agent_id, question=question)
    if signal.kind == "checkpoint":
        text = " ".join(signal.text.split())[:_MOST_LINE]
        return decide_agents.record_checkpoint(agent_id=agent_id, checkpoint=text)
    if signal.kind == "healthy":
        return decide_agents.pass_health_audit(agent_id=agent_id)
    if signal.kind == "unhealthy":
        return decide_agents.fail_health_audit(agent_id=agent_id, issue=signal.text or None)
    return _task_request(_task_id(state, agent_id, signal, known), agent_id, signal)


def _task_request(task_id: str, agent_id: str, signal: AgentSignal) -> Request:
    match signal.kind:
        case "ready_for_audit":
            return decide_tasks.submit_for_audit(task_id=task_id, agent_id=agent_id)
        case "audit_pass":
            return decide_tasks.pass_audit(
                task_id=task_id, agent_id=agent_id, evidence_summary=signal.text
            )
        case "audit_fail":
            return decide_tasks.fail_audit(task_id=task_id, agent_id=agent_id, reason=signal.text)
        case "audit_blocked":
            issue = signal.text or "failures that were there before"
            return decide_tasks.block_audit(task_id=task_id, agent_id=agent_id, issue=issue)
        case "rollback_required":
            return decide_agents.require_rollback(
                task_id=task_id,
                agent_id=agent_id,
                reason=signal.text,
                commit=signal.commit or None,
                files=signal.files,
            )
        case _:
            return _expansion_request(task_id, agent_id, signal)


def _question(signal: AgentSignal) -> str:
    asked = "\n".join(signal.questions)
    if not asked or not signal.text.strip():
        return (asked or signal.text)[:_MOST_TEXT]
    return f"{asked}\n\nContext: {signal.text}"[:_MOST_TEXT]


def _expansion_request(task_id: str, agent_id: str, signal: AgentSignal) -> Request:
    if signal.confidence is None or signal.confidence == "LOW":
        question = _question(signal) or "What is this task about?"
        return decide_support.ask_clarification(
            task_id=task_id, agent_id=agent_id, question=question
        )
    return decide_support.expand_task(
        task_id=task_id,
        agent_id=agent_id,
        confidence=signal.confidence,
        specification={"text": signal.text},
    )


def _task_id(
    state: Coordinator, agent_id: str, signal: AgentSignal, known: BaseEvent | None
) -> str:
    recorded: str | None = getattr(known, "task_id", None)
    if signal.task:
        named = make_id(normalize_name(signal.task))
        if state.task(named) is None and named != recorded:
            raise NotAllowed("unknown_task", f"the plan has no task {signal.task[:200]}", SHOW)
        return named
    if recorded is not None:
        return recorded
    agent = state.active_agents.get(agent_id)
    if agent is None or agent.task_id is None:
        message = "the signal names no task, and the agent has none"
        raise NotAllowed(
            "no_task", message, "name the task after the signal, as in `READY FOR AUDIT: 1.1`"
        )
    return agent.task_id


def _support_request(
    state: Coordinator, agent_id: str, signal: AgentSignal, known: BaseEvent | None
) -> Request:
    run_id = getattr(known, "run_id", "")
    if not decide_support.is_run_of(agent_id, run_id):
        run_id = _run_id(state, agent_id)
    if signal.kind == "out_of_scope":
        suggested = signal.alternative[:_MOST_LINE] or None
        return decide_support.decline_support(
            run_id=run_id, suggested=suggested, guidance=signal.text
        )
    sure = signal.confidence or "MEDIUM"
    return decide_support.complete_support(run_id=run_id, confidence=sure, result=signal.text)


def _run_id(state: Coordinator, agent_id: str) -> str:
    # The agent may give the id of a run, or its own id if it has only one run.
    runs = state.active_supporting_agents
    if agent_id in runs:
        return agent_id
    own = [run_id for run_id, run in runs.items() if run.agent_id == agent_id]
    if len(own) == 1:
        return own[0]
    if own:
        message = f"{agent_id} works on {len(own)} requests"
        raise NotAllowed("several_runs", message, "name the run with --agent")
    raise NotAllowed("no_run", f"{agent_id} works on no request", SHOW)
