"""A plan in markdown: every box with an id is a task."""

import re

from guard.core.base.taskfile import Box, boxes
from guard.core.plan.drafts import PlanDraft, TaskDraft, quoted
from guard.core.plan.supporting_agents import read_supporting
from guard.core.plan.task_ids import spelled

_MOST_NAME = 128
_MOST_PRIORITY = 1_000_000
_COLON = re.compile(r":(?=[ \t]|$)")
_NUMBER = re.compile(r"((?:[A-Za-z]{1,8}-?)?[0-9]{1,9}(?:\.[0-9]{1,9}){0,9})\.?+[ \t]")
_DETAILS = re.compile(r"\([ \t]*(?=(?:depends|priority)[ \t]*:)", re.IGNORECASE)
_PRIORITY = re.compile(r"[+-]?[0-9]{1,7}")


def read_markdown(text: str) -> PlanDraft:
    """The draft of a plan. A box without an id inside of a task is a step of it, and no task of its own."""
    draft = PlanDraft()
    tasks: dict[int, int] = {}
    """For the line of each box that of the task which it is, or is a step of."""
    for box in boxes(text):
        within = tasks.get(box.parent) if box.parent is not None else None
        name, title = _name_and_title(box.text)
        if name:
            draft.tasks.append(_task(draft, box, name, title, within))
            tasks[box.line] = box.line
        elif within is not None:
            tasks[box.line] = within
        else:
            draft.complain(box.line, f"{quoted(box.text)} has no id: a task is `- [ ] ID: title`")
    read_supporting(draft, text)
    return draft


def _name_and_title(text: str) -> tuple[str, str]:
    """What stands before the first colon, or a number such as `1.1` or `T001` if there is none."""
    details = _DETAILS.search(text)
    colon = _COLON.search(text, 0, details.start() if details else len(text))
    if colon is not None and colon.start() <= _MOST_NAME:
        return spelled(text[: colon.start()]), text[colon.end() :].strip()
    number = _NUMBER.match(text)
    return (number[1], text[number.end() :].strip()) if number else ("", text)


def _task(draft: PlanDraft, box: Box, name: str, title: str, within: int | None) -> TaskDraft:
    details: dict[str, str] = {}
    found = list(_DETAILS.finditer(title))
    if found:
        title, details = _details(draft, box.line, title, found[-1])
    depends = [spelled(one) for one in details.get("depends", "").split(",")]
    return TaskDraft(
        line=box.line,
        name=name,
        title=title,
        depends=tuple(one for one in depends if one),
        priority=_priority(draft, box.line, details.get("priority", "0")),
        ticked=box.done,
        within=within,
    )


def _details(
    draft: PlanDraft, line: int, title: str, bracket: re.Match[str]
) -> tuple[str, dict[str, str]]:
    """The title without its last bracket, and what stands in that. A dependency is never overlooked silently."""
    if not title.endswith(")"):
        draft.complain(line, "the bracket with depends or priority does not end the line")
        return title, {}
    details: dict[str, str] = {}
    for part in title[bracket.end() : -1].split(";"):
        key, _, value = part.partition(":")
        key = key.strip().casefold()
        if key not in ("depends", "priority") or key in details:
            what = "a second" if key in details else "neither depends nor priority:"
            draft.complain(line, f"{what} {quoted(key)} in the bracket")
        details[key] = value.strip()
    return title[: bracket.start()].strip(), details


def _priority(draft: PlanDraft, line: int, text: str) -> int:
    if _PRIORITY.fullmatch(text) and abs(int(text)) <= _MOST_PRIORITY:
        return int(text)
    bounds = f"a whole number from -{_MOST_PRIORITY} to {_MOST_PRIORITY}"
    draft.complain(line, f"the priority {quoted(text)} is not {bounds}")
    return 0
