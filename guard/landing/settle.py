"""Finish or undo a landing that was killed."""

from guard.context.invocation import Invocation
from guard.landing.move import settle_announced
from guard.rollback.place import lock_rollbacks
from guard.rollback.recover import settle_all
from guard.rollback.rollback import rollback_place


def finish_or_undo(guard: Invocation) -> None:
    place = rollback_place(guard)
    with lock_rollbacks(place.workspace):
        # Files that were half exchanged come first: until then it is not decided whether the branch has moved.
        settle_all(place)
        moved = settle_announced(guard, place)
    if moved is not None:
        guard.output.warn(f"guard has {'finished' if moved else 'undone'} a killed landing")
