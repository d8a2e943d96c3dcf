"""The settings of the workspace, the log and its lock."""

from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section


class TopSettings(Section):
    """The keys outside all tables."""

    workspace: Annotated[str | None, Field(min_length=1, json_schema_extra=USERS)] = None
    """Guard's state: a folder, or `postgresql://HOST/DATABASE`; by default one per repository below $XDG_STATE_HOME/guard."""


class StoreSettings(Section):
    """The log and its lock."""

    lock_timeout_seconds: Annotated[float, Field(ge=0, le=86400, json_schema_extra=USERS)] = 10
    """How long guard waits for another process that holds the workspace's lock before it gives up with exit code 6."""
    segment_max_bytes: Annotated[int, Field(ge=4096, le=2**40, json_schema_extra=USERS)] = (
        16 * 1024 * 1024
    )
    """The size at which the log begins a new segment."""
