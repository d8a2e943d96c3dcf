"""A registry that guard did not write, taken over in one change."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from guard.agents.import_file import read
from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.agents.events import AgentImported, RetentionSet
from guard.core.agents.import_registry import BadRegistry, ImportedAgent, read_registry
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.agents.report import AgentName, ImportReport
from guard.core.agents.roster import AgentCounts, transition
from guard.core.base.text import shorten, valid
from guard.core.log.event import BaseEvent
from guard.errors import Refused
from guard.store import Change

_LONGEST_SOURCE = 400


def take_over(guard: Invocation, file: Path, task_id: str | None) -> ImportReport:
    """Record the agents of the file that are not registered yet; a file with anything wrong in it is refused whole."""
    source, now = shorten(valid(file), _LONGEST_SOURCE), guard.clock.now()
    try:
        found = read_registry(read(file), task_id=task_id, source=source, now=now)
    except BadRegistry as error:
        raise Refused(
            f"{source} cannot be imported: {'; '.join(error.problems)}",
            "mend the file and import it again; nothing was recorded",
        ) from None
    with guard.writable_store.change() as change:
        taking = _Taking(change, source)
        known = [one for one in found.agents if taking.knows(one)]
        new = [one for one in found.agents if one not in known]
        keep = guard.lenient_settings.registry.keep_finished
        events: list[BaseEvent] = [
            event for one in new for event in taking.events(one, {"at": now}) if event
        ]
        if events and keep != change.fold(GLOBAL_REGISTRY).keep_finished:
            events.insert(0, RetentionSet(at=now, id=new_id(), keep_finished=keep))
        change.append(*events)
    return ImportReport(
        source=source,
        imported=tuple(_name(one) for one in new),
        known=tuple(_name(one) for one in known),
        warnings=tuple(found.warnings),
    )


def _name(agent: ImportedAgent) -> AgentName:
    return AgentName(task_id=agent.task_id, agent_id=agent.agent_id)


class _Taking:
    """The counts while agents are added one by one, before any of them is recorded."""

    def __init__(self, change: Change, source: str) -> None:
        self._change = change
        self._source = source
        self._tasks: dict[str, AgentCounts] = {}
        self._overall = change.fold(GLOBAL_REGISTRY).counts()

    def knows(self, agent: ImportedAgent) -> bool:
        fold = self._change.fold(AGENT_REGISTRY, agent.task_id)
        self._tasks.setdefault(agent.task_id, fold.counts())
        return fold.agent(agent.agent_id) is not None

    def events(self, agent: ImportedAgent, common: dict[str, Any]) -> list[BaseEvent]:
        event = AgentImported(
            **common, id=new_id(), incarnation=1, source=self._source, **asdict(agent)
        )
        task = self._tasks[agent.task_id]
        moved = transition(event, new_id(), None, task, self._overall)
        assert moved is not None
        self._tasks[agent.task_id] = AgentCounts(
            moved.active_count, moved.completed_count, task.spawned + 1
        )
        self._overall = AgentCounts(
            moved.active_agents, moved.completed_agents, self._overall.spawned + 1
        )
        return [event, moved]
