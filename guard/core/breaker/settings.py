"""The settings of the breaker."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section


class BreakerSettings(Section):
    """When a run that goes nowhere is stopped, and when it may try again. A limit of 0 never stops it."""

    stall_limit: Annotated[int, Field(ge=0, le=1000, json_schema_extra=USERS)] = 3
    """How many iterations in a row may stall before the breaker opens."""
    same_error_limit: Annotated[int, Field(ge=0, le=1000, json_schema_extra=USERS)] = 5
    """How often the same error may come, without work between, before the breaker opens."""
    denied_limit: Annotated[int, Field(ge=0, le=1000, json_schema_extra=USERS)] = 2
    """How often iterations may end at denied permissions, without work between, before the breaker opens."""
    rescue_limit: Annotated[int, Field(ge=0, le=1000, json_schema_extra=USERS)] = 5
    """How many iterations in a row may have to be rescued before the breaker opens."""
    refuted_limit: Annotated[int, Field(ge=0, le=1000, json_schema_extra=USERS)] = 5
    """How many iterations in a row may be refuted by the project's own checks before the breaker opens."""
    cooldown_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 1800
    """How long the breaker stays open before it allows one trial; twice as long after each trial that fails."""
    cooldown_max_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 14400
    """The longest that a cooldown becomes."""
    trial_lease_seconds: Annotated[float, Field(gt=0, le=604800, json_schema_extra=USERS)] = 14400
    """How long a trial is its holder's alone; after that another process may claim one."""
