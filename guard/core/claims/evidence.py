"""Hold the evidence for a claim, gathered from git, the log and traces of test runs, never from the claim itself."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Literal

from guard.core.base.first_use import dataclass, late_pattern
from guard.core.base.text import escape, shorten
from guard.core.claims.substance import Substance
from guard.core.prove.proofs import ProofEntry
from guard.core.tool_calls.read import ToolCall
from guard.core.tool_calls.test_runs import runs_that_count

_LONGEST_COMMAND = 400
_ABOUT_BLANKS = late_pattern(
    r"\b(?:re)?format|\bwhite-?space|\bindent|\bblank|\bstyle|\blint|\bprettier|\bline (?:ends|endings|breaks)|\btabs?\b",
    re.IGNORECASE,
)
TestSource = Literal["call", "guard", "proof", "pytest", "coverage", "junit", "jest", "cargo", "go"]


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
    left: frozenset[str] = frozenset()
    """Those of the files that are not committed."""


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
    proof: ProofEntry | None = None
    """The newest proof of what is committed now, if one was recorded."""
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
        return bool(self.findings) or (changed and not self.has_only_blanks)

    @property
    def has_changed_nothing(self) -> bool:
        return self.changes is not None and not (self.changes.files or self.changes.commits)

    @property
    def refutation(self) -> ProofEntry | None:
        """Return the proof that refutes what is committed."""
        return self.proof if self.proof is not None and self.proof.result == "refuted" else None

    @property
    def has_only_blanks(self) -> bool:
        """Tell whether nothing but blanks was changed, unless the agent says that this was its work."""
        if self.changes is None or not self.changes.substance.only_blanks:
            return False
        return self.silent or _ABOUT_BLANKS.search(self.message) is None


def add_tests(
    measured: ClaimEvidence, calls: Sequence[ToolCall] | None, others: Sequence[TestRun]
) -> ClaimEvidence:
    """Add the test runs of the session's tool calls and the others; what is older than the last edit is left out.

    A run that guard knows of counts even if it could not look for traces.
    """
    if measured.tests is None and not others and calls is None:
        return measured
    edited = measured.changes.last_edit if measured.changes is not None else None
    traces = (
        run
        for run in (*(measured.tests or ()), *others)
        if run.passed is False or edited is None or run.at >= edited
    )
    return replace(measured, tests=(*traces, *_runs_in(calls or (), measured.at)))


def _runs_in(calls: Sequence[ToolCall], at: datetime) -> Iterator[TestRun]:
    # The stream has no times, but an order; the agent claims completion after all of them.
    runs = runs_that_count(calls)
    for number, run in enumerate(runs):
        earlier = timedelta(microseconds=len(runs) - number)
        command = shorten(escape(run.command), _LONGEST_COMMAND)
        yield TestRun("call", at - earlier, run.passed, command)
