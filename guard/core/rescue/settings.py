"""The settings of snapshots and rescue, and the limits that follow from them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import USERS, Section

SNAPSHOT_MAX_FILE_BYTES = 1024**3
COMMIT_MAX_FILE_BYTES = 50 * 1024**2
KEEP_SNAPSHOTS = 50
KEEP_DAYS = 14.0


_ALLOWED = r"^( *([a-z0-9_]+|\*):[^,]+(,|$))*$"


class RescueSettings(Section):
    """How uncommitted work becomes commits."""

    command: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """A program that commits what was left, run instead of guard's own rescue with the name of the spec as its argument."""
    time_limit_seconds: Annotated[float, Field(gt=0, le=86400)] = 300
    """How long a rescue or a snapshot may take."""
    planner: Annotated[Literal["rules", "agent"], Field(json_schema_extra=USERS)] = "rules"
    """Who groups what was left into commits: fixed rules, or the agent's own CLI, whose plan is checked."""
    rescue_hooks: Annotated[Literal["skip", "run"], Field(json_schema_extra=USERS)] = "skip"
    """Whether the repository's hooks pre-commit and commit-msg have a say: they are the agent's to edit."""
    snapshot_max_file_bytes: Annotated[int, Field(ge=0, le=2**40, json_schema_extra=USERS)] = (
        SNAPSHOT_MAX_FILE_BYTES
    )
    """Up to which size a file is kept in a snapshot."""
    commit_max_file_bytes: Annotated[int, Field(ge=0, le=2**40, json_schema_extra=USERS)] = (
        COMMIT_MAX_FILE_BYTES
    )
    """Up to which size a file is committed by a rescue; larger ones are in the snapshot only."""
    keep_snapshots: Annotated[int, Field(ge=1, le=1_000_000, json_schema_extra=USERS)] = (
        KEEP_SNAPSHOTS
    )
    """How many snapshots of each work tree are kept, whatever their age (the newest)."""
    keep_days: Annotated[float, Field(ge=0, le=36500, json_schema_extra=USERS)] = KEEP_DAYS
    """How many days every snapshot is kept; one with work that has not been taken over stays longer."""
    allow_secrets: Annotated[
        str, Field(max_length=4096, pattern=_ALLOWED, json_schema_extra=USERS)
    ] = ""
    """Secrets that are none: `rule:glob` after `rule:glob`, with commas; they hold no file back."""


SnapshotProgress = Callable[[str], None]
"""Told what is going on, very often; what follows a semicolon is how far it is."""


@dataclass(frozen=True)
class SnapshotLimits:
    """What is kept and what is committed, and how long it is kept."""

    snapshot_max_file_bytes: int = SNAPSHOT_MAX_FILE_BYTES
    commit_max_file_bytes: int = COMMIT_MAX_FILE_BYTES
    allow_secrets: str = ""
    """Hits that the user lets pass, as in the setting of that name."""
    keep_snapshots: int = KEEP_SNAPSHOTS
    keep_days: float = KEEP_DAYS
    progress: SnapshotProgress | None = None

    def tell(self, message: str) -> None:
        if self.progress is not None:
            self.progress(message)

    @classmethod
    def of(
        cls, settings: RescueSettings, progress: SnapshotProgress | None = None
    ) -> "SnapshotLimits":
        return cls(
            snapshot_max_file_bytes=settings.snapshot_max_file_bytes,
            commit_max_file_bytes=settings.commit_max_file_bytes,
            allow_secrets=settings.allow_secrets,
            keep_snapshots=settings.keep_snapshots,
            keep_days=settings.keep_days,
            progress=progress,
        )
