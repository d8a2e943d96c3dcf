"""What is expected of agents that claim to be complete, as the settings have it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guard.core.claims.settings import ClaimsSettings


_NEED = r"(files|findings|tests)=[0-9]{1,3}"
REQUIREMENTS_PATTERN = rf"^( *[A-Za-z0-9][A-Za-z0-9_-]*: *{_NEED}( +{_NEED})* *(;|$))* *$"
_PATTERN = re.compile(REQUIREMENTS_PATTERN)


@dataclass(frozen=True)
class Requirement:
    """How much of each an agent must have to show."""

    files: int = 0
    findings: int = 0
    tests: int = 0


_FINDS, _CHANGES = Requirement(findings=1), Requirement(files=1)
REQUIREMENTS: Mapping[str, Requirement] = {
    **dict.fromkeys(("investigator", "researcher", "analyst", "reviewer", "auditor"), _FINDS),
    **dict.fromkeys(
        ("builder", "developer", "implementer", "refactorer", "migrator", "documenter"), _CHANGES
    ),
    "fixer": Requirement(files=1, tests=1),
    "tester": Requirement(tests=1),
}


@dataclass(frozen=True)
class ClaimPolicy:
    """What a claim is measured by; `strict` lets blocking issues refuse a completion."""

    min_message_length: int = 40
    min_updates: int = 3
    min_seconds: float = 60
    requirements: Mapping[str, Requirement] = field(default_factory=lambda: REQUIREMENTS)
    evidence_words: tuple[str, ...] = ()
    suspicious_phrases: tuple[str, ...] = ()
    strict: bool = False

    def required(self, agent_type: str) -> Requirement:
        """What agents of this type must have to show; of others nothing is required."""
        return self.requirements.get(agent_type.casefold(), Requirement())


def parsed_requirements(text: str) -> dict[str, Requirement]:
    """Requirements by type from `reviewer: findings=1; migrator: files=2 tests=1`; a ValueError otherwise."""
    if not _PATTERN.match(text):
        raise ValueError("write requirements as `reviewer: findings=1; migrator: files=2 tests=1`")
    found: dict[str, Requirement] = {}
    for entry in filter(str.strip, text.split(";")):
        kind, _, needs = entry.partition(":")
        pairs = [need.split("=") for need in needs.split()]
        if kind.strip().casefold() in found or len({key for key, _ in pairs}) < len(pairs):
            raise ValueError(f"the requirements of {kind.strip()} are given twice")
        found[kind.strip().casefold()] = Requirement(**{key: int(count) for key, count in pairs})
    return found


def checked_requirements(text: str) -> str:
    """The same text, if it can be read."""
    parsed_requirements(text)
    return text


def listed(text: str) -> tuple[str, ...]:
    """The phrases of a list with commas."""
    return tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))


def policy_from(claims: "ClaimsSettings") -> ClaimPolicy:
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
