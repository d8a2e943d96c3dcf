"""The policy for claims, as the settings have it."""

from typing import TYPE_CHECKING

from guard.core.claims.policy import REQUIREMENTS, ClaimPolicy, listed, parsed_requirements

if TYPE_CHECKING:
    from guard.core.config.sections import Claims


def policy_from(claims: "Claims") -> ClaimPolicy:
    """What claims are measured by; a type that the settings name is no longer the built-in one."""
    return ClaimPolicy(
        min_message_length=claims.min_message_length,
        min_updates=claims.min_updates,
        min_seconds=claims.min_seconds,
        requirements={**REQUIREMENTS, **parsed_requirements(claims.requirements)},
        evidence_words=listed(claims.evidence_words),
        suspicious_phrases=listed(claims.suspicious_phrases),
        strict=claims.strict,
    )
