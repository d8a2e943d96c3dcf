"""What `guard classify` prints."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Line, Report
from guard.core.classify import Classification
from guard.core.iteration.events import Status


class ClassifyReport(Classification, Report):
    """What an agent's output and exit status mean."""

    schema_: Literal["guard/classify/1"] = Field("guard/classify/1", alias="schema")
    status: Status | None
    """The verdict that follows from the outcome alone; null where a check has to look further."""
    format: Line | None
    """Which agent's events were recognised; null for plain text."""
    skipped: Count
    """How many lines were too long or could not be read."""
