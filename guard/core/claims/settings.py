"""The settings for claims of completion."""

from typing import Annotated

from pydantic import AfterValidator, Field

from guard.core.base.section import USERS, Section
from guard.core.claims.policy import REQUIREMENTS_PATTERN, checked_requirements


class ClaimsSettings(Section):
    """How claims of completion are validated."""

    min_message_length: Annotated[int, Field(ge=0, le=65536, json_schema_extra=USERS)] = 40
    """How many characters a message of completion should have at least."""
    min_updates: Annotated[int, Field(ge=0, le=1000, json_schema_extra=USERS)] = 3
    """How many reports are expected before the one that claims completion."""
    min_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 60
    """How long an agent is expected to take at least; 0 lets any time pass."""
    requirements: Annotated[
        str,
        Field(max_length=4096, pattern=REQUIREMENTS_PATTERN, json_schema_extra=USERS),
        AfterValidator(checked_requirements),
    ] = ""
    """What types of agents must have to show, beside those built in: `reviewer: findings=1; migrator: files=2 tests=1`."""
    evidence_words: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """More words that count as evidence in a message, with commas."""
    suspicious_phrases: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """More phrases that make a message suspicious, with commas."""
    strict: Annotated[bool, Field(json_schema_extra=USERS)] = False
    """Whether blocking issues refuse a completion."""
