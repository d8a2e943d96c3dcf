"""The settings of the log and its lock."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section


class StoreSettings(Section):
    """The log and its lock."""

    lock_timeout_seconds: Annotated[float, Field(ge=0, le=86400, json_schema_extra=USERS)] = 10
    """How long to wait for another guard that holds the workspace, before giving up with exit code 6."""
    segment_max_bytes: Annotated[int, Field(ge=4096, le=2**40, json_schema_extra=USERS)] = (
        16 * 1024 * 1024
    )
    """From which size on the log begins a new segment."""
