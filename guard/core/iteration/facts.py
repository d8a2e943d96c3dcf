"""What is said of processes, files and verdicts in the records of every room."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Digest, Frozen, Line, Oid
from guard.core.base.host import Host
from guard.core.base.paths import Spelled

Status = Literal[
    "complete",
    "waiting",
    "working",
    "timeout",
    "error",
    "limited",
    "blocked",
    "interrupted",
    "refuted",
]
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


GOES_ON = {("waiting", "alive"), ("waiting", "team"), ("working", "agent_alive")}
"""Verdicts, with their reasons, on something that goes on: the iteration is judged again later."""


class Process(Frozen):
    """One process and no other: a pid is used again, a pid with its start time is not."""

    pid: Annotated[int, Field(ge=1, le=2**31)]
    start: Line
    """Opaque, with the machine's boot in it: it only compares."""
    host: Host | None = None
    """Where it runs; null in records of older guards, which knew one machine only."""


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
