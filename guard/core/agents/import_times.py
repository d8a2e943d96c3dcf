"""When an agent of a registry from outside began, was last heard of, and ended."""

from datetime import datetime
from typing import NamedTuple

from guard.core.agents.import_fields import Fields
from guard.core.agents.lifecycle import ACTIVE
from guard.core.events.agent import AgentStatus

_BEGUN = ("spawned_at", "started_at", "created_at")
_UPDATED = ("updated_at", "last_update")
_ENDED = ("completed_at", "terminated_at", "ended_at", "killed_at")
KILLED = ("terminated_at", "killed_at", "kill_reason", "termination_reason", "reason")


class Times(NamedTuple):
    begun: datetime
    updated: datetime
    ended: datetime | None


def times_of(entry: Fields, status: AgentStatus, now: datetime) -> Times | None:
    """The times of an agent, none of them after now; None if they cannot be."""
    begun, updated, ended = (entry.moment(*names) for names in (_BEGUN, _UPDATED, _ENDED))
    if entry.named(*_ENDED) and status in ACTIVE:
        entry.wrong(entry.named(*_ENDED) or "", f"is an end, and the status is {status}")
        return None
    if entry.named(*_BEGUN) is None:
        entry.notes.assume(entry.place, "has no time of its beginning: the earliest known is taken")
        begun = min(filter(None, (updated, ended, now)))
    if status not in ACTIVE and entry.named(*_ENDED) is None:
        entry.notes.assume(entry.place, "has no time of its end: the latest known is taken")
        ended = updated or now
    if begun is None:
        return None
    for name, moment in ((entry.named(*_ENDED), ended), (entry.named(*_UPDATED), updated)):
        if name and moment and moment < begun:
            entry.wrong(name, "is before its beginning")
    if max(filter(None, (begun, updated, ended))) > now:
        entry.notes.assume(entry.place, "has times that are yet to come: they are taken as now")
    last = updated or ended or begun
    return Times(min(begun, now), min(last, now), min(ended, now) if ended else None)
