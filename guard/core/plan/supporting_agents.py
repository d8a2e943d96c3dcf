"""The section "Supporting agents" of a plan in markdown: a list item per agent, and in it one per property."""

import re
from collections.abc import Iterator

from guard.core.base.markdown import plain
from guard.core.base.text import valid
from guard.core.plan.drafts import PlanDraft, SupportDraft, quoted
from guard.core.plan.task_ids import id_of, spelled

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_TITLE = "supporting agents"
_ITEM = re.compile(r"([ \t]*)[-*+][ \t]+(.*)")
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


def read_supporting(draft: PlanDraft, text: str) -> None:
    """Add the supporting agents of a markdown text to the draft."""
    agent: dict[str, object] = {}
    for number, indent, item in _items(text):
        key, colon, value = (part.strip() for part in item.partition(":"))
        if not indent:
            agent = {"agent_id": id_of(spelled(key)), "name": valid(value) or spelled(key)}
            draft.supporting.append(SupportDraft(number, agent))
        elif colon and agent:
            _read_property(draft, number, agent, key, value)
        else:
            draft.complain(number, f"{quoted(item)} is no property of a supporting agent")


def _read_property(
    draft: PlanDraft, line: int, agent: dict[str, object], key: str, value: str
) -> None:
    word = key.casefold().replace(" ", "_")
    field = _FIELDS.get(word, word)
    if field not in _FIELDS.values():
        known = ", ".join(_FIELDS)
        draft.complain(line, f"{quoted(key)} is no property of a supporting agent ({known})")
    elif field in agent:
        draft.complain(line, f"a second {quoted(key)} of one supporting agent")
    elif field in _LISTS:
        parts = (spelled(one) for one in valid(value).split(","))
        agent[field] = tuple(one for one in parts if one)
    else:
        agent[field] = valid(value)


def _items(text: str) -> Iterator[tuple[int, bool, str]]:
    """Each list item of the section without a box: its line, whether it is nested, its text."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    level = 0
    for number, (line, counts) in enumerate(zip(lines, plain(lines), strict=True), 1):
        heading = _HEADING.fullmatch(line) if counts else None
        if heading:
            depth = len(heading[1])
            title = heading[2].strip().rstrip("#").strip(" \t:").casefold()
            level = depth if title == _TITLE else 0 if depth <= level else level
            continue
        item = _ITEM.fullmatch(line) if counts and level else None
        if item and not item[2].startswith("["):
            yield number, bool(item[1]), item[2].strip()
