"""What the newest check of a work tree warned of: secrets in the agent's commits, and files that a rescue held back."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Id, Instant, Line
from guard.core.base.text import escape, plural
from guard.core.check.events import CheckWarned, CommittedSecret
from guard.core.check.last_check import LastCheck
from guard.core.log.events import IterationNumber
from guard.core.log.view import FieldsFold, WorktreeView, worktree_view
from guard.core.snapshots.snapshot import HeldBack

_MOST_SHOWN = 10
_NOT_TO_COMMIT = ("secret", "too_large", "ignored", "rebuilt")
"""Why a file is held back that no agent is to commit either."""


class CheckWarnings(WorktreeView):
    """The warnings of the newest check of one work tree that had any."""

    schema_: Literal["guard/check-warnings/1"] = Field("guard/check-warnings/1", alias="schema")
    run: Id
    iteration: IterationNumber
    at: Instant
    secrets: tuple[CommittedSecret, ...]
    not_scanned: tuple[Line, ...]
    held_back: tuple[HeldBack, ...]

    def is_of(self, check: LastCheck | None) -> bool:
        """Tell whether these are the warnings of this check: a later one may have had none."""
        known = (self.run, self.iteration, self.at)
        return check is not None and known == (check.run, check.iteration, check.at)


_COPIED = CheckWarned.model_fields.keys() & CheckWarnings.model_fields.keys()


class CheckWarningsFold(FieldsFold[CheckWarnings]):
    document_class = CheckWarnings

    def apply(self, event: CheckWarned) -> None:
        self._fields = {name: getattr(event, name) for name in _COPIED}


CHECK_WARNINGS = worktree_view(
    CheckWarnings, CheckWarningsFold, (CheckWarned,), "warnings", b'"type":"check_warned"'
)


def list_warnings(
    secrets: Sequence[CommittedSecret], not_scanned: Sequence[str], held_back: Sequence[HeldBack]
) -> list[str]:
    """Return a sentence about each file that was committed with a secret, was not searched, or was held back."""
    return [
        *_limit([describe_secret(secret) for secret in secrets]),
        *_limit([f"not searched for secrets: {line}" for line in not_scanned]),
        *_limit([describe_held_back(held) for held in held_back]),
    ]


def describe_secret(secret: CommittedSecret) -> str:
    line = f", line {secret.line}" if secret.line else ""
    place = f"in commit {secret.commit[:10]}"
    return f"secret committed: {escape(secret.path)} ({secret.rule}{line}) {place}"


def describe_held_back(held: HeldBack) -> str:
    """Return a sentence that also tells an agent what not to do."""
    advice = ": do not commit it" if held.why.startswith(_NOT_TO_COMMIT) else ""
    return f"held back: {escape(held.path)} ({held.why}){advice}"


def _limit(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_SHOWN
    return [*lines[:_MOST_SHOWN], f"and {plural(more, 'more file')}"] if more > 0 else lines
