"""What every event has: when it happened, what it is, its id, and the run and iteration it belongs to."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import Frozen, Id, Instant

IterationNumber = Annotated[int, Field(ge=1, le=2**31)]


class BaseEvent(Frozen):
    """The tag in `type` is a file format: a class may be renamed, its tag may not."""

    at: Instant
    type: str
    id: Id
    run: Id | None = None
    iteration: IterationNumber | None = None
