"""The settings of the agent hooks."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section


class HooksSettings(Section):
    """What guard does when an agent's own program calls it, at the start and the end of a session."""

    max_blocks: Annotated[int, Field(ge=0, le=7, json_schema_extra=USERS)] = 2
    """How often an agent that wants to stop is asked to go on, for one prompt; with 0 it never is."""
    time_limit_seconds: Annotated[float, Field(gt=0, le=50, json_schema_extra=USERS)] = 40
    """How long guard takes at most to decide whether an agent may stop, before it lets it."""
    baseline_seconds: Annotated[float, Field(gt=0, le=50, json_schema_extra=USERS)] = 20
    """How long the baseline at the start of a session may take, before the session goes on without one."""
