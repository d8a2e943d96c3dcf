"""What was begun under the id of a request before: a script that was interrupted asks for the same once more."""

from dataclasses import dataclass

from guard.coordinator.record import reused_id_error
from guard.core.coordinator.requests import numbered_id
from guard.core.coordinator.upkeep_events import RollbackFailed, RollbackStarted, TaskRolledBack
from guard.store import Store


@dataclass(frozen=True)
class Attempts:
    """The rollbacks of one id, of which at most the last has succeeded."""

    next_id: str
    """The id of the one that comes next: the id itself is the first one's."""
    done: RollbackStarted | None = None


def attempts(store: Store, task_id: str, event_id: str) -> Attempts:
    """All that the log tells of this id; refused if something else was recorded under it."""
    count, next_id = 1, event_id
    begun: RollbackStarted | None = None
    for entry in store.entries():
        event = entry.event
        if event.id == next_id:
            if not isinstance(event, RollbackStarted) or event.task_id != task_id:
                raise reused_id_error(event, event_id)
            begun, count = event, count + 1
            next_id = numbered_id(event_id, count)
        elif begun is not None and isinstance(event, TaskRolledBack | RollbackFailed):
            # There is one rollback at a time: the next end is its end.
            if isinstance(event, TaskRolledBack):
                return Attempts(next_id, begun)
            begun = None
    return Attempts(next_id)
