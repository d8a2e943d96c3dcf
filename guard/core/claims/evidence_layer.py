"""The first layer: what git and the log have of an agent's work."""

from guard.core.claims.evidence import ClaimEvidence
from guard.core.claims.scoring import Deduction, name, names, score_lines, warned
from guard.core.events.validation import WorkspaceEvidence

_UNMEASURED, _NOTHING = -0.05, -0.15


def workspace_layer(evidence: ClaimEvidence) -> tuple[WorkspaceEvidence, list[Deduction]]:
    """What is recorded of the work; what could not be measured costs little, and accuses nobody."""
    deductions = list(_deductions(evidence))
    changes, tests = evidence.changes, evidence.tests
    layer = WorkspaceEvidence(
        score=score_lines(deductions),
        modified_files_count=None if changes is None else len(changes.files),
        commits_count=None if changes is None else changes.commits,
        progress_entries_count=evidence.updates,
        findings_count=evidence.findings,
        test_runs_count=None if tests is None else len(tests),
        modified_files=names(sorted(changes.files)) if changes else (),
        unmeasured=None if changes is not None else name(_reason(evidence)),
    )
    return layer, deductions


def _reason(evidence: ClaimEvidence) -> str:
    return evidence.unmeasured or "nobody knows where the agent began"


def _deductions(evidence: ClaimEvidence) -> list[Deduction]:
    changes = evidence.changes
    if changes is None:
        return [warned(_UNMEASURED, f"Changes could not be measured: {name(_reason(evidence))}")]
    if changes.files or changes.commits or evidence.findings or evidence.tests:
        return []
    return [
        warned(_NOTHING, "Nothing is recorded: no changed file, no commit, no finding, no test run")
    ]
