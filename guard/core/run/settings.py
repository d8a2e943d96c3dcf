"""The settings of run and loop."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section


class RunSettings(Section):
    """How long `guard run` and `guard loop` let an agent run. A limit of 0 never ends it."""

    max_idle_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 3600
    """How long the agent and all that it started may show no sign of work (CPU time, bytes read or written, output), before \
it is ended; not while it can read a terminal. Unless it is set, a program that guard does not know as a local agent CLI, such \
as docker or ssh, has six hours."""
    max_silence_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 1800
    """How long a local agent CLI that prints events may print none while no child of it is at work, before it is ended. A \
child that is alive, and no server, counts as at work until it has shown no sign of work for as long."""
    max_seconds: Annotated[float, Field(ge=0, le=2592000, json_schema_extra=USERS)] = 0
    """How long the agent may run in one iteration before it is ended, however much it does."""
