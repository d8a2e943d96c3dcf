"""The settings of the completion check."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.agent_json import AgentCli
from guard.core.base.fields import RAISED, USERS, Section


class CheckSettings(Section):
    """How `guard check` finds out what became of an iteration."""

    max_probes: Annotated[int, Field(ge=1, le=1000)] = 5
    """How many rounds a check looks and asks at most; it asks again only where something can still change."""
    probe_interval_seconds: Annotated[float, Field(ge=0, le=86400)] = 30
    """How long to wait between two rounds."""
    probe_timeout_seconds: Annotated[float, Field(gt=0, le=86400)] = 60
    """How long one probe may take."""
    final_rescue_attempt: bool = True
    """Whether work that is still uncommitted after the last round is rescued."""
    progress_window_seconds: Annotated[float, Field(ge=0, le=86400)] = 120
    """How long after its last CPU time, I/O or output a process of the iteration still counts as at work; a server \
that listens on a port only for 10 s."""
    max_wait_seconds: Annotated[float, Field(ge=0, le=604800)] = 7200
    """How long a check waits for helpers that are alive, before it says so and ends."""
    git_timeout_seconds: Annotated[float, Field(gt=0, le=3600, json_schema_extra=RAISED)] = 10
    """How long one call of git may take."""
    max_seconds: Annotated[float, Field(gt=0, le=604800, json_schema_extra=RAISED)] = 900
    """How long git may take in a whole check, with its snapshot and rescue; waits and probes have limits of their own."""
    agent: AgentCli | Literal[""] = ""
    """Which agent is asked: claude, codex, gemini, qwen, opencode, copilot or command; `guard run` sees it by the command."""
    probe_model: Annotated[str, Field(max_length=128)] = ""
    """The model that answers a probe, where the agent's CLI takes one; for Claude Code sonnet if nothing is said."""
    probe_command: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """The program that answers for the agent `command`: the question on its stdin, one JSON document on its stdout."""
    task_file: Annotated[str, Field(max_length=1024)] = "specs/{spec}/tasks.md"
    """Where the task file of `--spec NAME` lies; `tasks.md` in the work tree's root is looked for next."""
