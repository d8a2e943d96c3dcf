"""The event of a baseline: what the repository was when an iteration began."""

from typing import Literal

from guard.core.base.fields import Count, Digest, Frozen, Id, Line, Oid
from guard.core.base.paths import Spelled
from guard.core.events.run import IterationEventBase


class DirtyFile(Frozen):
    """A path of the work tree that differs from the last commit, and the identity of what is there."""

    path: Spelled
    """Relative to the root of the work tree; one that stands for a whole folder or repository ends in a slash."""
    kind: Literal["file", "executable", "link", "folder", "repository", "special", "missing"]
    content: Digest | None
    """SHA-256 of the bytes, of a link's target, or of what a folder or repository has in it; None if nothing was read."""
    stamp: Line
    """Size and time of the last change: what tells where one of two has no `content`."""
    index: Oid | None
    """The blob that is staged, if one is."""
    staged: bool
    unstaged: bool
    untracked: bool
    left_by: Literal["user", "iteration"] = "user"
    """Whose it is at a baseline: what an earlier iteration left uncommitted is not the user's."""


class RepositoryStanding(Frozen):
    """Where a repository stands."""

    head: Oid | None
    """None before the first commit."""
    tree: Oid | None
    branch: Spelled | None
    """The ref that HEAD names; None if it is detached."""
    refs: dict[Spelled, Oid]
    """The commit of each ref but guard's own, and of the detached HEADs of other work trees; branches first."""
    refs_omitted: Count
    stash: tuple[Oid, ...]
    shallow: Digest | None
    """Of the file that says where a shallow clone ends; None if it is not shallow."""
    reflogs: dict[Spelled, Count]
    """How long the reflog of each work tree's HEAD was, in bytes."""
    dirty: tuple[DirtyFile, ...]
    pin: Spelled | None
    """The ref that keeps all these commits from git's garbage collection; None if it could not be made."""
    pinned: Oid | None
    kept: Line | None = None
    """The command that brings back the user's own uncommitted work as it was here; None if there was none to keep."""
    warnings: tuple[Line, ...]


class BaselineRecorded(RepositoryStanding, IterationEventBase):
    """The iteration begins here: what comes after is its work, what was there before is not."""

    type: Literal["baseline_recorded"] = "baseline_recorded"
    baseline: Id


BaselineEvent = BaselineRecorded
