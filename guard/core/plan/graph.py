"""The plan as a graph, for Mermaid and for Graphviz. An arrow leads from a task to those that wait for it.

Titles are written by anybody: whatever could end a label, begin another statement or be taken for markup is spelled as a code.
"""

import re
from collections.abc import Mapping

from guard.core.base.text import visible
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
_MERMAID_UNSAFE = re.compile(r"[^\w .,:/+()?!=-]|_|--+|\.\.+|==+")
_SPACE = re.compile(r"\s+")


def mermaid(plan: Plan, marks: Mapping[str, str]) -> str:
    """A flowchart. A mark says where a task stands; it is shown behind its title."""
    nodes = {task.id: f"t{number}" for number, task in enumerate(plan.tasks)}
    lines = ["flowchart TD"]
    for task in plan.tasks:
        label = _MERMAID_UNSAFE.sub(_codes, _label(task, marks.get(task.id)))
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


def _codes(found: re.Match[str]) -> str:
    return "".join(f"#{ord(sign)};" for sign in found[0])


def dot(plan: Plan, marks: Mapping[str, str]) -> str:
    """A directed graph in the language of Graphviz, with ids as names of the nodes."""
    lines = ["digraph plan {", "    node [shape=box, style=filled, fillcolor=white];"]
    for task in plan.tasks:
        mark = marks.get(task.id)
        colour = _COLOURS.get(mark or "")
        fill = f', fillcolor="{colour}"' if colour else ""
        lines.append(f'    "{task.id}" [label="{_escaped(_label(task, mark))}"{fill}];')
    lines += [f'    "{needed}" -> "{task.id}";' for task in plan.tasks for needed in task.depends]
    return "\n".join([*lines, "}"]) + "\n"


def _escaped(label: str) -> str:
    """Graphviz takes a backslash for the beginning of an escape, and an ampersand for that of an entity."""
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")


def _label(task: PlanTask, mark: str | None) -> str:
    """One line of bounded length."""
    title = task.name if task.title == task.name else f"{task.name}: {task.title}"
    line = visible(_SPACE.sub(" ", title))
    short = line if len(line) <= _MOST_LABEL else f"{line[: _MOST_LABEL - 1]}…"
    return f"{short} ({visible(_SPACE.sub(' ', mark))})" if mark else short
