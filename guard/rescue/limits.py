"""What the user sets for snapshots and rescues, and who is told how far they are."""

from dataclasses import dataclass

from guard.core.rescuing import COMMIT_MAX_FILE_BYTES, SNAPSHOT_MAX_FILE_BYTES
from guard.core.settings import Rescue
from guard.rescue.table import Progress


@dataclass(frozen=True)
class Limits:
    """Sizes up to which a file is kept, and committed."""

    snapshot_max_file_bytes: int = SNAPSHOT_MAX_FILE_BYTES
    commit_max_file_bytes: int = COMMIT_MAX_FILE_BYTES
    progress: Progress | None = None

    @classmethod
    def of(cls, settings: Rescue, progress: Progress | None = None) -> "Limits":
        """As the settings say."""
        return cls(settings.snapshot_max_file_bytes, settings.commit_max_file_bytes, progress)
