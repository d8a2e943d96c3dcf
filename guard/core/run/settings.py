"""The settings of run and loop."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section


class RunSettings(Section):
    """How long `guard run` and `guard loop` let an agent run. A limit of 0 never ends it."""

    max_idle_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 21600
    """How long the agent and all that it started may use no CPU time, read, write and print nothing, before it is ended; \
not while it can read a terminal."""
    max_seconds: Annotated[float, Field(ge=0, le=2592000, json_schema_extra=USERS)] = 0
    """How long the agent may run in one iteration before it is ended, however much it does."""
