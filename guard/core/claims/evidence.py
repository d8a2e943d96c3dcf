"""Hold the evidence for a claim, gathered from git, the log and traces of test runs, never from the claim itself."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from guard.core.claims.substance import Substance

TestSource = Literal["call", "guard", "pytest", "coverage", "junit", "jest", "cargo", "go"]


@dataclass(frozen=True)
class TestRun:
    """A test run that left a trace."""

    __test__ = False

    source: TestSource
    at: datetime
    passed: bool | None
    """None if the trace does not show it."""
    detail: str = ""


@dataclass(frozen=True)
class WorkSinceBaseline:
    """The work since the agent's baseline, as git shows it."""

    files: frozenset[str]
    """Every path that was changed, created or deleted since, committed or not; relative to the root, with slashes."""
    commits: int
    """The agent's own commits that count as work, as the check counts them."""
    uncounted: tuple[str, ...] = ()
    """Commits that do not count, in words."""
    last_edit: datetime | None = None
    """When a file of code was changed last, by the times of the files."""
    substance: Substance = field(default_factory=Substance)


@dataclass(frozen=True)
class ClaimEvidence:
    """The facts about an agent when it claims completion."""

    agent_type: str
    message: str
    spawned_at: datetime
    at: datetime
    """When the agent claimed completion, or was found to have ended."""
    updates: int
    """How many reports the agent made before this one."""
    working_updates: int
    """How many of them said that the agent was at work."""
    findings: int
    changes: WorkSinceBaseline | None = None
    """None if git could not be asked, or no baseline was recorded."""
    unmeasured: str | None = None
    """Why `changes` is None."""
    existing: frozenset[str] = frozenset()
    """The paths named in the message that exist in the work tree now."""
    tests: tuple[TestRun, ...] | None = None
    """Test runs since the agent was spawned; None if guard could not look for them."""
    ignored: frozenset[str] = frozenset()
    """The paths named in the message that git ignores: no diff would show them."""
    root: str | None = None
    """The root of the work tree: git knows nothing of an absolute path outside it."""
    calls: int | None = None
    """How many tool calls guard saw in the agent's session; None if it saw none of them, so that a run may have escaped it."""
    asks: bool = False
    """Whether the message asks a person for a decision, as it would in a session that ends with it."""
    silent: bool = False
    """True if the agent claimed nothing: its session was found to have ended."""

    @property
    def has_work(self) -> bool:
        """Tell whether anything shows that the agent did something; blanks alone do not."""
        changes = self.changes
        changed = changes is not None and bool(changes.files or changes.commits)
        only_blanks = changes is not None and changes.substance.only_blanks
        return bool(self.findings) or (changed and not only_blanks)
