"""Events of git's own hooks: commits that were made, and commits that took the place of others."""

from typing import Literal

from guard.core.base.fields import Count, Frozen, Id, Line, Oid
from guard.core.hooks.events import SpoolName
from guard.core.log.event import BaseEvent

How = Literal[
    "commit",
    "initial",
    "amend",
    "merge",
    "cherry-pick",
    "revert",
    "rebase",
    "pull",
    "am",
    "other",
]


class Rewrite(Frozen):
    """One commit that took the place of another."""

    old: Oid
    new: Oid


class _CommitEvent(BaseEvent):
    worktree: Id
    spooled: SpoolName
    """The name that it had in the spool: a file that is still there was taken in all the same."""


class CommitRecorded(_CommitEvent):
    """A commit was made; run and iteration are those in which it was, if it was in one."""

    type: Literal["commit_recorded"] = "commit_recorded"
    oid: Oid
    previous: Oid | None
    """Where HEAD stood before: the parent, or what was amended."""
    branch: Line | None
    how: How
    verified: bool | None
    """Whether guard's `pre-commit` hook came first; None where it would not have, or nobody can tell."""


class CommitsRewritten(_CommitEvent):
    """Commits took the place of others, by an amend or a rebase."""

    type: Literal["commits_rewritten"] = "commits_rewritten"
    command: Line
    count: Count
    rewrites: tuple[Rewrite, ...]
    """The newest of them."""


CommitEvent = CommitRecorded | CommitsRewritten
