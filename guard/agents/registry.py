"""The registries of agents, changed: load, decide, record.

Whatever has to be found out first, from git, tmux or the machine, is brought by the caller: nothing here waits for anything
but the lock.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from guard.agents import records
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.baseline import Ground
from guard.core.agents.events import (
    AgentBaselineRecorded,
    AgentClaimValidated,
    AgentEndDetected,
    AgentFindingRecorded,
    AgentKilled,
    AgentSpawned,
    AgentStatus,
    AgentTested,
    AgentUpdated,
)
from guard.core.agents.registry import GLOBAL_REGISTRY, KEEP_FINISHED
from guard.core.agents.whereabouts import Placing
from guard.core.claims.completion_validation import CompletionValidation
from guard.errors import Refused
from guard.store import Change, Store

if TYPE_CHECKING:
    from guard.core.agents.report import AgentReport, RecordedAs


def spawn(
    store: Store,
    now: datetime,
    *,
    task_id: str,
    agent_id: str,
    agent_type: str = "agent",
    message: str = "",
    keep_finished: int = KEEP_FINISHED,
    place: Placing | None = None,
    ground: Ground | None = None,
) -> "AgentReport":
    """Register an agent that has been started; refused while one of that name is active."""
    with store.change() as change:
        before = records.standing(change, task_id, agent_id)
        if before is not None and before.status in ACTIVE:
            raise Refused(
                f"agent {agent_id} of task {task_id} is active already ({before.status})",
                f"report its end first: `guard agent update --task {task_id} --agent {agent_id} "
                "--status completed`, or end it: `guard agent kill`",
            )
        names = records.names(task_id, agent_id, before.incarnation + 1 if before else 1)
        event = records.made(AgentSpawned, now, names, agent_type=agent_type, message=message)
        placed = [records.placed(now, names, place)] if place and place.where.known else []
        based = [records.made(AgentBaselineRecorded, now, names, **vars(ground))] if ground else []
        moved = records.transitions(change, event, before)
        change.append(
            *records.retention(change, now, keep_finished), event, *placed, *based, *moved
        )
        return records.reported(change, before, task_id, agent_id, "spawned")


def update(
    store: Store,
    now: datetime,
    *,
    task_id: str,
    agent_id: str,
    status: AgentStatus,
    message: str = "",
    progress: int | None = None,
    incarnation: int | None = None,
    place: Placing | None = None,
    validation: CompletionValidation | None = None,
    strict: bool = False,
    run: str | None = None,
    iteration: int | None = None,
) -> "AgentReport":
    """Record what is reported of an agent; after its end, or for an earlier incarnation, it changes no count.

    A `strict` report of completion is refused for the blocking issues of its validation: the claim is kept, the agent goes on.
    """
    with store.change() as change:
        before = records.known(change, task_id, agent_id)
        names = records.names(task_id, agent_id, records.life(before, incarnation))
        goes_on = before.status in ACTIVE and before.incarnation == names["incarnation"]
        told = {"status": status, "message": message, "progress": progress}
        event = records.made(AgentUpdated, now, names, **told, run=run, iteration=iteration)
        judged = []
        if validation is not None and goes_on:
            from guard.core.claims.validate import refusals

            refused = bool(refusals(validation, strict=strict))
            claim = {"refused": refused, "message": message, "validation": validation}
            judged = [records.made(AgentClaimValidated, now, names, **claim)]
            if refused:
                change.append(*judged)
                return records.reported(change, before, task_id, agent_id, "refused", validation)
        placed = [records.placed(now, names, place)] if place is not None and goes_on else []
        change.append(event, *placed, *judged, *records.transitions(change, event, before))
        word: RecordedAs = "updated" if goes_on else "late"
        own = validation if goes_on else None
        return records.reported(change, before, task_id, agent_id, word, own)


def go_on(store: Store, now: datetime, agent: Agent, place: Placing) -> "AgentReport | None":
    """An active agent is at work again, and there; None if it is not what it was when somebody looked."""
    with store.change() as change:
        if not records.still(change, agent):
            return None
        names = records.names(agent.task_id, agent.agent_id, agent.incarnation)
        event = records.made(AgentUpdated, now, names, status="working")
        moved = records.transitions(change, event, agent)
        change.append(event, records.placed(now, names, place), *moved)
        return records.reported(change, agent, agent.task_id, agent.agent_id, "updated")


def give_up(store: Store, now: datetime, agent: Agent, why: str) -> None:
    """An active agent of which nobody knows whether it lives counts no longer, if it is still what it was."""
    with store.change() as change:
        if records.still(change, agent):
            names = records.names(agent.task_id, agent.agent_id, agent.incarnation)
            event = records.made(AgentUpdated, now, names, status="error", message=why)
            change.append(event, *records.transitions(change, event, agent))


def settle(
    change: Change, now: datetime, run: str, iteration: int, status: AgentStatus, message: str
) -> None:
    """What became of an iteration that was left waiting, for the agents that wait in it."""
    overall = change.view(GLOBAL_REGISTRY)
    for agent in overall.agents if overall else ():
        if agent.status in ACTIVE and (agent.run, agent.iteration) == (run, iteration):
            names = records.names(agent.task_id, agent.agent_id, agent.incarnation)
            told = {"status": status, "message": message, "run": run, "iteration": iteration}
            event = records.made(AgentUpdated, now, names, **told)
            change.append(event, *records.transitions(change, event, agent))


def place(store: Store, now: datetime, agent: Agent, where: Placing) -> None:
    """Record where an agent runs, if it is still the same agent."""
    with store.change() as change:
        names = records.names(agent.task_id, agent.agent_id, agent.incarnation)
        if records.still(change, agent):
            change.append(records.placed(now, names, where))


def end_detected(
    store: Store, now: datetime, agent: Agent, detail: str, validation: CompletionValidation | None
) -> "AgentReport | None":
    """Record the end of an agent whose session or process is gone; None if it has moved or ended otherwise meanwhile."""
    with store.change() as change:
        if not records.still(change, agent):
            return None
        names = records.names(agent.task_id, agent.agent_id, agent.incarnation)
        event = records.made(AgentEndDetected, now, names, detail=detail)
        judged = []
        if validation is not None:
            told = {"refused": False, "message": "", "validation": validation}
            judged = [records.made(AgentClaimValidated, now, names, **told)]
        change.append(event, *judged, *records.transitions(change, event, agent))
        return records.reported(change, agent, agent.task_id, agent.agent_id, "ended", validation)


def killed(store: Store, now: datetime, agent: Agent, reason: str, detail: str) -> "AgentReport":
    """Record that an agent was ended; one that had ended before stays what it was."""
    with store.change() as change:
        before = records.known(change, agent.task_id, agent.agent_id)
        names = records.names(agent.task_id, agent.agent_id, agent.incarnation)
        event = records.made(AgentKilled, now, names, reason=reason, detail=detail)
        same = before.incarnation == agent.incarnation
        # The guard that runs an agent is ended with it, and says so first.
        was_killed = same and (before.status in ACTIVE or before.detected_by == "kill")
        change.append(event, *records.transitions(change, event, before))
        word: RecordedAs = "killed" if was_killed else "late"
        return records.reported(change, before, agent.task_id, agent.agent_id, word)


def note(
    store: Store,
    now: datetime,
    kind: type[AgentFindingRecorded] | type[AgentTested],
    *,
    task_id: str,
    agent_id: str,
    incarnation: int | None = None,
    **fields: Any,
) -> "AgentReport":
    """Record a finding of an agent, or a run of tests."""
    with store.change() as change:
        before = records.known(change, task_id, agent_id)
        names = records.names(task_id, agent_id, records.life(before, incarnation))
        change.append(records.made(kind, now, names, **fields))
        word: RecordedAs = "finding" if kind is AgentFindingRecorded else "test_run"
        return records.reported(change, before, task_id, agent_id, word)
