"""The registries of agents, changed: load, decide, record.

Whatever has to be found out first, from git, tmux or the machine, is brought by the caller: nothing here waits for anything
but the lock.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from guard.core.agent_baselines import Ground
from guard.core.agents import Agent
from guard.core.claims.document import CompletionValidation
from guard.core.events import (
    AgentBaselineRecorded,
    AgentClaimValidated,
    AgentEndDetected,
    AgentFindingRecorded,
    AgentKilled,
    AgentPlaced,
    AgentSpawned,
    AgentStatus,
    AgentTested,
    AgentTransitioned,
    AgentUpdated,
    BaseEvent,
    RetentionSet,
)
from guard.core.fields import first_problem
from guard.core.lifecycle import ACTIVE
from guard.core.registry import AGENT_REGISTRY, GLOBAL_REGISTRY, KEEP_FINISHED
from guard.core.reports.agents import AgentReport, RecordedAs
from guard.core.transitions import Moving, transition
from guard.core.whereabouts import Placing, Whereabouts
from guard.errors import Refused, WrongUsage
from guard.ids import checked_id, new_id
from guard.store import Change, Store

E = TypeVar("E", bound=BaseEvent)


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
) -> AgentReport:
    """Register an agent that has been started; refused while one of that name is active."""
    with store.change() as change:
        before = _before(change, task_id, agent_id)
        if before is not None and before.status in ACTIVE:
            raise Refused(
                f"agent {agent_id} of task {task_id} is active already ({before.status})",
                f"report its end first: `guard agent update --task {task_id} --agent {agent_id} "
                "--status completed`, or end it: `guard agent kill`",
            )
        names = _names(task_id, agent_id, before.incarnation + 1 if before else 1)
        event = _made(AgentSpawned, now, names, agent_type=agent_type, message=message)
        placed = [_placed(now, names, place)] if place and place.where.known else []
        based = [_made(AgentBaselineRecorded, now, names, **vars(ground))] if ground else []
        moved = _transition(change, event, before)
        change.append(*_retention(change, now, keep_finished), event, *placed, *based, *moved)
        return _report(change, before, task_id, agent_id, "spawned")


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
) -> AgentReport:
    """Record what is reported of an agent; after its end, or for an earlier incarnation, it changes no count.

    A `strict` report of completion is refused for the blocking issues of its validation: the claim is kept, the agent goes on.
    """
    with store.change() as change:
        before = _known(change, task_id, agent_id)
        names = _names(task_id, agent_id, _life(before, incarnation))
        goes_on = before.status in ACTIVE and before.incarnation == names["incarnation"]
        told = {"status": status, "message": message, "progress": progress}
        event = _made(AgentUpdated, now, names, **told, run=run, iteration=iteration)
        judged = []
        if validation is not None and goes_on:
            refused = strict and bool(validation.blocking_issues)
            claim = {"refused": refused, "message": message, "validation": validation}
            judged = [_made(AgentClaimValidated, now, names, **claim)]
            if refused:
                change.append(*judged)
                return _report(change, before, task_id, agent_id, "refused", validation)
        placed = [_placed(now, names, place)] if place is not None and goes_on else []
        change.append(event, *placed, *judged, *_transition(change, event, before))
        word: RecordedAs = "updated" if goes_on else "late"
        own = validation if goes_on else None
        return _report(change, before, task_id, agent_id, word, own)


def go_on(store: Store, now: datetime, agent: Agent, place: Placing) -> AgentReport | None:
    """An active agent is at work again, and there; None if it is not what it was when somebody looked."""
    with store.change() as change:
        if not _still(change, agent):
            return None
        names = _names(agent.task_id, agent.agent_id, agent.incarnation)
        event = _made(AgentUpdated, now, names, status="working")
        moved = _transition(change, event, agent)
        change.append(event, _placed(now, names, place), *moved)
        return _report(change, agent, agent.task_id, agent.agent_id, "updated")


def give_up(store: Store, now: datetime, agent: Agent, why: str) -> None:
    """An active agent of which nobody knows whether it lives counts no longer, if it is still what it was."""
    with store.change() as change:
        if _still(change, agent):
            names = _names(agent.task_id, agent.agent_id, agent.incarnation)
            event = _made(AgentUpdated, now, names, status="error", message=why)
            change.append(event, *_transition(change, event, agent))


def settle(
    change: Change, now: datetime, run: str, iteration: int, status: AgentStatus, message: str
) -> None:
    """What became of an iteration that was left waiting, for the agents that wait in it."""
    overall = change.view(GLOBAL_REGISTRY)
    for agent in overall.agents if overall else ():
        if agent.status in ACTIVE and (agent.run, agent.iteration) == (run, iteration):
            names = _names(agent.task_id, agent.agent_id, agent.incarnation)
            told = {"status": status, "message": message, "run": run, "iteration": iteration}
            event = _made(AgentUpdated, now, names, **told)
            change.append(event, *_transition(change, event, agent))


def place(store: Store, now: datetime, agent: Agent, where: Placing) -> None:
    """Record where an agent runs, if it is still the same agent."""
    with store.change() as change:
        names = _names(agent.task_id, agent.agent_id, agent.incarnation)
        if _still(change, agent):
            change.append(_placed(now, names, where))


def end_detected(
    store: Store, now: datetime, agent: Agent, detail: str, validation: CompletionValidation | None
) -> AgentReport | None:
    """Record the end of an agent whose session or process is gone; None if it has moved or ended otherwise meanwhile."""
    with store.change() as change:
        if not _still(change, agent):
            return None
        names = _names(agent.task_id, agent.agent_id, agent.incarnation)
        event = _made(AgentEndDetected, now, names, detail=detail)
        judged = []
        if validation is not None:
            told = {"refused": False, "message": "", "validation": validation}
            judged = [_made(AgentClaimValidated, now, names, **told)]
        change.append(event, *judged, *_transition(change, event, agent))
        return _report(change, agent, agent.task_id, agent.agent_id, "ended", validation)


def killed(store: Store, now: datetime, agent: Agent, reason: str, detail: str) -> AgentReport:
    """Record that an agent was ended; one that had ended before stays what it was."""
    with store.change() as change:
        before = _known(change, agent.task_id, agent.agent_id)
        names = _names(agent.task_id, agent.agent_id, agent.incarnation)
        event = _made(AgentKilled, now, names, reason=reason, detail=detail)
        same = before.incarnation == agent.incarnation
        # The guard that runs an agent is ended with it, and says so first.
        was_killed = same and (before.status in ACTIVE or before.detected_by == "kill")
        change.append(event, *_transition(change, event, before))
        word: RecordedAs = "killed" if was_killed else "late"
        return _report(change, before, agent.task_id, agent.agent_id, word)


def note(
    store: Store,
    now: datetime,
    kind: type[AgentFindingRecorded] | type[AgentTested],
    *,
    task_id: str,
    agent_id: str,
    incarnation: int | None = None,
    **fields: Any,
) -> AgentReport:
    """Record a finding of an agent, or a run of tests."""
    with store.change() as change:
        before = _known(change, task_id, agent_id)
        names = _names(task_id, agent_id, _life(before, incarnation))
        change.append(_made(kind, now, names, **fields))
        word: RecordedAs = "finding" if kind is AgentFindingRecorded else "test_run"
        return _report(change, before, task_id, agent_id, word)


def _names(task_id: str, agent_id: str, incarnation: int) -> dict[str, Any]:
    return {"task_id": task_id, "agent_id": agent_id, "incarnation": incarnation}


def _placed(now: datetime, names: dict[str, Any], place: Placing) -> AgentPlaced:
    fields = {name: getattr(place.where, name) for name in Whereabouts.model_fields}
    return _made(AgentPlaced, now, names, **fields, boot_seconds=place.boot_seconds)


def _still(change: Change, agent: Agent) -> bool:
    """Whether the agent is what it was when somebody looked: active, the same incarnation, in the same place."""
    now = _before(change, agent.task_id, agent.agent_id)
    return (
        now is not None
        and now.status in ACTIVE
        and (now.incarnation, now.whereabouts) == (agent.incarnation, agent.whereabouts)
    )


def _before(change: Change, task_id: str, agent_id: str) -> Agent | None:
    """The agent as it stands. Both registries are read before anything is recorded: what cannot be read refuses first."""
    checked_id("a task id", task_id)
    checked_id("an agent id", agent_id)
    change.fold(GLOBAL_REGISTRY)
    return change.fold(AGENT_REGISTRY, task_id).agent(agent_id)


def _known(change: Change, task_id: str, agent_id: str) -> Agent:
    before = _before(change, task_id, agent_id)
    if before is None:
        raise unknown(task_id, agent_id)
    return before


def _life(agent: Agent, incarnation: int | None) -> int:
    """Which life of the agent speaks: the newest, if nothing is said."""
    if incarnation is None:
        return agent.incarnation
    if 1 <= incarnation <= agent.incarnation:
        return incarnation
    raise WrongUsage(
        f"agent {agent.agent_id} of task {agent.task_id} has had {agent.incarnation} "
        f"incarnations, and none with the number {incarnation}",
        "give the number that its spawn told",
    )


def unknown(task_id: str, agent_id: str) -> Refused:
    """The refusal for an agent that nobody registered."""
    return Refused(
        f"task {task_id} has no agent {agent_id}",
        f"register it first: `guard agent spawn --task {task_id} --agent {agent_id}`",
    )


def _made(event: type[E], now: datetime, names: dict[str, Any], **fields: Any) -> E:
    """The event, or a refusal that names the field that cannot be."""
    try:
        return event(at=now, id=new_id(), **names, **fields)
    except ValidationError as error:
        raise WrongUsage(
            f"this cannot be recorded: {first_problem(error)}",
            "see `guard agent --help` for what each command takes",
        ) from None


def _transition(change: Change, event: Moving, before: Agent | None) -> Iterator[AgentTransitioned]:
    task = change.fold(AGENT_REGISTRY, event.task_id).counts()
    found = transition(event, new_id(), before, task, change.fold(GLOBAL_REGISTRY).counts())
    if found is not None:
        yield found


def _retention(change: Change, now: datetime, keep: int) -> Iterator[RetentionSet]:
    """The fold depends on the log alone, so a changed knob is itself an event."""
    if keep != change.fold(GLOBAL_REGISTRY).keep_finished:
        yield RetentionSet(at=now, id=new_id(), keep_finished=keep)


def _report(
    change: Change,
    before: Agent | None,
    task_id: str,
    agent_id: str,
    word: RecordedAs,
    validation: CompletionValidation | None = None,
) -> AgentReport:
    registry, overall = change.fold(AGENT_REGISTRY, task_id), change.fold(GLOBAL_REGISTRY)
    agent, task, all_tasks = registry.agent(agent_id), registry.counts(), overall.counts()
    assert agent
    return AgentReport(
        agent=agent,
        previous_status=before.status if before else None,
        recorded_as=word,
        active_count=task.active,
        completed_count=task.completed,
        total_spawned=task.spawned,
        active_agents=all_tasks.active,
        completed_agents=all_tasks.completed,
        total_agents_spawned=all_tasks.spawned,
        completion_validation=validation,
    )
