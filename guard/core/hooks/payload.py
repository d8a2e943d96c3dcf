"""A hook call in one form for all agents, as it is spooled and recorded."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationError

from guard.core.base.fields import BootSeconds, Frozen, Line, Text, first_problem
from guard.core.hooks.events import HookAgent, HookName
from guard.core.team.events import MemberName

CallKind = Literal[
    "session_started",
    "prompted",
    "tool_starting",
    "tool_used",
    "tool_failed",
    "helper_started",
    "helper_ended",
    "teammate_idle",
    "task_created",
    "task_completed",
    "compacting",
    "stopping",
    "stop_failed",
    "session_ended",
    "other",
]
Folder = Annotated[str, StringConstraints(max_length=4096)]


class Task(Frozen):
    """One task in the background, as the agent CLI lists it."""

    id: MemberName
    kind: Literal["teammate", "subagent", "background_shell"]
    running: bool
    description: Line


class Wakeup(Frozen):
    """A time at which the agent CLI will go on by itself."""

    id: MemberName
    description: Line


class HookCall(Frozen):
    """One call of a hook: the few fields of its document that guard uses, shortened, and its time."""

    schema_: Literal["guard/heard/1"] = Field("guard/heard/1", alias="schema")
    agent: HookAgent
    event: HookName
    kind: CallKind
    seconds: Annotated[float, Field(ge=0, le=2**37)]
    """Since the epoch."""
    boot_seconds: BootSeconds
    boot_id: Line | None
    cwd: Folder
    session: Line | None = None
    prompt: Line | None = None
    """The id of the prompt or turn; None if the agent CLI gives none."""
    helper: MemberName | None = None
    """The helper that the call is about, or that it happened in; None for the agent itself."""
    helper_type: Line = ""
    teammate: Line | None = None
    team: Line | None = None
    tool: Line = ""
    in_background: bool = False
    """Whether the tool was asked to run in the background."""
    tool_document: Text | None = None
    """Of a finished call that may have run tests, or edited a file, the part of the document that tells, shortened, as JSON."""
    tested: Line = ""
    """The beginning of the command of such a call, if it may have run tests."""
    source: Line = ""
    """How a session started: `startup`, `resume`, `compact`, `clear` and the like."""
    detail: Line = ""
    """Why the session ended or failed, if the agent CLI says so."""
    message: Line = ""
    """The beginning of the agent's last message, if the agent CLI gives it with a stop."""
    again: bool | None = None
    """Of a stop `stop_hook_active`, of a prompt whether it only continues one; None if the agent CLI does not say."""
    tasks: tuple[Task, ...] | None = None
    """All tasks in the background; None if the agent CLI does not say."""
    tasks_unclear: bool = False
    """Whether some of the list could not be understood: then a task that is not in it may still run."""
    wakeups: tuple[Wakeup, ...] | None = None
    """All times at which the agent CLI will go on by itself; None if the agent CLI does not say."""


def parse_call(document: Mapping[str, object]) -> HookCall:
    """Return the call that these fields describe; raise a ValueError that names the wrong field otherwise."""
    try:
        # Not strict, as from JSON: a list is taken for a tuple.
        return HookCall.model_validate(document, strict=False)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None
