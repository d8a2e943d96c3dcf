"""The view of the proofs of a work tree: which commits were proven, and which were not."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Frozen, Id, Instant, Line, Oid
from guard.core.base.first_use import dataclass
from guard.core.log.view import FieldsFold, WorktreeView, worktree_view
from guard.core.prove.events import CheckEntry, ProofMade, ProveEvent, TestChangesAccepted
from guard.core.prove.report import Names
from guard.core.prove.settings import ProveCheck
from guard.core.prove.summary import ProofResult

MOST_PROOFS = 50


class ProofEntry(Frozen):
    """One proof, as later ones and other commands need to know it."""

    id: Id
    at: Instant
    run: Id | None
    result: ProofResult
    reason: Line
    detail: Line
    head: Oid
    head_tree: Oid
    checks: Annotated[tuple[CheckEntry, ...], Field(max_length=50)]
    counts: bool
    """Whether later work may be held against it."""
    new_failures: Names
    weakened: Names
    rewritten: Names


class Proofs(WorktreeView):
    """The newest proofs of one work tree, the newest last."""

    schema_: Literal["guard/proofs/1"] = Field("guard/proofs/1", alias="schema")
    proofs: tuple[ProofEntry, ...]
    accepted: tuple[Oid, ...]
    """The newest commits up to which a person has accepted the changes of tests, the newest last."""

    def of_check(self, check: ProveCheck) -> Iterator[tuple[ProofEntry, CheckEntry]]:
        """Yield the proofs by this check that count, the newest first."""
        digest = check_digest(check)
        for proof in reversed(self.proofs):
            for entry in proof.checks:
                if entry.command == digest and proof.counts:
                    yield proof, entry

    def result_at(self, head: str, check: ProveCheck) -> ProofResult | None:
        """Return what this check said of a commit the last time; None if it was not run on it."""
        found = (entry.result for proof, entry in self.of_check(check) if proof.head == head)
        return next(found, None)


def check_digest(check: ProveCheck) -> str:
    text = f"{check.kind}\0{check.command}"
    return sha256(text.encode(errors="surrogateescape")).hexdigest()


@dataclass(frozen=True)
class Bases:
    """The commits that work is held against; None stands for the time before the first commit."""

    failures: str | None
    tests: str | None


def choose_bases(
    proofs: Proofs | None,
    check: ProveCheck,
    head: str,
    begun: str | None,
    is_older: Callable[[str, str], bool],
) -> Bases:
    """Return what failures and what removed and rewritten tests are held against.

    `begun` is where the run began, or the commit before if no run is known. `is_older` says of two commits whether the first
    is an ancestor of the second, or the same.
    """
    known = [
        (proof, entry)
        for proof, entry in (proofs.of_check(check) if proofs is not None else ())
        if is_older(proof.head, head)
    ]
    failures = _base_of_failures(known, head, begun, is_older)
    tests = failures if begun is None else begun
    for _, entry in known:
        # A proven commit settles what was before it; what was not proven is still open, also from an earlier run.
        if entry.result == "proven":
            break
        open_since = entry.tests_baseline
        if open_since is not None and (tests is None or is_older(open_since, tests)):
            tests = open_since
    for accepted in reversed(proofs.accepted if proofs is not None else ()):
        if is_older(accepted, head) and (tests is None or is_older(tests, accepted)):
            return Bases(failures, accepted)
    return Bases(failures, tests)


def _base_of_failures(
    known: list[tuple[ProofEntry, CheckEntry]],
    head: str,
    begun: str | None,
    is_older: Callable[[str, str], bool],
) -> str | None:
    """Return the newest proven commit, or where the oldest work began that is not proven.

    Else what an iteration broke would count as broken before in the next one.
    """
    for proof, entry in known:
        if entry.result == "proven" and proof.head != head:
            return proof.head
    for _, entry in reversed(known):
        base = entry.baseline
        if entry.result != "proven" and base is not None and base != head and is_older(base, head):
            return base if begun is None or is_older(base, begun) else begun
    return begun


class ProofsFold(FieldsFold[Proofs]):
    document_class = Proofs

    def apply(self, event: ProveEvent) -> None:
        known = self._fields or {"worktree": self.key, "proofs": (), "accepted": ()}
        if isinstance(event, TestChangesAccepted):
            accepted = [oid for oid in known["accepted"] if oid != event.head]
            self._fields = {**known, "accepted": (*accepted, event.head)[-MOST_PROOFS:]}
            return
        entry = ProofEntry(**{name: getattr(event, name) for name in ProofEntry.model_fields})
        self._fields = {**known, "proofs": (*known["proofs"], entry)[-MOST_PROOFS:]}


PROOFS = worktree_view(
    Proofs,
    ProofsFold,
    (ProofMade, TestChangesAccepted),
    "proofs",
    b'"type":"proof_made"',
    b'"type":"test_changes_accepted"',
)
