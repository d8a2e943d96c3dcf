"""Read a plan in JSON: `{"tasks": [{"id", "title", "depends", "priority"}], "supporting_agents": [...]}`."""

import re
from collections.abc import Iterator, Mapping
from json import JSONDecodeError
from typing import Any

from guard.core.base.first_use import late_pattern
from guard.core.base.json_text import loads
from guard.core.plan.drafts import MOST_NAME, PlanDraft, SupportDraft, TaskDraft, quote_name
from guard.core.plan.model import SupportingAgent
from guard.core.plan.task_ids import make_id, normalize_name

_TOKEN = late_pattern(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_SPACE = late_pattern(r"[ \t\r\n]*+")
_ROOT = ("tasks", "supporting_agents")
_TASK = ("id", "title", "depends", "priority", "ticked", "touches", "tests")
_NO_FIELD = ("created_at",)
"""Fields to ignore: the user may have copied the list of agents from the coordinator's state file."""


def read_json(text: str, *, counts_lines: bool = True) -> PlanDraft:
    """Read a plan; without counting lines, which takes long and serves complaints alone, each element has a number instead."""
    draft = PlanDraft()
    try:
        document = loads(text.encode())
    except JSONDecodeError as error:
        draft.complain(error.lineno, f"no JSON: {error.msg}")
        return draft
    except (ValueError, RecursionError) as error:
        draft.complain(0, f"no JSON that can be used: {error}")
        return draft
    if not isinstance(document, dict):
        draft.complain(1, 'the document is no object with a list "tasks"')
        return draft
    for key in document.keys() - set(_ROOT):
        draft.complain(0, f"the key {quote_name(key)} is not known (known: {', '.join(_ROOT)})")
    lines = _lines_of_elements(text) if counts_lines else {}
    for key, read in (("tasks", _read_task), ("supporting_agents", _read_agent)):
        for at, element in enumerate(_list(draft, document, key)):
            line = lines[key, at] if counts_lines else at + 1
            if isinstance(element, dict):
                read(draft, line, element)
            else:
                draft.complain(line, f'an element of "{key}" is no object')
    return draft


def _list(draft: PlanDraft, document: Mapping[str, Any], key: str) -> list[Any]:
    found = document.get(key, [])
    if isinstance(found, list):
        return found
    draft.complain(0, f'"{key}" is no list')
    return []


def _read_task(draft: PlanDraft, line: int, task: Mapping[str, Any]) -> None:
    for key in task.keys() - set(_TASK):
        draft.complain(line, f"the key {quote_name(key)} is not known (known: {', '.join(_TASK)})")
    name = task.get("id")
    if not isinstance(name, str) or not normalize_name(name) or len(name) > MOST_NAME:
        draft.complain(line, f'a task has no "id": a text of 1 to {MOST_NAME} characters')
        return
    title = task.get("title", "")
    if not isinstance(title, str):
        draft.complain(line, f"the title of {quote_name(name)} is no text")
        title = ""
    ticked = task.get("ticked", False)
    if not isinstance(ticked, bool):
        draft.complain(line, f'"ticked" of {quote_name(name)} is neither true nor false')
    draft.tasks.append(
        TaskDraft(
            line=line,
            name=normalize_name(name),
            title=" ".join(title.split()),
            depends=tuple(map(normalize_name, _texts(draft, line, task, "depends"))),
            priority=draft.check_priority(line, task.get("priority", 0)),
            ticked=ticked is True,
            touches=draft.check_touches(line, _texts(draft, line, task, "touches")),
            may_change_tests="tests" in task and draft.check_tests(line, task["tests"]),
        )
    )


def _texts(draft: PlanDraft, line: int, task: Mapping[str, Any], key: str) -> tuple[str, ...]:
    texts = task.get(key, [])
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        return tuple(texts)
    draft.complain(line, f'"{key}" of {quote_name(str(task["id"]))} is no list of texts')
    return ()


def _read_agent(draft: PlanDraft, line: int, agent: Mapping[str, Any]) -> None:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in agent.items()
        if key not in _NO_FIELD
    }
    unknown = fields.keys() - SupportingAgent.model_fields.keys()
    for key in unknown:
        draft.complain(line, f"{quote_name(key)} is no property of a supporting agent")
        del fields[key]
    name = fields.get("agent_id")
    if isinstance(name, str) and normalize_name(name):
        fields["agent_id"] = make_id(normalize_name(name))
        fields.setdefault("name", normalize_name(name))
    if not isinstance(fields.get("applicable_tasks", ()), tuple):
        draft.complain(line, '"applicable_tasks" of a supporting agent is no list')
        del fields["applicable_tasks"]
    draft.supporting.append(SupportDraft(line, fields))


def _lines_of_elements(text: str) -> dict[tuple[str, int], int]:
    # The line where each element of a list in the outermost object begins, by key and number.
    lines: dict[tuple[str, int], int] = {}
    line, counted = 1, 0
    for key, at, place in _elements(text):
        line += text.count("\n", counted, place)
        counted = place
        lines[key, at] = line
    return lines


def _elements(text: str) -> Iterator[tuple[str, int, int]]:
    # For each element of a list in the outermost object: its key, its number, and the offset where it begins.
    key, depth, at = "", 0, 0
    for token in _TOKEN.finditer(text):
        sign = token[0][0]
        if sign == '"':
            key = token[0] if depth == 1 else key
            continue
        depth += (sign in "[{") - (sign in "]}")
        if depth != 2 or sign not in "[,":
            continue
        at = at + 1 if sign == "," else 0
        begin = _SPACE.match(text, token.end())
        yield key.strip('"'), at, begin.end() if begin else token.end()
