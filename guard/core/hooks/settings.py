"""The settings of the agent hooks and of the git hooks."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section


class HooksSettings(Section):
    """What guard does when an agent CLI calls its hooks, at the start and the end of a session, and when git does."""

    max_blocks: Annotated[int, Field(ge=0, le=7, json_schema_extra=USERS)] = 2
    """How often guard asks an agent that wants to stop to go on, for one prompt; 0 never asks."""
    time_limit_seconds: Annotated[float, Field(gt=0, le=50, json_schema_extra=USERS)] = 40
    """How long guard may take to decide whether an agent may stop; after that it lets the agent stop."""
    baseline_seconds: Annotated[float, Field(gt=0, le=50, json_schema_extra=USERS)] = 20
    """How long the baseline at the start of a session may take; after that the session goes on without one."""
    refuse_secrets: bool = False
    """Whether the git hooks refuse a person's commit or push with a new secret, as they refuse an agent's, or only warn."""
