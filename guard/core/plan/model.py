"""What a plan is made of. The order of its tasks is that of the document."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Frozen, Id, Line, Text

SupportKind = Literal[
    "domain_expert", "advisor", "task_executor", "quality_reviewer", "pattern_specialist"
]
RequestType = Literal["task", "advice", "review"]
Priority = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]


class PlanTask(Frozen):
    """One task of the plan."""

    id: Id
    name: Line
    """How the plan spells the id: it may have dots and spaces there."""
    title: Line
    depends: tuple[Id, ...] = ()
    priority: Priority = 0
    """The higher, the sooner."""
    ticked: bool = False
    """Whether its box was ticked in the document; only an audit completes a task."""
    touches: tuple[Line, ...] = ()
    """Which files it changes, as globs; tasks with common files are not worked on at once."""
    may_change_tests: bool = False
    """Whether changes of tests in it need no review."""


class SupportingAgent(Frozen):
    """An agent that others may ask for help, as the plan describes it."""

    agent_id: Id
    agent_type: SupportKind
    name: Line
    domain: Line = ""
    capabilities: tuple[Line, ...] = ()
    applicable_tasks: tuple[Id, ...] = ()
    keyword_triggers: tuple[Line, ...] = ()
    request_types: tuple[RequestType, ...] = ("task", "advice", "review")
    creation_prompt: Text = ""


class Plan(Frozen):
    """A plan that holds together: ids are unique, dependencies are known, none goes in a circle."""

    tasks: tuple[PlanTask, ...]
    supporting_agents: tuple[SupportingAgent, ...] = ()
