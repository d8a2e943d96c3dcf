"""The settings of `resume`."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.activity.settings import FilePatterns
from guard.core.base.fields import USERS, Section
from guard.core.resume.stall import MAX_PER_STALL, PAUSE_MINUTES


class ResumeSettings(Section):
    """How guard brings back an agent that has fallen silent."""

    validate_activity: bool = True
    """Whether guard assesses an agent first, and sends no prompt while it is at work."""
    auto_claim_tasks: bool = True
    """Whether the next task of the plan is claimed for the agent, and not only shown to it."""
    max_per_stall: Annotated[int, Field(ge=0, le=10, json_schema_extra=USERS)] = MAX_PER_STALL
    """How many prompts are sent in one silence before a person is needed."""
    pause_minutes: Annotated[float, Field(ge=0, le=43200, json_schema_extra=USERS)] = PAUSE_MINUTES
    """How long to wait between two prompts of one silence."""
    priorities: Annotated[str, Field(max_length=4096)] = ""
    """What matters most in this project, separated by `;`; every prompt says it."""
    by: Annotated[
        Literal["auto", "tmux", "session", "inbox", "command"], Field(json_schema_extra=USERS)
    ] = "auto"
    """The channel for prompts; `auto` takes the first possible one of tmux, inbox and command."""
    inbox_folders: FilePatterns = "agent_workspaces/{agent}/inbox;.agents/{agent}/inbox"
    """Folders in the work tree where the agent finds messages: the first that exists gets the prompt as a file."""
    command: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """A program that delivers the prompt: it gets the prompt on stdin and the ids in its environment."""
    command_seconds: Annotated[float, Field(gt=0, le=3600, json_schema_extra=USERS)] = 60
    """How long that program may take."""
    watch_seconds: Annotated[float, Field(ge=0.1, le=86400, json_schema_extra=USERS)] = 60
    """How often the monitor looks at all agents if nothing changes."""
