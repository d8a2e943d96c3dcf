"""The fields that stand under a signal: `Name: value`, with values that go on in list items or indented lines."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Confidence = Literal["HIGH", "MEDIUM", "LOW"]
_MOST_VALUES = 100
_MOST_VALUE = 4096
_NAME = re.compile(r"([A-Za-z][A-Za-z ]{0,40}):(?:[ \t]+(.*))?")
_ITEM = re.compile(r"[ \t]{0,3}(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(.*)")
_LISTED = re.compile(r"[ \t]*,[ \t]*")

_TASK = {"task": "task", "task id": "task"}
_WHY = {"reason": "text", "summary": "text", "evidence": "text", "issue": "text", "issues": "text"}
_FILES = {"files": "file", "files affected": "file", "files modified": "file"}
_ASKED = {"question": "question", "questions": "question", "clarification questions": "question"}
_SURE = {"confidence": "confidence"}

FIELDS: Mapping[str, Mapping[str, str]] = {
    "agent_complete": {**_TASK, **_WHY, **_FILES, **_SURE, "deliverables": "text"},
    "out_of_scope": {
        **_TASK,
        **_WHY,
        "suggested alternative": "alternative",
        "suggested agent": "alternative",
        "alternative": "alternative",
    },
    "seeking_clarification": {**_TASK, **_ASKED, "context": "text"},
    "ready_for_audit": {**_WHY, **_FILES},
    "audit_pass": {**_WHY, **_FILES},
    "audit_fail": {**_WHY, **_FILES},
    "audit_blocked": {**_WHY, **_FILES},
    "healthy": _WHY,
    "unhealthy": _WHY,
    "checkpoint": _TASK,
    "expansion": {**_SURE, **_ASKED, "specification": "text"},
    "rollback_required": {**_WHY, **_FILES, "commit": "commit"},
}
"""For each kind of signal the names of its fields, in small letters, and what they stand for."""


@dataclass(slots=True)
class SignalFields:
    """The fields of one signal."""

    values: dict[str, list[str]] = field(default_factory=dict)

    def all(self, name: str) -> tuple[str, ...]:
        """The values that are not empty."""
        return tuple(value for value in self.values.get(name, ()) if value)

    def one(self, name: str) -> str:
        """The first value, or nothing."""
        return next(iter(self.all(name)), "")

    def confidence(self) -> Confidence | None:
        """None unless it is one of the three words."""
        word = self.one("confidence")
        known: tuple[Confidence, ...] = ("HIGH", "MEDIUM", "LOW")
        return next((one for one in known if one == word.upper()), None)

    def add(self, name: str, value: str) -> None:
        """One more value; file names stand beside each other."""
        values = self.values.setdefault(name, [])
        parts = _LISTED.split(value[:_MOST_VALUE]) if name == "file" else [value[:_MOST_VALUE]]
        values.extend(parts[: _MOST_VALUES - len(values)])

    def go_on(self, name: str, text: str) -> None:
        """The last value goes on in another line."""
        values = self.values[name]
        if values:
            values[-1] = f"{values[-1]} {text}".strip()[:_MOST_VALUE]


def read_block(names: Mapping[str, str], lines: Iterable[str]) -> SignalFields:
    """The fields at the beginning of these lines, up to the first line that is neither one nor part of one."""
    block = SignalFields()
    current = ""
    after_blank = False
    for line in lines:
        text = line.strip()
        name = _NAME.fullmatch(line.rstrip())
        item = _ITEM.fullmatch(line.rstrip())
        if not text:
            after_blank = True
            continue
        if name and name[1].casefold() in names:
            current = names[name[1].casefold()]
            block.add(current, (name[2] or "").strip())
        elif current and item:
            block.add(current, item[1].strip())
        elif current and not after_blank and line[0] in " \t":
            block.go_on(current, text)
        else:
            break
        after_blank = False
    return block
