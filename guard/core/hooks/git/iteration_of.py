"""To which iteration a commit belongs that a hook told of, and heard of only later."""

from datetime import datetime

from guard.core.base.fields import is_id
from guard.core.iteration.run import Run

Whose = tuple[str, int] | None


def belongs_to(run: Run | None, mark: str | None, at: datetime) -> Whose:
    """The run and the iteration; None if it was made outside of every one.

    What guard started bears its mark. Where a guard watches over the iteration, a commit without it is somebody else's.
    """
    if run is None:
        return None
    marked = _marked(mark)
    if marked is not None:
        return marked if marked[0] == run.run else None
    opened, ended = run.open_iteration, run.last_iteration
    if opened is not None and opened.started_at <= at:
        return (run.run, opened.number) if opened.supervisor is None else None
    if ended is not None and ended.started_at is not None:
        within = ended.started_at <= at <= ended.ended_at
        return (run.run, ended.number) if within else None
    return None


def _marked(mark: str | None) -> Whose:
    name, _, number = (mark or "").partition("/")
    is_number = number.isascii() and number.isdecimal() and len(number) < 10
    return (name, int(number)) if is_id(name) and is_number and int(number) > 0 else None
