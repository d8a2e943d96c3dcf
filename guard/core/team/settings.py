"""The settings of teams."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section


class TeamSettings(Section):
    """An agent's own helpers, and how long a completion is held back for them."""

    lease_seconds: Annotated[float, Field(gt=0, le=604800, json_schema_extra=USERS)] = 1800
    """How many seconds a helper counts after its last sign of life, unless its spawn gave another lease."""
    max_hold_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 7200
    """How many seconds a completion is held back for a team before the gate releases it and says why."""
