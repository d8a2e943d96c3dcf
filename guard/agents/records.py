"""What all changes of the registries have in common: who they are about, the events, and what is reported of them."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from guard.context.ids import check_id, new_id
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.events import AgentPlaced, AgentTransitioned, RetentionSet
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.agents.roster import Moving, transition
from guard.core.agents.whereabouts import Placing, Whereabouts
from guard.core.base.fields import first_problem
from guard.core.claims.completion_validation import CompletionValidation
from guard.core.log.event import BaseEvent
from guard.errors import Refused, WrongUsage
from guard.store import Change

if TYPE_CHECKING:
    from guard.core.agents.report import AgentReport, RecordedAs

E = TypeVar("E", bound=BaseEvent)


def names(task_id: str, agent_id: str, incarnation: int) -> dict[str, Any]:
    """Which life of which agent an event is about."""
    return {"task_id": task_id, "agent_id": agent_id, "incarnation": incarnation}


def placed(now: datetime, names: dict[str, Any], place: Placing) -> AgentPlaced:
    """The event that it runs there."""
    fields = {name: getattr(place.where, name) for name in Whereabouts.model_fields}
    return made(AgentPlaced, now, names, **fields, boot_seconds=place.boot_seconds)


def still(change: Change, agent: Agent) -> bool:
    """Whether the agent is what it was when somebody looked: active, the same incarnation, in the same place."""
    now = standing(change, agent.task_id, agent.agent_id)
    return (
        now is not None
        and now.status in ACTIVE
        and (now.incarnation, now.whereabouts) == (agent.incarnation, agent.whereabouts)
    )


def standing(change: Change, task_id: str, agent_id: str) -> Agent | None:
    """The agent as it stands. Both registries are read before anything is recorded: what cannot be read refuses first."""
    check_id("a task id", task_id)
    check_id("an agent id", agent_id)
    change.fold(GLOBAL_REGISTRY)
    return change.fold(AGENT_REGISTRY, task_id).agent(agent_id)


def known(change: Change, task_id: str, agent_id: str) -> Agent:
    """The same, refused where there is none."""
    before = standing(change, task_id, agent_id)
    if before is None:
        raise unknown(task_id, agent_id)
    return before


def life(agent: Agent, incarnation: int | None) -> int:
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


def made(event: type[E], now: datetime, names: dict[str, Any], **fields: Any) -> E:
    """The event, or a refusal that names the field that cannot be."""
    try:
        return event(at=now, id=new_id(), **names, **fields)
    except ValidationError as error:
        raise WrongUsage(
            f"this cannot be recorded: {first_problem(error)}",
            "see `guard agent --help` for what each command takes",
        ) from None


def transitions(change: Change, event: Moving, before: Agent | None) -> Iterator[AgentTransitioned]:
    """What an event moves in the counts, if it does."""
    task = change.fold(AGENT_REGISTRY, event.task_id).counts()
    found = transition(event, new_id(), before, task, change.fold(GLOBAL_REGISTRY).counts())
    if found is not None:
        yield found


def retention(change: Change, now: datetime, keep: int) -> Iterator[RetentionSet]:
    """The fold depends on the log alone, so a changed knob is itself an event."""
    if keep != change.fold(GLOBAL_REGISTRY).keep_finished:
        yield RetentionSet(at=now, id=new_id(), keep_finished=keep)


def reported(
    change: Change,
    before: Agent | None,
    task_id: str,
    agent_id: str,
    word: "RecordedAs",
    validation: CompletionValidation | None = None,
) -> "AgentReport":
    """The agent after a change, with all counts."""
    from guard.core.agents.report import AgentReport

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
