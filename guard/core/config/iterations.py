"""The tables around an iteration: how it is checked, how long it runs, what becomes of its work, and when a run is stopped."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.section import USERS, Section
from guard.core.events.snapshot import (
    COMMIT_MAX_FILE_BYTES,
    KEEP_DAYS,
    KEEP_SNAPSHOTS,
    SNAPSHOT_MAX_FILE_BYTES,
)

_ALLOWED = r"^( *([a-z0-9_]+|\*):[^,]+(,|$))*$"

Agent = Literal["claude", "codex", "gemini", "qwen", "opencode", "copilot", "command"]


class CompletionCheck(Section):
    """How `guard check` finds out what became of an iteration."""

    max_probes: Annotated[int, Field(ge=1, le=1000)] = 5
    """How many rounds a check looks and asks before it gives up."""
    probe_interval_seconds: Annotated[float, Field(ge=0, le=86400)] = 30
    """How long to wait between two rounds."""
    probe_timeout_seconds: Annotated[float, Field(gt=0, le=86400)] = 60
    """How long one probe may take."""
    final_rescue_attempt: bool = True
    """Whether work that is still uncommitted after the last round is rescued."""
    progress_window_seconds: Annotated[float, Field(ge=0, le=86400)] = 120
    """How long after its last CPU time, I/O or output a process of the iteration still counts as at work."""
    max_wait_seconds: Annotated[float, Field(ge=0, le=604800)] = 7200
    """How long a check waits for helpers that are alive, before it says so and ends."""
    git_timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 10
    """How long one call of git may take."""
    agent: Agent | Literal[""] = ""
    """Which agent is asked: claude, codex, gemini, qwen, opencode, copilot or command; `guard run` sees it by the command."""
    probe_model: Annotated[str, Field(max_length=128)] = ""
    """The model that answers a probe, where the agent's CLI takes one; for Claude Code sonnet if nothing is said."""
    probe_command: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """The program that answers for the agent `command`: the question on its stdin, one JSON document on its stdout."""
    task_file: Annotated[str, Field(max_length=1024)] = "specs/{spec}/tasks.md"
    """Where the task file of `--spec NAME` lies; `tasks.md` in the work tree's root is looked for next."""


class Run(Section):
    """How long `guard run` and `guard loop` let an agent run. A limit of 0 never ends it."""

    max_idle_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 21600
    """How long the agent and all that it started may use no CPU time, read, write and print nothing, before it is ended; \
not while it can read a terminal."""
    max_seconds: Annotated[float, Field(ge=0, le=2592000, json_schema_extra=USERS)] = 0
    """How long the agent may run in one iteration before it is ended, however much it does."""


class Rescue(Section):
    """How uncommitted work becomes commits."""

    command: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """A program that commits what was left, run instead of guard's own rescue with the name of the spec as its argument."""
    time_limit_seconds: Annotated[float, Field(gt=0, le=86400)] = 300
    """How long a rescue or a snapshot may take."""
    planner: Annotated[Literal["rules", "agent"], Field(json_schema_extra=USERS)] = "rules"
    """Who groups what was left into commits: fixed rules, or the agent's own CLI, whose plan is checked."""
    rescue_hooks: Annotated[Literal["skip", "run"], Field(json_schema_extra=USERS)] = "skip"
    """Whether the repository's hooks pre-commit and commit-msg have a say: they are the agent's to edit."""
    snapshot_max_file_bytes: Annotated[int, Field(ge=0, le=2**40, json_schema_extra=USERS)] = (
        SNAPSHOT_MAX_FILE_BYTES
    )
    """Up to which size a file is kept in a snapshot."""
    commit_max_file_bytes: Annotated[int, Field(ge=0, le=2**40, json_schema_extra=USERS)] = (
        COMMIT_MAX_FILE_BYTES
    )
    """Up to which size a file is committed by a rescue; larger ones are in the snapshot only."""
    keep_snapshots: Annotated[int, Field(ge=1, le=1_000_000, json_schema_extra=USERS)] = (
        KEEP_SNAPSHOTS
    )
    """How many snapshots of each work tree are kept, whatever their age (the newest)."""
    keep_days: Annotated[float, Field(ge=0, le=36500, json_schema_extra=USERS)] = KEEP_DAYS
    """How many days every snapshot is kept; one whose work nobody has taken over stays longer."""
    allow_secrets: Annotated[
        str, Field(max_length=4096, pattern=_ALLOWED, json_schema_extra=USERS)
    ] = ""
    """Secrets that are none: `rule:glob` after `rule:glob`, with commas; they hold no file back."""


class Hooks(Section):
    """What guard does when an agent's own program calls it, at the start and the end of a session."""

    max_blocks: Annotated[int, Field(ge=0, le=7, json_schema_extra=USERS)] = 2
    """How often an agent that wants to stop is asked to go on, for one prompt; with 0 it never is."""
    time_limit_seconds: Annotated[float, Field(gt=0, le=50, json_schema_extra=USERS)] = 40
    """How long guard takes at most to decide whether an agent may stop, before it lets it."""
    baseline_seconds: Annotated[float, Field(gt=0, le=50, json_schema_extra=USERS)] = 20
    """How long the baseline at the start of a session may take, before the session goes on without one."""
