"""Read a plan in markdown: boxes with an id are tasks, and one section lists the supporting agents."""

import re
from collections.abc import Iterator

from guard.core.base.first_use import late_pattern
from guard.core.base.markdown import plain_lines
from guard.core.base.taskfile import Box, boxes
from guard.core.base.text import utf8_text
from guard.core.plan.drafts import MOST_NAME, PlanDraft, SupportDraft, TaskDraft, quote_name
from guard.core.plan.task_ids import make_id, normalize_name

_HEADING = late_pattern(r" {0,3}(#{1,6})[ \t]+(.*)")
_TITLE = "supporting agents"
_ITEM = late_pattern(r"([ \t]*)[-*+][ \t]+(.*)")
_FIELDS = {
    "type": "agent_type",
    "domain": "domain",
    "capabilities": "capabilities",
    "tasks": "applicable_tasks",
    "keywords": "keyword_triggers",
    "requests": "request_types",
    "prompt": "creation_prompt",
}
_LISTS = ("capabilities", "applicable_tasks", "keyword_triggers", "request_types")
_COLON = late_pattern(r":(?=[ \t]|$)")
_NUMBER = late_pattern(r"((?:[A-Za-z]{1,8}-?)?[0-9]{1,9}(?:\.[0-9]{1,9}){0,9})\.?+[ \t]")
_KEYS = ("depends", "priority", "touches", "tests")
_DETAILS = late_pattern(
    r"\([ \t]*(?=(?:depends|priority|touches)[ \t]*:|tests[ \t]*:[ \t]*may[ \t])", re.IGNORECASE
)
_PRIORITY = late_pattern(r"[+-]?[0-9]{1,7}")


def read_markdown(text: str) -> PlanDraft:
    draft = PlanDraft()
    # Maps the line of each box to the line of the task that it is, or that it is a step of.
    tasks: dict[int, int] = {}
    for box in boxes(text):
        within = tasks.get(box.parent) if box.parent is not None else None
        name, title = _name_and_title(box.text)
        if name:
            draft.tasks.append(_task(draft, box, name, title, within))
            tasks[box.line] = box.line
        elif within is not None:
            # A box without an id inside a task is a step of that task.
            tasks[box.line] = within
        else:
            draft.complain(
                box.line, f"{quote_name(box.text)} has no id: a task is `- [ ] ID: title`"
            )
    _read_supporting(draft, text)
    return draft


def task_lines(text: str) -> dict[str, int]:
    """Return the line of each task's box, by the task's name; the first line is 1."""
    found: dict[str, int] = {}
    for box in boxes(text):
        name, _title = _name_and_title(box.text)
        if name:
            found.setdefault(name, box.line)
    return found


def _name_and_title(text: str) -> tuple[str, str]:
    # The first colon ends the name; without a colon the name is a number such as `1.1` or `T001`.
    details = _DETAILS.search(text)
    colon = _COLON.search(text, 0, details.start() if details else len(text))
    if colon is not None and colon.start() <= MOST_NAME:
        return normalize_name(text[: colon.start()]), text[colon.end() :].strip()
    number = _NUMBER.match(text)
    return (number[1], text[number.end() :].strip()) if number else ("", text)


def _task(draft: PlanDraft, box: Box, name: str, title: str, within: int | None) -> TaskDraft:
    details: dict[str, str] = {}
    found = list(_DETAILS.finditer(title))
    if found:
        title, details = _details(draft, box.line, title, found[-1])
    depends = [normalize_name(dependency) for dependency in details.get("depends", "").split(",")]
    priority = details.get("priority", "0")
    return TaskDraft(
        line=box.line,
        name=name,
        title=title,
        depends=tuple(dependency for dependency in depends if dependency),
        priority=draft.check_priority(
            box.line, int(priority) if _PRIORITY.fullmatch(priority) else priority
        ),
        ticked=box.done,
        touches=draft.check_touches(box.line, details.get("touches", "").split(",")),
        may_change_tests="tests" in details and draft.check_tests(box.line, details["tests"]),
        within=within,
    )


def _details(
    draft: PlanDraft, line: int, title: str, bracket: re.Match[str]
) -> tuple[str, dict[str, str]]:
    # Only the last bracket of the title holds details.
    if not title.endswith(")"):
        draft.complain(line, "the bracket with depends, priority or touches does not end the line")
        return title, {}
    details: dict[str, str] = {}
    for part in title[bracket.end() : -1].split(";"):
        key, _, value = part.partition(":")
        key = key.strip().casefold()
        if key not in _KEYS or key in details:
            what = "a second" if key in details else f"none of {', '.join(_KEYS)}:"
            draft.complain(line, f"{what} {quote_name(key)} in the bracket")
        details[key] = value.strip()
    return title[: bracket.start()].strip(), details


def _read_supporting(draft: PlanDraft, text: str) -> None:
    # In the section "Supporting agents" each list item is an agent, and each item nested in it a property.
    agent: dict[str, object] = {}
    for number, indent, item in _items(text):
        key, colon, value = (part.strip() for part in item.partition(":"))
        if not indent:
            agent = {
                "agent_id": make_id(normalize_name(key)),
                "name": utf8_text(value) or normalize_name(key),
            }
            draft.supporting.append(SupportDraft(number, agent))
        elif colon and agent:
            _read_property(draft, number, agent, key, value)
        else:
            draft.complain(number, f"{quote_name(item)} is no property of a supporting agent")


def _read_property(
    draft: PlanDraft, line: int, agent: dict[str, object], key: str, value: str
) -> None:
    word = key.casefold().replace(" ", "_")
    field = _FIELDS.get(word, word)
    if field not in _FIELDS.values():
        known = ", ".join(_FIELDS)
        draft.complain(line, f"{quote_name(key)} is no property of a supporting agent ({known})")
    elif field in agent:
        draft.complain(line, f"a second {quote_name(key)} of one supporting agent")
    elif field in _LISTS:
        parts = (normalize_name(part) for part in utf8_text(value).split(","))
        agent[field] = tuple(part for part in parts if part)
    else:
        agent[field] = utf8_text(value)


def _items(text: str) -> Iterator[tuple[int, bool, str]]:
    # Each list item of the section without a box: its line, whether it is nested, its text.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    level = 0
    for number, (line, counts) in enumerate(zip(lines, plain_lines(lines), strict=True), 1):
        heading = _HEADING.fullmatch(line) if counts else None
        if heading:
            depth = len(heading[1])
            title = heading[2].strip().rstrip("#").strip(" \t:").casefold()
            level = depth if title == _TITLE else 0 if depth <= level else level
            continue
        item = _ITEM.fullmatch(line) if counts and level else None
        if item and not item[2].startswith("["):
            yield number, bool(item[1]), item[2].strip()
