"""The plan as a graph."""

from collections.abc import Sequence

from guard.core.plan.model import PlanTask


def mermaid(tasks: Sequence[PlanTask]) -> str:
    """The graph for mermaid."""
    return "\n".join(
        ["graph TD", *(f"  {one} --> {task.id}" for task in tasks for one in task.depends)]
    )


def dot(tasks: Sequence[PlanTask]) -> str:
    """The graph for Graphviz."""
    lines = [f'  "{one}" -> "{task.id}";' for task in tasks for one in task.depends]
    return "\n".join(["digraph plan {", *lines, "}"])
