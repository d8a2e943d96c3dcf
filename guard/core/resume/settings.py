"""The settings of resume."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.activity.settings import FilePatterns
from guard.core.base.fields import USERS, Section
from guard.core.resume.stall import MAX_PER_STALL, PAUSE_MINUTES


class ResumeSettings(Section):
    """How an agent that has fallen silent is brought back."""

    validate_activity: bool = True
    """Whether an agent is looked at first, and gets no prompt while it is at work."""
    auto_claim_tasks: bool = True
    """Whether the next task of the plan is claimed for the agent, and not only shown to it."""
    max_per_stall: Annotated[int, Field(ge=0, le=10, json_schema_extra=USERS)] = MAX_PER_STALL
    """How many prompts are sent in one silence, before a person is needed."""
    pause_minutes: Annotated[float, Field(ge=0, le=43200, json_schema_extra=USERS)] = PAUSE_MINUTES
    """How long to wait between two prompts of one silence."""
    priorities: Annotated[str, Field(max_length=4096)] = ""
    """What matters most in this project, separated by `;`: every prompt says it."""
    by: Annotated[
        Literal["auto", "tmux", "session", "inbox", "command"], Field(json_schema_extra=USERS)
    ] = "auto"
    """How a prompt is sent: tmux, inbox or command, whichever is there first, or by one way only."""
    inbox_folders: FilePatterns = "agent_workspaces/{agent}/inbox;.agents/{agent}/inbox"
    """Folders in the work tree where the agent finds messages: the first that exists gets the prompt as a file."""
    command: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """A program that brings the prompt to the agent: it gets it on its stdin, and finds the ids in its environment."""
    command_seconds: Annotated[float, Field(gt=0, le=3600, json_schema_extra=USERS)] = 60
    """How long that program may take."""
    watch_seconds: Annotated[float, Field(ge=0.1, le=86400, json_schema_extra=USERS)] = 60
    """How often the monitor looks at all agents when nothing happens."""
