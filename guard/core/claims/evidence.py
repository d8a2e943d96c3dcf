"""What a claim is held against: gathered from git, the log and the traces of test runs, never from the claim itself."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

TestSource = Literal["guard", "pytest", "coverage", "junit", "jest", "cargo", "go"]


@dataclass(frozen=True)
class TestRun:
    """One run of tests that left a trace."""

    __test__ = False

    source: TestSource
    at: datetime
    passed: bool | None
    """None if the trace does not tell."""
    detail: str = ""


@dataclass(frozen=True)
class WorkSinceBaseline:
    """What git says was done since the agent's baseline."""

    files: frozenset[str]
    """Every path that a commit since then or the work tree has changed, made or deleted; relative to the root, with slashes."""
    commits: int


@dataclass(frozen=True)
class ClaimEvidence:
    """Everything that is known about an agent at the moment of its claim."""

    agent_type: str
    message: str
    spawned_at: datetime
    at: datetime
    """When it claims to be complete, or was found to have ended."""
    updates: int
    """Reports before this one."""
    working_updates: int
    """Those of them that said it was at work."""
    findings: int
    changes: WorkSinceBaseline | None
    """None if git could not be asked, or nobody knows where the agent began."""
    unmeasured: str | None
    """Why not."""
    existing: frozenset[str] = frozenset()
    """Of the paths that the message names, those that exist in the work tree now."""
    tests: tuple[TestRun, ...] | None = ()
    """Runs since the agent was spawned; None if nobody could look."""
    ignored: frozenset[str] = frozenset()
    """Of the paths that the message names, those that git ignores: no diff would have them."""
    root: str | None = None
    """Where the work tree lies: an absolute path outside of it is none of git's."""
    silent: bool = False
    """Whether nobody claimed anything: the session was found to have ended."""
