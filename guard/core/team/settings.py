"""The settings of the team."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section


class TeamSettings(Section):
    """An agent's own helpers, and how long a completion is held back for them."""

    lease_seconds: Annotated[float, Field(gt=0, le=604800, json_schema_extra=USERS)] = 1800
    """How long a helper counts after its last sign of life, unless its spawn named another time."""
    max_hold_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 7200
    """How long a completion is held back for a team, before the gate lets it go and says why."""
