"""What the user sets for snapshots and rescues, and who is told how far they are."""

from collections.abc import Callable
from dataclasses import dataclass

from guard.core.rescue.settings import (
    COMMIT_MAX_FILE_BYTES,
    KEEP_DAYS,
    KEEP_SNAPSHOTS,
    SNAPSHOT_MAX_FILE_BYTES,
    RescueSettings,
)

Progress = Callable[[str], None]
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
    progress: Progress | None = None

    def tell(self, message: str) -> None:
        """Say what is going on, if anybody listens."""
        if self.progress is not None:
            self.progress(message)

    @classmethod
    def of(cls, settings: RescueSettings, progress: Progress | None = None) -> "SnapshotLimits":
        """As the settings say."""
        return cls(
            snapshot_max_file_bytes=settings.snapshot_max_file_bytes,
            commit_max_file_bytes=settings.commit_max_file_bytes,
            allow_secrets=settings.allow_secrets,
            keep_snapshots=settings.keep_snapshots,
            keep_days=settings.keep_days,
            progress=progress,
        )
