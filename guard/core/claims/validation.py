"""How far a claim of completion is to be believed: four layers, one sum, every line of it explained."""

from guard.core.claims.evidence import ClaimEvidence
from guard.core.claims.evidence_layer import workspace_layer
from guard.core.claims.message_layer import message_layer
from guard.core.claims.policy import ClaimPolicy
from guard.core.claims.progress_layer import progress_layer
from guard.core.claims.requirements_layer import type_layer
from guard.core.claims.scoring import Deduction
from guard.core.events.validation import CompletionValidation, EvidenceSummary

BELIEVED = 0.7
"""Below this confidence a claim is not to be believed, nor with any blocking issue."""


def validate(evidence: ClaimEvidence, policy: ClaimPolicy) -> CompletionValidation:
    """Hold a claim against the evidence, layer by layer."""
    workspace, of_workspace = workspace_layer(evidence)
    specific, of_type = type_layer(evidence, policy)
    message, of_message = message_layer(evidence, policy)
    progress, of_progress = progress_layer(evidence, policy)
    all_of_them = [*of_workspace, *of_type, *of_message, *of_progress]
    return CompletionValidation(
        confidence=_confidence(all_of_them),
        warnings=tuple(one.why for one in all_of_them if not one.blocking),
        blocking_issues=tuple(one.why for one in all_of_them if one.blocking),
        evidence_summary=EvidenceSummary(
            workspace_evidence=workspace,
            type_specific=specific,
            message_validation=message,
            progress_pattern=progress,
        ),
        validated_at=evidence.at,
    )


def _confidence(deductions: list[Deduction]) -> float:
    return round(min(1.0, max(0.0, 1 + sum(one.points for one in deductions))), 2)


def is_believed(validation: CompletionValidation) -> bool:
    """Whether the claim is to be believed."""
    return validation.confidence >= BELIEVED and not validation.blocking_issues


def refusals(validation: CompletionValidation, policy: ClaimPolicy) -> tuple[str, ...]:
    """Why the completion is refused: its blocking issues, where the policy is strict; otherwise nothing."""
    return validation.blocking_issues if policy.strict else ()


def explained(validation: CompletionValidation) -> list[str]:
    """The score line by line: where it begins, what each layer takes, what is left."""
    found = validation.evidence_summary
    layers = {
        "workspace evidence": found.workspace_evidence,
        "agent type": found.type_specific,
        "message": found.message_validation,
        "progress pattern": found.progress_pattern,
    }
    lines = [
        f"{line.points:+.2f}  {title}: {line.why}"
        for title, layer in layers.items()
        for line in layer.score
    ]
    total = 1 + sum(line.points for line in validation.score())
    left = f"{validation.confidence:5.2f}  confidence"
    return [" 1.00  start", *lines, left if total >= 0 else f"{left} (the sum is {total:.2f})"]
