"""The base of every table of the configuration."""

from guard.core.base.fields import Frozen

USERS = {"user_only": True}
"""For a knob that the project's file cannot set: it is the agent's to edit."""


class Section(Frozen):
    """A table of the configuration."""
