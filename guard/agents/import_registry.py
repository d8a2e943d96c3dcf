"""Import the agents of a registry file that guard did not write."""

import errno
from dataclasses import asdict
from pathlib import Path
from typing import Any

from guard.agents.registry import PendingCounts, make_stamp, place_event, retention_events
from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.agents.agent import ACTIVE
from guard.core.agents.events import AgentImported
from guard.core.agents.import_registry import BadRegistry, ImportedAgent, read_registry
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.agents.report import AgentName, ImportReport
from guard.core.agents.whereabouts import Placing, Whereabouts
from guard.core.base.json_text import loads
from guard.core.base.text import escape, shorten, utf8_text
from guard.core.log.events import BaseEvent
from guard.errors import Refused, StateProblem, WrongUsage
from guard.store import Change
from guard.system.foreign_files import read_regular
from guard.system.host import read_host

MOST_BYTES = 64 * 1024 * 1024
_HINT = "name an AGENT_REGISTRY.json or GLOBAL_REGISTRY.json that is a regular file"
_LONGEST_SOURCE = 400


def import_agents(guard: Invocation, file: Path, task_id: str | None) -> ImportReport:
    """Record the agents of the file that are not registered yet; a file with any fault is refused as a whole."""
    source, now = shorten(utf8_text(file), _LONGEST_SOURCE), guard.clock.now()
    try:
        found = read_registry(read_document(file), task_id=task_id, source=source, now=now)
    except BadRegistry as error:
        raise Refused(
            f"{source} cannot be imported: {'; '.join(error.problems)}",
            "fix the file and import it again; nothing was recorded",
        ) from None
    with guard.writable_store.change() as change:
        counts = PendingCounts(change)
        known = [agent for agent in found.agents if _is_registered(change, agent)]
        new = [agent for agent in found.agents if agent not in known]
        events: list[BaseEvent] = []
        for agent in new:
            event = AgentImported(
                at=now, id=new_id(), incarnation=1, source=source, **asdict(agent)
            )
            events += [event, *_places(event), *counts.transitions(event, None)]
        if events:
            keep = guard.config.settings.registry.keep_finished
            events = [*retention_events(change, now, keep), *events]
        change.append(*events)
    return ImportReport(
        source=source,
        imported=tuple(_name_of(agent) for agent in new),
        known=tuple(_name_of(agent) for agent in known),
        warnings=tuple(found.warnings),
    )


def _places(event: AgentImported) -> list[BaseEvent]:
    # Its session was there before the import, so that one that is gone has ended. A process is not known by its number alone.
    if event.tmux_session is None or event.status not in ACTIVE:
        return []
    where = Whereabouts(host=read_host(), tmux_session=event.tmux_session)
    stamp = make_stamp(event.at, event.task_id, event.agent_id, event.incarnation)
    return [place_event(stamp, Placing(where, boot_seconds=0))]


def _is_registered(change: Change, agent: ImportedAgent) -> bool:
    return change.fold(AGENT_REGISTRY, agent.task_id).agent(agent.agent_id) is not None


def _name_of(agent: ImportedAgent) -> AgentName:
    return AgentName(task_id=agent.task_id, agent_id=agent.agent_id)


def read_document(path: Path) -> Any:
    """Read the JSON of a regular file of bounded size, never through a link."""
    data = _read_bytes(path)
    try:
        return loads(data)
    except (ValueError, RecursionError) as error:
        raise StateProblem(
            f"{escape(str(path))} is not JSON: {escape(str(error))}",
            "fix the file; nothing was imported",
        ) from None


def _read_bytes(path: Path) -> bytes:
    try:
        data = read_regular(path, MOST_BYTES, follow=False)
    except OSError as error:
        linked = error.errno == errno.ELOOP
        reason = "it is a symbolic link" if linked else error.strerror or "it cannot be read"
        raise _refusal(path, reason) from None
    except ValueError as error:
        raise _refusal(path, str(error)) from None
    if len(data) > MOST_BYTES:
        raise _refusal(path, f"it has more than {MOST_BYTES} bytes")
    return data


def _refusal(path: Path, reason: str) -> WrongUsage:
    return WrongUsage(f"{escape(str(path))} cannot be imported: {reason}", _HINT)
