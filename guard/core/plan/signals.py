"""Read the signals in an agent's output; `docs/reference/signals.md` has the grammar."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal

from guard.core.base.first_use import dataclass, late_pattern
from guard.core.base.markdown import EVERYWHERE, marked_lines, plain_lines

Confidence = Literal["HIGH", "MEDIUM", "LOW"]
_MOST_VALUES = 100
_MOST_VALUE = 4096
_NAME = late_pattern(r"([A-Za-z][A-Za-z ]{0,40}):(?:[ \t]+(.*))?")
_ITEM = late_pattern(r"[ \t]{0,3}(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(.*)")
_LISTED = late_pattern(r"[ \t]*,[ \t]*")
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
"""For each kind of signal: its field names in lower case, and the attribute that each one fills."""
MOST_CHARACTERS = 8 * 1024 * 1024
MOST_LINES = 200_000
MOST_SIGNALS = 1000
_MOST_TASK = 512
_MOST_TEXT = 65536

SignalKind = Literal[
    "agent_complete",
    "out_of_scope",
    "seeking_clarification",
    "ready_for_audit",
    "audit_pass",
    "audit_fail",
    "audit_blocked",
    "healthy",
    "unhealthy",
    "checkpoint",
    "expansion",
    "rollback_required",
]
_KINDS: dict[str, SignalKind] = {
    "AGENT COMPLETE": "agent_complete",
    "OUT_OF_SCOPE": "out_of_scope",
    "SEEKING DIVINE CLARIFICATION": "seeking_clarification",
    "READY FOR AUDIT": "ready_for_audit",
    "AUDIT PASS": "audit_pass",
    "AUDIT FAIL": "audit_fail",
    "AUDIT BLOCKED": "audit_blocked",
    "HEALTH: HEALTHY": "healthy",
    "HEALTH: UNHEALTHY": "unhealthy",
    "CHECKPOINT": "checkpoint",
    "EXPANSION COMPLETE": "expansion",
    "ROLLBACK REQUIRED": "rollback_required",
}
_NAMES_TASK = (
    "ready_for_audit",
    "audit_pass",
    "audit_fail",
    "audit_blocked",
    "expansion",
    "rollback_required",
)
_BEGIN = "|".join(re.escape(words) for words in _KINDS)
_SIGNAL = late_pattern(rf"({_BEGIN})(?:(?::| -)(?:[ \t]+(.*))?)?")
_ANY = late_pattern(rf"^(?:{_BEGIN})", re.MULTILINE)
_SPAN = late_pattern(r"`++|<!--|-->")


@dataclass(frozen=True)
class AgentSignal:
    """One signal; fields that its kind does not have stay empty."""

    kind: SignalKind
    line: int
    """Counted from 1."""
    task: str = ""
    """In the agent's spelling."""
    text: str = ""
    """The summary, the reason, the evidence, the checkpoint or the specification."""
    confidence: Confidence | None = None
    alternative: str = ""
    """The agent that the signal suggests for a request out of scope."""
    questions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    commit: str = ""


@dataclass
class SignalFields:
    values: dict[str, list[str]] = field(default_factory=dict)

    def values_of(self, name: str) -> tuple[str, ...]:
        return tuple(value for value in self.values.get(name, ()) if value)

    def first(self, name: str) -> str:
        return next(iter(self.values_of(name)), "")

    def confidence(self) -> Confidence | None:
        word = self.first("confidence")
        known: tuple[Confidence, ...] = ("HIGH", "MEDIUM", "LOW")
        return next((level for level in known if level == word.upper()), None)

    def add(self, name: str, value: str) -> None:
        # Only a list of files has commas between its values.
        values = self.values.setdefault(name, [])
        parts = _LISTED.split(value[:_MOST_VALUE]) if name == "file" else [value[:_MOST_VALUE]]
        values.extend(parts[: _MOST_VALUES - len(values)])

    def extend_last(self, name: str, text: str) -> None:
        values = self.values[name]
        if values:
            values[-1] = f"{values[-1]} {text}".strip()[:_MOST_VALUE]


def read_signals(text: str) -> tuple[AgentSignal, ...]:
    """Return the last MOST_SIGNALS signals of a text, in the order of their lines.

    A signal begins in the first column of its own line. It does not count in fenced or indented code, in a quotation, in a
    code span or comment over several lines, in a block of HTML, or where markdown leaves doubt about that.
    """
    # Only the end of a long text is read for signals; from the part before it only lines that may begin or end a fence or a
    # block. If there are too many of those, a signal counts only if it would count with and without an open fence at the cut.
    tail = text[-MOST_CHARACTERS:]
    if _ANY.search(tail) is None:
        return ()
    lines = tail.rsplit("\n", MOST_LINES)
    before = 0
    if len(tail) < len(text) or len(lines) > MOST_LINES:
        before = len(text) - sum(map(len, lines[1:])) - len(lines) + 1
        lines[0] = ""
    marked = marked_lines(text, before, MOST_LINES) if before else []
    read = [*(marked or ()), "", *lines]
    outside = _outside_code(read, is_sure=marked is not None)
    first = text.count("\n") + 2 - len(read)
    starts = (
        place for place in _signal_starts(read, outside) if place > len(read) - len(lines) - 1
    )
    found = (_read_signal(read, outside, place, first) for place in deque(starts, MOST_SIGNALS))
    return tuple(signal for signal in found if signal is not None)


def _outside_code(lines: Sequence[str], *, is_sure: bool) -> bytearray:
    # An indented fence may be a fence, code, or part of a list; a line counts only if it is outside code in each reading.
    views = [plain_lines(lines, up_to=indent) for indent in (0, 3, EVERYWHERE)]
    if not is_sure:
        views += [plain_lines(lines, up_to=indent, fenced=True) for indent in (0, 3, EVERYWHERE)]
    outside = bytearray(map(min, *views))
    is_quoted = False
    for place, line in enumerate(lines):
        # A line directly under a quotation is part of it, even without `>`.
        is_quoted = bool(line.strip()) and (is_quoted or line.lstrip().startswith(">"))
        if is_quoted:
            outside[place] = 0
    return outside


def _signal_starts(lines: Sequence[str], outside: bytearray) -> Iterator[int]:
    spanned: set[int] = set()
    end = 0
    for place, line in enumerate(lines):
        if not outside[place] or not _SIGNAL.fullmatch(line.rstrip()):
            continue
        if place >= end:
            begin = place
            while begin > end and lines[begin - 1].strip():
                begin -= 1
            end = place
            while end < len(lines) and lines[end].strip():
                end += 1
            spanned = _inside_spans(lines[begin:end], begin)
        if place not in spanned:
            yield place


def _inside_spans(paragraph: Sequence[str], begin: int) -> set[int]:
    # The numbers of the lines that begin inside a code span or a comment.
    text = "\n".join(paragraph)
    marks = list(_SPAN.finditer(text))
    next_end: dict[str, int] = {}
    ends: list[int | None] = [None] * len(marks)
    for number in range(len(marks) - 1, -1, -1):
        mark = marks[number][0]
        ends[number] = next_end.get("-->" if mark == "<!--" else mark)
        next_end[mark] = number
    found: set[int] = set()
    number = counted = line = 0
    while number < len(marks):
        end = ends[number] if marks[number][0] != "-->" else None
        if end is not None:
            first = line + text.count("\n", counted, marks[number].start())
            line = first + text.count("\n", marks[number].start(), marks[end].start())
            counted = marks[end].start()
            found.update(range(begin + first + 1, begin + line + 1))
        number = number + 1 if end is None else end + 1
    return found


def _read_signal(
    lines: Sequence[str], outside: bytearray, place: int, first: int
) -> AgentSignal | None:
    # None if the signal lacks a required field.
    match = _SIGNAL.fullmatch(lines[place].rstrip())
    assert match is not None
    kind, rest = _KINDS[match[1]], (match[2] or "").strip()
    following = _lines_below(lines, outside, place)
    block = _read_fields(FIELDS[kind], following)
    signal = _build_signal(kind, first + place, rest, block)
    lacks = (kind == "expansion" and signal.confidence is None) or (
        kind in ("checkpoint", "rollback_required") and not (signal.text or signal.task)
    )
    return None if lacks else signal


def _lines_below(lines: Sequence[str], outside: bytearray, place: int) -> Iterator[str]:
    for at in range(place + 1, len(lines)):
        if not outside[at] or _SIGNAL.fullmatch(lines[at].rstrip()):
            return
        yield lines[at]


def _build_signal(kind: SignalKind, line: int, rest: str, block: SignalFields) -> AgentSignal:
    asks = kind == "seeking_clarification"
    task = block.first("task")
    if kind in _NAMES_TASK and rest:
        task, _, rest = rest.partition(" - ")
    own = (rest.strip()[:_MOST_TEXT],) if rest.strip() else ()
    return AgentSignal(
        kind=kind,
        line=line,
        task=task.strip()[:_MOST_TASK],
        text="\n".join((*(() if asks else own), *block.values_of("text")))[:_MOST_TEXT],
        confidence=block.confidence(),
        alternative=block.first("alternative"),
        questions=(*(own if asks else ()), *block.values_of("question")),
        files=block.values_of("file"),
        commit=block.first("commit"),
    )


def _read_fields(names: Mapping[str, str], lines: Iterable[str]) -> SignalFields:
    # The fields end at the first line that is not part of one.
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
            block.extend_last(current, text)
        else:
            break
        after_blank = False
    return block
