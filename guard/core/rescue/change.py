"""One path that a rescue would commit: how it changed, and the text of that."""

from typing import NamedTuple

from guard.core.events.snapshot import shown
from guard.core.rescue.path_kind import PathParts, place

MOST_TEXT = 16 * 1024
"""How much of the added and of the removed text is worth passing on; a text of this length counts as cut."""


class Changed(NamedTuple):
    """A path that was added (A), modified (M), deleted (D) or renamed (R)."""

    letter: str
    path: bytes
    old_path: bytes | None = None
    """For R, where it was; that deletion is part of this change."""
    added: bytes = b""
    """The lines that were added, or as much of them as is known."""
    removed: bytes = b""

    @property
    def line(self) -> str:
        """The change for a message."""
        was = f"{shown(self.old_path)} -> " if self.old_path is not None else ""
        return f"{self.letter} {was}{shown(self.path)}"


class ChangedFile(NamedTuple):
    """A change, and what its path says."""

    change: Changed
    place: PathParts


def piece(change: Changed) -> ChangedFile:
    """A change beside what its path says."""
    return ChangedFile(change, place(change.path))
