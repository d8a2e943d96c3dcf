"""The settings of fleets: several machines that share one store, or one account."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section


class FleetSettings(Section):
    """Several machines that share one store, or one account."""

    lease_seconds: Annotated[float, Field(ge=1, le=86400, json_schema_extra=USERS)] = 60
    """How long other machines and containers take a guard for alive after it last renewed its lease."""
    wait_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 600
    """How long `guard loop` waits between two iterations for a server that does not answer, before it ends with exit code 6."""
    account: Annotated[str, Field(max_length=200, json_schema_extra=USERS)] = ""
    """A name for the account that the agents here use. When one of its loops reaches a usage limit, all loops with the same \
name pause until the reset: those that share the server, or else those of the same user on this machine. Empty: each finds out \
itself."""
