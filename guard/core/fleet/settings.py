"""The settings of fleets: several machines that share one store, or one account."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section


class FleetSettings(Section):
    """Several machines that share one store, or one account."""

    lease_seconds: Annotated[float, Field(ge=1, le=86400, json_schema_extra=USERS)] = 60
    """How long other machines and containers take a guard for alive after it last renewed its lease."""
