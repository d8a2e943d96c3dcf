"""The settings for claims of completion, and what they require of each type of agent."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from guard.core.base.fields import USERS, Section
from guard.core.base.first_use import dataclass, late_pattern

_NEED = r"(files|findings|tests)=[0-9]{1,3}"
REQUIREMENTS_PATTERN = rf"^( *[A-Za-z0-9][A-Za-z0-9_-]*: *{_NEED}( +{_NEED})* *(;|$))* *$"
_PATTERN = late_pattern(REQUIREMENTS_PATTERN)


@dataclass(frozen=True)
class Requirement:
    """How many changed files, findings and test runs an agent must have."""

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


def parse_requirements(text: str) -> dict[str, Requirement]:
    """Parse `reviewer: findings=1; migrator: files=2 tests=1` into requirements by type; a ValueError otherwise."""
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


def check_requirements(text: str) -> str:
    parse_requirements(text)
    return text


class ClaimsSettings(Section):
    """How guard validates claims of completion."""

    min_message_length: Annotated[int, Field(ge=0, le=65536, json_schema_extra=USERS)] = 40
    """The shortest message of completion, in characters, that raises no warning."""
    min_updates: Annotated[int, Field(ge=0, le=1000, json_schema_extra=USERS)] = 3
    """How many reports an agent is expected to make before it claims completion."""
    min_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 60
    """How many seconds an agent is expected to take at least; 0 accepts any time."""
    requirements: Annotated[
        str,
        Field(max_length=4096, pattern=REQUIREMENTS_PATTERN, json_schema_extra=USERS),
        AfterValidator(check_requirements),
    ] = ""
    """What agents of a type must have, besides the built-in types: `reviewer: findings=1; migrator: files=2 tests=1`."""
    evidence_words: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """More words that count as evidence in a message, separated by commas."""
    suspicious_phrases: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """More phrases that make a message suspicious, separated by commas."""
    strict: Annotated[bool, Field(json_schema_extra=USERS)] = False
    """Whether guard refuses a completion that has blocking issues."""

    def requirement(self, agent_type: str) -> Requirement:
        # A type that the settings name replaces the built-in one, and a type that neither names needs nothing.
        required = {**REQUIREMENTS, **parse_requirements(self.requirements)}
        return required.get(agent_type.casefold(), Requirement())


def split_phrases(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
