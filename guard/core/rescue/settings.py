"""The settings of snapshots and rescue, and the limits that follow from them."""

from collections.abc import Callable
from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import RAISED, USERS, Section
from guard.core.base.first_use import dataclass

SNAPSHOT_MAX_FILE_BYTES = 1024**3
COMMIT_MAX_FILE_BYTES = 50 * 1024**2
_ALLOWED = r"^( *([a-z0-9_]+|\*):[^,]+(,|$))*$"


class RescueSettings(Section):
    """How uncommitted work becomes commits."""

    command: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """A program that commits what was left, run instead of guard's own rescue with the name of the spec as its argument."""
    time_limit_seconds: Annotated[float, Field(gt=0, le=86400, json_schema_extra=RAISED)] = 300
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
    keep_snapshots: Annotated[int, Field(ge=1, le=1_000_000, json_schema_extra=USERS)] = 50
    """How many snapshots of each work tree are kept, whatever their age (the newest)."""
    keep_days: Annotated[float, Field(ge=0, le=36500, json_schema_extra=USERS)] = 14.0
    """How many days every snapshot is kept; one with work that has not been taken over stays longer."""
    allow_secrets: Annotated[
        str, Field(max_length=4096, pattern=_ALLOWED, json_schema_extra=USERS)
    ] = ""
    """Secrets that are none, for rescues, checks and git hooks: `rule:glob` after `rule:glob`, with commas."""

    remote: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """A private git repository to which guard pushes its snapshots after each iteration (a URL or a path). They hold ignored \
files such as `.env`, too. Empty: they stay on this machine."""


SnapshotProgress = Callable[[str], None]
"""Told what is going on, very often; what follows a semicolon is how far it is."""


@dataclass(frozen=True)
class SnapshotLimits:
    """What a snapshot keeps, a rescue commits and pruning deletes, and who is told of progress."""

    settings: RescueSettings = field(default_factory=RescueSettings.model_construct)
    progress: SnapshotProgress | None = None

    def tell(self, message: str) -> None:
        if self.progress is not None:
            self.progress(message)
