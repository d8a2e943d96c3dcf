"""What is known of a rollback that is under way, kept on disk so that the next command can finish or undo it."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Frozen, Id, Line, Oid
from guard.core.base.paths import Spelled

PIN_REFS = "refs/guard/rollback"
"""The revert has a name here until its branch has it."""


class RollbackJournal(Frozen):
    """One rollback: written before anything is touched, deleted when all is done.

    Beside it lie two folders, `before` and `after`, with each of the paths as it was and as it is to be.
    """

    schema_: Literal["guard/rollback-journal/1"] = Field("guard/rollback-journal/1", alias="schema")
    task_id: Id
    worktree: Spelled
    ref: Spelled
    """What moves: a branch by its full name, or HEAD where it is detached."""
    head: Oid
    """Where it stood."""
    to_sha: Oid
    """The revert."""
    index: Line
    """The name, in the git directory, of the index that belongs to the revert."""
    snapshot: Id
    paths: tuple[Spelled, ...]
    new_folders: tuple[Spelled, ...]
    """Folders that are not there before, the outer ones first."""


@dataclass(frozen=True)
class SettledRollback:
    """What became of a rollback."""

    task_id: str
    head: str
    to_sha: str
    moved: bool
    """Whether the revert is on the branch; else all is as it was."""
    left: tuple[str, ...] = ()
    """Files that were changed since, and are left as they are."""
    snapshot: str | None = None
    """The work tree as it was before, where that is known."""
