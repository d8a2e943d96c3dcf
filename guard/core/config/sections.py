"""The tables of the configuration: every knob with its default, its bounds, and what it does."""

from typing import Annotated

from pydantic import Field

from guard.core.base.section import USERS, Section
from guard.core.breaker.settings import BreakerSettings
from guard.core.config.agents import Activity, Claims, Coordinator, Registry, Resume, Team
from guard.core.config.iterations import Agent, CompletionCheck, Hooks, Rescue, Run

__all__ = [
    "Activity",
    "Agent",
    "BreakerSettings",
    "Claims",
    "CompletionCheck",
    "Coordinator",
    "Hooks",
    "Registry",
    "Rescue",
    "Resume",
    "Run",
    "Section",
    "Settings",
    "StoreSettings",
    "Team",
]


class StoreSettings(Section):
    """The log and its lock."""

    lock_timeout_seconds: Annotated[float, Field(ge=0, le=86400, json_schema_extra=USERS)] = 10
    """How long to wait for another guard that holds the workspace, before giving up with exit code 6."""
    segment_max_bytes: Annotated[int, Field(ge=4096, le=2**40, json_schema_extra=USERS)] = (
        16 * 1024 * 1024
    )
    """From which size on the log begins a new segment."""


class Settings(Section):
    """All knobs."""

    # What is not set is as its table says, and needs no check: no table builds its validator for that.

    workspace: Annotated[str | None, Field(min_length=1, json_schema_extra=USERS)] = None
    """The folder for guard's state; by default one per repository below $XDG_STATE_HOME/guard."""
    completion_check: CompletionCheck = CompletionCheck.model_construct()
    run: Run = Run.model_construct()
    rescue: Rescue = Rescue.model_construct()
    breaker: BreakerSettings = BreakerSettings.model_construct()
    registry: Registry = Registry.model_construct()
    claims: Claims = Claims.model_construct()
    team: Team = Team.model_construct()
    hooks: Hooks = Hooks.model_construct()
    activity: Activity = Activity.model_construct()
    coordinator: Coordinator = Coordinator.model_construct()
    resume: Resume = Resume.model_construct()
    store: StoreSettings = StoreSettings.model_construct()
