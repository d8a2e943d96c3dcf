"""The events of git's hooks: commits that were made, and commits that replaced others."""

from typing import Literal

from guard.core.base.fields import Count, Frozen, Id, Line, Oid
from guard.core.hooks.events import SpoolName
from guard.core.log.events import BaseEvent

How = Literal[
    "commit", "initial", "amend", "merge", "cherry-pick", "revert", "rebase", "pull", "am", "other"
]


class Rewrite(Frozen):
    """One commit that replaced another."""

    old: Oid
    new: Oid


class _CommitEvent(BaseEvent):
    worktree: Id
    spooled: SpoolName
    """The name of the spool file: one that is still there was recorded all the same."""


class CommitRecorded(_CommitEvent):
    """A commit was made, in this run and iteration if it was in one."""

    type: Literal["commit_recorded"] = "commit_recorded"
    oid: Oid
    previous: Oid | None
    """The commit that HEAD pointed to before: the parent, or the amended commit."""
    branch: Line | None
    how: How
    verified: bool | None
    """Whether guard's `pre-commit` hook came first; None where git would not call it, or nothing tells."""


class CommitsRewritten(_CommitEvent):
    """Commits replaced others, by an amend or a rebase."""

    type: Literal["commits_rewritten"] = "commits_rewritten"
    command: Line
    count: Count
    rewrites: tuple[Rewrite, ...]
    """The newest replacements."""


CommitEvent = CommitRecorded | CommitsRewritten
