"""Draw the plan as a graph for Mermaid and Graphviz."""

import re
from collections.abc import Mapping

from guard.core.base.first_use import late_pattern
from guard.core.base.text import escape
from guard.core.plan.model import Plan, PlanTask

_MOST_LABEL = 100
_COLOURS = {
    "completed": "#c8e6c9",
    "in_progress": "#bbdefb",
    "pending_audit": "#ffe0b2",
    "pending_expansion": "#e1bee7",
    "available": "#ffffff",
    "blocked": "#eeeeee",
}
# Titles come from outside: a character that could end a label, begin another statement or act as markup becomes a code.
_MERMAID_UNSAFE = late_pattern(r"[^\w .,:/+()?!=-]|_|--+|\.\.+|==+")
_SPACE = late_pattern(r"\s+")


def mermaid(plan: Plan, marks: Mapping[str, str]) -> str:
    """Return a flowchart with an arrow from each task to those that wait for it; `marks` are the tasks' statuses."""
    nodes = {task.id: f"t{number}" for number, task in enumerate(plan.tasks)}
    lines = ["flowchart TD"]
    for task in plan.tasks:
        label = _MERMAID_UNSAFE.sub(_escape_mermaid, _label(task, marks.get(task.id)))
        lines.append(f'    {nodes[task.id]}["{label}"]')
    lines += [
        f"    {nodes[needed]} --> {nodes[task.id]}"
        for task in plan.tasks
        for needed in task.depends
    ]
    for mark, colour in _COLOURS.items():
        marked = [nodes[task.id] for task in plan.tasks if marks.get(task.id) == mark]
        if marked:
            lines.append(f"    classDef {mark} fill:{colour},color:#000000")
            lines.append(f"    class {','.join(marked)} {mark}")
    return "\n".join(lines) + "\n"


def _escape_mermaid(found: re.Match[str]) -> str:
    return "".join(f"#{ord(sign)};" for sign in found[0])


def dot(plan: Plan, marks: Mapping[str, str]) -> str:
    lines = ["digraph plan {", "    node [shape=box, style=filled, fillcolor=white];"]
    for task in plan.tasks:
        mark = marks.get(task.id)
        colour = _COLOURS.get(mark or "")
        fill = f', fillcolor="{colour}"' if colour else ""
        lines.append(f'    "{task.id}" [label="{_escape_dot(_label(task, mark))}"{fill}];')
    lines += [f'    "{needed}" -> "{task.id}";' for task in plan.tasks for needed in task.depends]
    return "\n".join([*lines, "}"]) + "\n"


def _escape_dot(label: str) -> str:
    # In Graphviz a backslash begins an escape, and an ampersand an entity.
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")


def _label(task: PlanTask, mark: str | None) -> str:
    title = task.name if task.title == task.name else f"{task.name}: {task.title}"
    line = escape(_SPACE.sub(" ", title))
    short = line if len(line) <= _MOST_LABEL else f"{line[: _MOST_LABEL - 1]}…"
    return f"{short} ({escape(_SPACE.sub(' ', mark))})" if mark else short
