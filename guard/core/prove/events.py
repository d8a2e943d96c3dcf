"""Events of proof: what was proven of which commit, and how."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Digest, Frozen, Id, Line, Oid
from guard.core.iteration.facts import Seconds
from guard.core.log.events import BaseEvent
from guard.core.prove.outcome import CellName
from guard.core.prove.report import Cell, TestName
from guard.core.prove.summary import ProofResult

MOST_NAMED = 50
_Some = Annotated[tuple[TestName, ...], Field(max_length=MOST_NAMED)]


class CheckEntry(Frozen):
    """What one check said, and which commits it was held against."""

    name: Id
    command: Digest
    result: ProofResult
    baseline: Oid | None
    tests_baseline: Oid | None


class ProofMade(BaseEvent):
    """The project's own checks were run on a commit. Of many names the first are kept, and how many there were."""

    type: Literal["proof_made"] = "proof_made"
    worktree: Id
    result: ProofResult
    reason: Line
    detail: Line
    head: Oid
    head_tree: Oid
    cells: dict[CellName, Cell]
    new_failures: _Some
    weakened: _Some
    rewritten: _Some
    still_failing: Count
    flaky: Count
    vacuous: Count
    checks: Annotated[tuple[CheckEntry, ...], Field(max_length=50)]
    """Those that were run; a check is left out if the change touches none of its paths."""
    counts: bool
    """Whether later work may be held against it: not if the user named the baseline, or if an agent asked for it."""
    seconds: Seconds


class TestChangesAccepted(BaseEvent):
    """A person has accepted the changes of tests up to a commit: they are not raised again."""

    __test__ = False

    type: Literal["test_changes_accepted"] = "test_changes_accepted"
    worktree: Id
    head: Oid


ProveEvent = ProofMade | TestChangesAccepted
