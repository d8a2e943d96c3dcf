"""The settings of run and loop."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import USERS, Section

ShowMode = Literal["text", "raw", "none"]
"""How the output of an agent is shown: events as text, byte for byte, or not at all."""


class RunSettings(Section):
    """How long `guard run` and `guard loop` let an agent run. A limit of 0 never ends it."""

    max_idle_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 3600
    """How long the agent and all that it started may show no sign of work (CPU time, bytes read or written, output), before \
it is ended; not while it can read a terminal. Unless it is set, a program that guard does not know as a local agent CLI, such \
as docker or ssh, has six hours."""
    max_silence_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 1800
    """How long a local agent CLI that prints events may print none while no child of it is at work, before it is ended. A \
child that is alive, and no server, counts as at work until it has shown no sign of work for as long."""
    max_seconds: Annotated[float, Field(ge=0, le=2592000, json_schema_extra=USERS)] = 0
    """How long the agent may run in one iteration before it is ended, however much it does."""
    keep_output_mb: Annotated[float, Field(ge=0, le=1e6, json_schema_extra=USERS)] = 256
    """How many megabytes of earlier iterations' output guard keeps, for `guard show`; the oldest are deleted first. \
The newest iteration is always kept."""
    max_cost: Annotated[float, Field(ge=0, le=1e9, json_schema_extra=USERS)] = 0
    """How many dollars a loop may cost, by what the agent CLI or `cost.prices` say, before it ends."""
    max_tokens: Annotated[int, Field(ge=0, le=10**15, json_schema_extra=USERS)] = 0
    """How many tokens a loop may use, those from a cache included, before it ends."""
    max_cost_without_progress: Annotated[float, Field(ge=0, le=1e9, json_schema_extra=USERS)] = 0
    """How many dollars a loop may cost since its last new work, proven where there is a command, before it ends."""
    budget_grace_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 120
    """How long an agent that has used up the budget may take to finish its turn before it is ended."""
    max_repeats: Annotated[int, Field(ge=0, le=1000000, json_schema_extra=USERS)] = 20
    """How many calls an agent may make while it goes round in circles (the same call with the same result, the same call that \
fails, the same two calls in turn, or the same message), before it is ended."""
