"""What every table of the configuration is made of."""

from typing import Annotated

from pydantic import AfterValidator, Field

from guard.core.activity.patterns import checked_patterns
from guard.core.fields import Frozen

USERS = {"user_only": True}
"""For a knob that the project's file cannot set: it is the agent's to edit."""

FilePatterns = Annotated[str, Field(max_length=4096), AfterValidator(checked_patterns)]


class Section(Frozen):
    """A table of the configuration."""
