"""The settings of the registries."""

from typing import Annotated

from pydantic import Field

from guard.core.agents.registry import KEEP_FINISHED
from guard.core.base.fields import USERS, Section


class RegistrySettings(Section):
    """The registries of agents."""

    keep_finished: Annotated[int, Field(ge=0, le=1_000_000)] = KEEP_FINISHED
    """How many finished agents the global registry lists (the newest); the task registries list all."""
    kill_grace_seconds: Annotated[float, Field(ge=0, le=3600, json_schema_extra=USERS)] = 30
    """How many seconds `guard agent kill` waits for an agent to end before it forces the end."""
    session_start_seconds: Annotated[float, Field(ge=0, le=86400, json_schema_extra=USERS)] = 30
    """How many seconds after its registration an agent's tmux session may take to appear; later the agent counts as ended."""
