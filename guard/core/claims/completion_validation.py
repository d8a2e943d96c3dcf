"""The result of validating a claim: confidence, warnings, blocking issues, and what they rest on, layer by layer."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Instant, Line

Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Points = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Names = tuple[Line, ...]
Speed = Literal["reasonable", "fast", "implausible"]


class ScoreLine(Frozen):
    """One line of the arithmetic: the confidence is 1 with all of these added, and never below 0."""

    points: Points
    why: Line


class Layer(Frozen):
    """What one layer found, and what it takes from the confidence."""

    score: tuple[ScoreLine, ...]


class WorkspaceEvidence(Layer):
    """What git and the log have of the agent's work; counts of what could not be measured are null."""

    modified_files_count: Count | None
    commits_count: Count | None
    progress_entries_count: Count
    findings_count: Count
    test_runs_count: Count | None
    modified_files: Names
    """The first of them."""
    unmeasured: Line | None
    """Why git could not be asked, if it could not."""


class TypeSpecific(Layer):
    """What agents of this type must have to show for themselves."""

    agent_type: Line
    files_ok: bool | None
    findings_ok: bool | None
    tests_ok: bool | None
    """Null where the type requires none, or nothing is known."""


class MessageValidation(Layer):
    """What the message says, and what of it is not so."""

    length: Count
    evidence_keywords_found: Names
    suspicious_phrases_found: Names
    claimed_files: Names
    unsupported_files: Names
    """Claimed as changed, and no diff has them."""
    claimed_tests: bool
    tests_recorded: bool | None
    """Null if no test was claimed."""


class ProgressPattern(Layer):
    """How the work went by the agent's own reports."""

    speed: Speed
    elapsed_seconds: Seconds
    updates_count: Count
    working_updates_count: Count


class EvidenceSummary(Frozen):
    workspace_evidence: WorkspaceEvidence
    type_specific: TypeSpecific
    message_validation: MessageValidation
    progress_pattern: ProgressPattern


class CompletionValidation(Frozen):
    """How far a claim of completion is to be believed."""

    confidence: Confidence
    warnings: Names
    blocking_issues: Names
    evidence_summary: EvidenceSummary
    validated_at: Instant

    def is_refused(self, *, strict: bool) -> bool:
        """Tell whether the completion is refused: only a `strict` validation refuses, for blocking issues."""
        return strict and bool(self.blocking_issues)

    def score(self) -> tuple[ScoreLine, ...]:
        return tuple(line for _, layer in self.evidence_summary for line in layer.score)
