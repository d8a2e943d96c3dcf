"""Why a rollback did not happen; nothing has changed then."""

from collections.abc import Sequence
from typing import Literal

from guard.errors import Refused

Why = Literal[
    "changed_meanwhile",
    "conflict",
    "dirty",
    "not_in_history",
    "not_ready",
]


class Stopped(Refused):
    """A word for scripts, a sentence for people, and the paths that it is about."""

    def __init__(
        self, why: Why, message: str, hint: str | None = None, paths: Sequence[str] = ()
    ) -> None:
        super().__init__(message, hint)
        self.why, self.paths = why, tuple(paths)
