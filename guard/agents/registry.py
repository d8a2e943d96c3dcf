"""Record changes to the registries of agents.

The caller gathers what it needs from git, tmux or the machine beforehand: a change here waits for nothing but the lock.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from guard.context import invalid_fields
from guard.context.ids import check_id, new_id
from guard.core.agents.agent import ACTIVE, TERMINAL, Agent
from guard.core.agents.baseline import AGENT_BASELINE, STANDING, Ground, baseline_key
from guard.core.agents.events import (
    AgentBaselineRecorded,
    AgentClaimValidated,
    AgentEndDetected,
    AgentEvent,
    AgentKilled,
    AgentPlaced,
    AgentSpawned,
    AgentStatus,
    AgentTransitioned,
    AgentUpdated,
    RetentionSet,
)
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY, KEEP_FINISHED
from guard.core.agents.roster import AgentCounts, StatusEvent, transition
from guard.core.agents.whereabouts import Placing
from guard.core.base.first_use import dataclass
from guard.core.claims.completion_validation import CompletionValidation
from guard.core.log.events import BaseEvent
from guard.errors import Refused, WrongUsage
from guard.store import Change, Store

if TYPE_CHECKING:
    from guard.core.agents.report import AgentReport, RecordedAs


Also = Callable[[Change, int], Iterable[BaseEvent]]
"""What else belongs to a change of the registries: it gets the incarnation of the agent, and returns events to append."""


def nothing_else(_change: Change, _incarnation: int) -> Iterable[BaseEvent]:
    return ()


@dataclass(frozen=True)
class AgentUpdate:
    """A report by an agent, or about it."""

    task_id: str
    agent_id: str
    status: AgentStatus
    message: str = ""
    progress: int | None = None
    incarnation: int | None = None
    """Which incarnation reports; None for the newest."""
    run: str | None = None
    iteration: int | None = None


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
    also: Also = nothing_else,
) -> "AgentReport":
    with store.change() as change, refuse_invalid_fields():
        if ground is not None:
            change.expect(AGENT_BASELINE, baseline_key(task_id, agent_id))
        before = find_agent(change, task_id, agent_id)
        if before is not None and before.status in ACTIVE:
            raise Refused(
                f"agent {agent_id} of task {task_id} is active already ({before.status})",
                f"report its end first: `guard agent update --task {task_id} --agent {agent_id} "
                "--status completed`, or end it: `guard agent kill`",
            )
        incarnation = before.incarnation + 1 if before else 1
        stamp = partial(make_stamp, now, task_id, agent_id, incarnation)
        event = AgentSpawned(**stamp(), agent_type=agent_type, message=message)
        change.append(
            *retention_events(change, now, keep_finished),
            event,
            *([place_event(stamp(), place)] if place and place.where.is_known else []),
            *([baseline_event(stamp(), ground)] if ground else []),
            *PendingCounts(change).transitions(event, before),
            *also(change, incarnation),
        )
        return make_report(change, event, "spawned", before)


def update(
    store: Store,
    now: datetime,
    report: AgentUpdate,
    *,
    place: Placing | None = None,
    validation: CompletionValidation | None = None,
    strict: bool = False,
    also: Also = nothing_else,
) -> "AgentReport":
    """Record a report; after the agent's end, or from an earlier incarnation, it changes no count.

    A `strict` completion with blocking issues is refused: the claim is recorded, and the agent stays active. A claim that
    turned out to be no completion comes with the status that the agent has instead.
    """
    with store.change() as change, refuse_invalid_fields():
        before = require_agent(change, report.task_id, report.agent_id)
        incarnation = check_incarnation(before, report.incarnation)
        is_current = before.status in ACTIVE and before.incarnation == incarnation
        stamp = partial(make_stamp, now, before.task_id, before.agent_id, incarnation)
        event = AgentUpdated(
            **stamp(),
            status=report.status,
            message=report.message,
            progress=report.progress,
            run=report.run,
            iteration=report.iteration,
        )
        moved = list(PendingCounts(change).transitions(event, before))
        if not is_current:
            change.append(event, *moved)
            return make_report(change, event, "late", before)
        refused = validation is not None and validation.is_refused(strict=strict)
        is_end = report.status in TERMINAL
        claims = _claims(stamp(), validation, report.message, refused=refused or not is_end)
        recorded_as: RecordedAs = "refused" if refused else "updated"
        if refused and is_end:
            change.append(*claims)
            return make_report(change, event, recorded_as, before, validation)
        placed = [place_event(stamp(), place)] if place is not None else []
        change.append(event, *placed, *claims, *moved, *also(change, incarnation))
        return make_report(change, event, recorded_as, before, validation)


def resume_work(
    store: Store, now: datetime, agent: Agent, place: Placing, also: Also = nothing_else
) -> "AgentReport | None":
    """Record that an active agent works again, and where; None if the agent changed since the caller read it."""
    with refuse_invalid_fields():
        event = AgentUpdated(**stamp_of(agent, now), status="working")
        placed = place_event(stamp_of(agent, now), place)
    return _record_if_unchanged(store, agent, "updated", event, placed, also=also)


def give_up(store: Store, now: datetime, agent: Agent, why: str) -> None:
    """Record an error for an active agent that may or may not live; do nothing if the agent changed since."""
    with refuse_invalid_fields():
        event = AgentUpdated(**stamp_of(agent, now), status="error", message=why)
    _record_if_unchanged(store, agent, "updated", event)


def settle_iteration(
    change: Change, now: datetime, run: str, iteration: int, status: AgentStatus, message: str
) -> None:
    if not change.fold(GLOBAL_REGISTRY).counts().active:
        return
    overall = change.view(GLOBAL_REGISTRY)
    for agent in overall.agents if overall else ():
        if agent.status in ACTIVE and (agent.run, agent.iteration) == (run, iteration):
            with refuse_invalid_fields():
                event = AgentUpdated(
                    **stamp_of(agent, now),
                    status=status,
                    message=message,
                    run=run,
                    iteration=iteration,
                )
            change.append(event, *PendingCounts(change).transitions(event, agent))


def record_place(store: Store, now: datetime, agent: Agent, place: Placing) -> None:
    # The agent may have changed since the caller read it: then the place is not recorded.
    with store.change() as change, refuse_invalid_fields():
        if _is_unchanged(change, agent):
            change.append(place_event(stamp_of(agent, now), place))


def record_end(
    store: Store, now: datetime, agent: Agent, detail: str, validation: CompletionValidation | None
) -> "AgentReport | None":
    """Record the end of an agent whose session or process is gone; None if the agent changed since the caller read it."""
    with refuse_invalid_fields():
        event = AgentEndDetected(**stamp_of(agent, now), detail=detail)
        claims = _claims(stamp_of(agent, now), validation, "", refused=False)
    return _record_if_unchanged(store, agent, "ended", event, *claims, validation=validation)


def _record_if_unchanged(
    store: Store,
    agent: Agent,
    recorded_as: "RecordedAs",
    event: AgentUpdated | AgentEndDetected,
    *others: AgentPlaced | AgentClaimValidated,
    validation: CompletionValidation | None = None,
    also: Also = nothing_else,
) -> "AgentReport | None":
    with store.change() as change:
        if not _is_unchanged(change, agent):
            return None
        moved = PendingCounts(change).transitions(event, agent)
        change.append(event, *others, *moved, *also(change, agent.incarnation))
        return make_report(change, event, recorded_as, agent, validation)


def record_kill(
    store: Store, now: datetime, agent: Agent, reason: str, detail: str
) -> "AgentReport":
    """Record that guard ended an agent; an agent that had ended before keeps its status."""
    with store.change() as change, refuse_invalid_fields():
        before = require_agent(change, agent.task_id, agent.agent_id)
        event = AgentKilled(**stamp_of(agent, now), reason=reason, detail=detail)
        same = before.incarnation == agent.incarnation
        # The guard that runs an agent is ended with it, and says so first.
        was_killed = same and (before.status in ACTIVE or before.detected_by == "kill")
        change.append(event, *PendingCounts(change).transitions(event, before))
        return make_report(change, event, "killed" if was_killed else "late", before)


class AgentStamp(TypedDict):
    """The fields of every event about an agent: its time and id, and the incarnation of the agent."""

    at: datetime
    id: str
    task_id: str
    agent_id: str
    incarnation: int


def make_stamp(now: datetime, task_id: str, agent_id: str, incarnation: int) -> AgentStamp:
    return AgentStamp(
        at=now, id=new_id(), task_id=task_id, agent_id=agent_id, incarnation=incarnation
    )


def stamp_of(agent: Agent, now: datetime) -> AgentStamp:
    return make_stamp(now, agent.task_id, agent.agent_id, agent.incarnation)


def refuse_invalid_fields() -> AbstractContextManager[None]:
    """Turn an event with an invalid field into an error of usage that names the field."""
    return invalid_fields.refuse_invalid_fields(
        "see `guard agent --help` for what each command takes"
    )


def find_agent(change: Change, task_id: str, agent_id: str) -> Agent | None:
    check_id("a task id", task_id)
    check_id("an agent id", agent_id)
    # Both registries are read before anything is recorded, so that an unreadable one refuses the change.
    change.expect(AGENT_REGISTRY, task_id, agent_id)
    change.fold(GLOBAL_REGISTRY)
    return change.fold(AGENT_REGISTRY, task_id).agent(agent_id)


def require_agent(change: Change, task_id: str, agent_id: str) -> Agent:
    agent = find_agent(change, task_id, agent_id)
    if agent is None:
        raise unknown_agent(task_id, agent_id)
    return agent


def unknown_agent(task_id: str, agent_id: str) -> Refused:
    return Refused(
        f"task {task_id} has no agent {agent_id}",
        f"register it first: `guard agent spawn --task {task_id} --agent {agent_id}`",
    )


def check_incarnation(agent: Agent, incarnation: int | None) -> int:
    # Without one, the newest incarnation reports.
    if incarnation is None:
        return agent.incarnation
    if 1 <= incarnation <= agent.incarnation:
        return incarnation
    raise WrongUsage(
        f"agent {agent.agent_id} of task {agent.task_id} has had {agent.incarnation} "
        f"incarnations, and none with the number {incarnation}",
        "give the number that `guard agent spawn` printed",
    )


class PendingCounts:
    """The counts during one change: each event moves them before it is recorded."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self._tasks: dict[str, AgentCounts] = {}
        self._overall = change.fold(GLOBAL_REGISTRY).counts()

    def transitions(self, event: StatusEvent, before: Agent | None) -> Iterator[AgentTransitioned]:
        task_id = event.task_id
        task = self._tasks.get(task_id) or self._change.fold(AGENT_REGISTRY, task_id).counts()
        moved = transition(event, new_id(), before, task, self._overall)
        if moved is None:
            return
        self._tasks[task_id] = AgentCounts(moved.active_count, moved.completed_count, task.spawned)
        overall = self._overall
        self._overall = AgentCounts(moved.active_agents, moved.completed_agents, overall.spawned)
        yield moved


def retention_events(change: Change, now: datetime, keep: int) -> Iterator[RetentionSet]:
    """Yield the event that sets how many finished agents are kept, if the setting changed."""
    # The registries follow from the log alone, so a changed setting has to be an event too.
    if keep != change.fold(GLOBAL_REGISTRY).keep_finished:
        yield RetentionSet(at=now, id=new_id(), keep_finished=keep)


def baseline_event(stamp: AgentStamp, ground: Ground) -> AgentBaselineRecorded:
    standing = {name: getattr(ground.baseline, name) for name in STANDING}
    return AgentBaselineRecorded(**stamp, root=ground.root, **standing)


def place_event(stamp: AgentStamp, place: Placing) -> AgentPlaced:
    where = place.where
    return AgentPlaced(
        **stamp,
        host=where.host,
        tmux_session=where.tmux_session,
        tmux_socket=where.tmux_socket,
        tmux_identity=where.tmux_identity,
        pid=where.pid,
        pid_start=where.pid_start,
        keeper_pid=where.keeper_pid,
        keeper_start=where.keeper_start,
        boot_seconds=place.boot_seconds,
    )


def _claims(
    stamp: AgentStamp, validation: CompletionValidation | None, message: str, *, refused: bool
) -> list[AgentClaimValidated]:
    if validation is None:
        return []
    return [AgentClaimValidated(**stamp, refused=refused, message=message, validation=validation)]


def _is_unchanged(change: Change, agent: Agent) -> bool:
    # Still active, in the same incarnation and in the same place.
    now = find_agent(change, agent.task_id, agent.agent_id)
    return (
        now is not None
        and now.status in ACTIVE
        and (now.incarnation, now.whereabouts) == (agent.incarnation, agent.whereabouts)
    )


def make_report(
    change: Change,
    event: AgentEvent,
    recorded_as: "RecordedAs",
    before: Agent | None,
    validation: CompletionValidation | None = None,
) -> "AgentReport":
    from guard.core.agents.report import AgentReport

    registry, overall = change.fold(AGENT_REGISTRY, event.task_id), change.fold(GLOBAL_REGISTRY)
    agent, task, all_tasks = registry.agent(event.agent_id), registry.counts(), overall.counts()
    assert agent
    return AgentReport(
        agent=agent,
        previous_status=before.status if before else None,
        recorded_as=recorded_as,
        active_count=task.active,
        completed_count=task.completed,
        total_spawned=task.spawned,
        active_agents=all_tasks.active,
        completed_agents=all_tasks.completed,
        total_agents_spawned=all_tasks.spawned,
        completion_validation=validation,
    )
