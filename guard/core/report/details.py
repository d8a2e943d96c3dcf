"""What one commit says and changes, line by line; and what a page shows of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from guard.core.rescue.redact import redact, redact_patch


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a commit does to one file, as a unified diff without its head; empty if the file is no text."""

    path: str
    kind: Literal["added", "changed", "removed"]
    text: str


@dataclass(frozen=True, slots=True)
class CommitDetails:
    """A commit, whole but for what is too long."""

    oid: str
    author: str
    email: str
    message: str
    trailers: tuple[tuple[str, str], ...]
    files: tuple[FilePatch, ...]
    """Empty for a merge."""
    is_cut: bool = False
    """Whether something of it is left out here."""


_MOST_LINES = 300
_MOST_CHARACTERS = 20_000
_MOST_MESSAGE = 2000


def clean_details(details: CommitDetails, known: Iterable[str]) -> CommitDetails:
    """Return the details without secrets, and no longer than a person reads."""
    files, left, is_cut = [], _MOST_CHARACTERS, False
    for file in details.files:
        # A secret that is cut in two would not be found.
        text = redact_patch(file.text, known)
        lines = text.splitlines(keepends=True)
        kept = "".join(lines[:_MOST_LINES])
        if len(kept) > left:
            kept = kept[: kept.rfind("\n", 0, max(0, left)) + 1]
        left -= len(kept)
        is_cut = is_cut or len(kept) < len(text)
        files.append(replace(file, path=redact(file.path, known), text=kept))
    return CommitDetails(
        oid=details.oid,
        author=redact(details.author, known),
        email=redact(details.email, known),
        message=redact(details.message, known)[:_MOST_MESSAGE],
        trailers=tuple((redact(key, known), redact(text, known)) for key, text in details.trailers),
        files=tuple(files),
        is_cut=is_cut,
    )
