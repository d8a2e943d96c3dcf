"""The settings of the work trees of a plan."""

import warnings
from typing import Annotated

from pydantic import Field

from guard.core.base.fields import USERS, Section
from guard.core.prove.settings import Globs

# `plan.copy` takes the place of a method of pydantic's that is deprecated and not used here.
warnings.filterwarnings("ignore", message='Field name "copy" in "PlanSettings" shadows')


class PlanSettings(Section):
    """How `guard plan run` prepares the work trees of its agents, and when it gives up."""

    setup: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """The command that prepares a work tree for an agent, such as `npm ci`; run by `sh -c`, and again when it or \
`setup_inputs` change."""
    setup_inputs: Annotated[Globs, Field(max_length=200, json_schema_extra=USERS)] = ()
    """Which files decide that a work tree has to be prepared again, as globs; empty for the lock files."""
    copy: Annotated[Globs, Field(max_length=200, json_schema_extra=USERS)] = ()  # type: ignore[assignment]
    """Files that git does not track and that agents need, such as `.env`, as globs: each work tree gets a copy of them, \
which git does not offer to commit."""
    max_cost_per_task: Annotated[float, Field(ge=0, le=1e9, json_schema_extra=USERS)] = 0
    """How many dollars the agents of one task may cost, by what their CLI or `cost.prices` say, before no more are sent to \
it; 0 is no limit."""
    min_free_bytes: Annotated[int, Field(ge=0, le=2**53, json_schema_extra=USERS)] = 1024**3
    """How much of the disk must stay free: below it no agent is started."""
