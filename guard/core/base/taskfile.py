"""Find the boxes of a task file: the task list items of a markdown text, as GitHub shows them."""

import re
from bisect import bisect_right

from guard.core.base.first_use import dataclass, late_pattern

_MOST_DEPTH = 100
_TAB = 4
_CODE_INDENT = 4
_MARKER = late_pattern(r"(?:[-*+]|([0-9]{1,9})[.)])(?=[ \t]|$)")
_BOX = late_pattern(r"\[([ \txX])\][ \t]+(?=\S)")
_FENCE = late_pattern(r"`{3,}+(?![^`]*`)|~{3,}+")
_HTML = late_pattern(r"<(?:!--|(?:pre|script|style|textarea)(?=[\s>]|$))", re.IGNORECASE)
_COMMENT_END = late_pattern("-->")
_HTML_END = late_pattern(r"</(?:pre|script|style|textarea)>", re.IGNORECASE)
_HEADING = late_pattern(r"(#{1,6})(?=[ \t]|$)")
_OPTIONAL = late_pattern(r"(?<![^\W_])(?<!-)(?<!not )optional(?![^\W_])", re.IGNORECASE)


@dataclass(frozen=True)
class Box:
    """One task list item."""

    line: int
    """Counted from 1."""
    text: str
    done: bool
    optional: bool
    mark: int
    """The offset in the line of the character between the brackets."""
    parent: int | None
    """The line of the box around this one."""


@dataclass(frozen=True)
class _Verbatim:
    """Lines without markup (a fence or raw HTML), up to their end or to the end of their list item."""

    end: re.Pattern[str]
    column: int
    """The column where the list item begins; 0 outside a list."""
    is_fence: bool = False

    def ends_before(self, text: str, column: int) -> bool:
        return bool(text) and column < self.column

    def ends_with(self, text: str, column: int) -> bool:
        # A fence ends with a fence on its own line; HTML ends anywhere in a line.
        if self.is_fence:
            return column - self.column < _CODE_INDENT and bool(self.end.fullmatch(text))
        return bool(self.end.search(text))


def open_boxes(markdown: str) -> tuple[Box, ...]:
    return tuple(box for box in boxes(markdown) if not box.done and not box.optional)


# A line counts if markdown makes it a list item: not in fenced or indented code, an HTML comment, a `<pre>`, front matter, a
# table or a quotation. Boxes under a heading with the word "Optional" are optional, until the next heading of the same or a
# higher level. The scan is one pass over the lines, whatever they contain.
def boxes(markdown: str) -> tuple[Box, ...]:
    lines = markdown.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    scanner = _Scanner()
    first = _after_front_matter(lines)
    for number, line in enumerate(lines[first:], first + 1):
        scanner.read(line, number)
    return tuple(scanner.found)


def _after_front_matter(lines: list[str]) -> int:
    # A file may begin with YAML or TOML.
    opening = lines[0].rstrip()
    if opening not in ("---", "+++"):
        return 0
    closings = ("---", "...") if opening == "---" else ("+++",)
    ends = (at for at, line in enumerate(lines[1:], 1) if line.rstrip() in closings)
    return next(ends, -1) + 1


class _Scanner:
    """Reads line by line, and knows the open list items, paragraph, fence, raw HTML and optional section."""

    def __init__(self) -> None:
        self.found: list[Box] = []
        self._items: list[int] = []
        """The columns where the contents of the open list items begin."""
        self._boxes: list[int | None] = []
        """For each open list item, the line of the innermost box around its contents."""
        self._paragraph = False
        self._paragraph_is_optional = False
        self._began_empty = False
        self._verbatim: _Verbatim | None = None
        self._optional_level: int | None = None

    def read(self, line: str, number: int) -> None:
        text = line.strip(" \t")
        at = len(line) - len(line.lstrip(" \t"))
        column = _columns(line, at)
        if self._is_verbatim(text, column):
            return
        if text:
            self._began_empty = False
            self._read_block(line, at, column, number)
            return
        self._paragraph = False
        if self._began_empty:
            self._items.pop()
            self._began_empty = False

    def _is_verbatim(self, text: str, column: int) -> bool:
        verbatim = self._verbatim
        if verbatim is None:
            return False
        if verbatim.ends_before(text, column):
            self._verbatim = None
            return False
        if verbatim.ends_with(text, column):
            self._verbatim = None
        return True

    def _read_block(self, line: str, at: int, column: int, number: int) -> None:
        # Each round takes one list marker off the line.
        for _ in range(_MOST_DEPTH):
            if self._continues_paragraph(line, at, column):
                return
            left = self._leave_items(column)
            base = self._items[-1] if self._items else 0
            if column - base >= _CODE_INDENT:
                return
            marker = self._marker(line, at, continues=self._paragraph and not left)
            if marker is None:
                self._read_text(line[at:].rstrip(" \t"), base)
                return
            self._paragraph = False
            at, column = self._enter_item(line, at, column, marker)
            self._began_empty = at >= len(line)
            if self._began_empty or column - self._items[-1] >= _CODE_INDENT:
                return
            box = _BOX.match(line, at)
            if box:
                self._add(box, line, number)
                return
        self._paragraph = True

    def _continues_paragraph(self, line: str, at: int, column: int) -> bool:
        # A line may continue a paragraph of a list item without its indent.
        if not self._paragraph or not self._items or column >= self._items[-1]:
            return False
        outer = bisect_right(self._items, column)
        base = self._items[outer - 1] if outer else 0
        return column - base >= _CODE_INDENT or not self._begins_block(line, at)

    def _begins_block(self, line: str, at: int) -> bool:
        begins = (_MARKER, _FENCE, _HTML, _HEADING)
        return (
            line[at] == ">"
            or any(pattern.match(line, at) for pattern in begins)
            or _is_rule(line, at)
        )

    def _leave_items(self, column: int) -> bool:
        # Closes the list items that a line in this column is not part of, and tells whether there were any.
        left = bool(self._items) and column < self._items[-1]
        while self._items and column < self._items[-1]:
            self._items.pop()
        self._paragraph = self._paragraph and not left
        return left

    def _marker(self, line: str, at: int, *, continues: bool) -> re.Match[str] | None:
        # Inside a paragraph only an item with text begins a list, and of numbers only 1.
        marker = _MARKER.match(line, at)
        if marker is None or _is_rule(line, at):
            return None
        begins = (marker[1] or "1").lstrip("0") == "1" and bool(line[marker.end() :].strip(" \t"))
        return marker if begins or not continues else None

    def _enter_item(
        self, line: str, at: int, column: int, marker: re.Match[str]
    ) -> tuple[int, int]:
        # Returns where the contents of the item begin, as an offset in the line and as a column.
        end = marker.end()
        width = end - at
        rest = len(line) - len(line[end:].lstrip(" \t"))
        space = _columns(line, rest) - _columns(line, end)
        is_code = space > _CODE_INDENT
        del self._boxes[len(self._items) :]
        self._boxes.append(self._boxes[-1] if self._boxes else None)
        self._items.append(column + width + (1 if is_code or rest == len(line) else space))
        return rest, column + width + space

    def _read_text(self, text: str, column: int) -> None:
        self._verbatim = _verbatim_block(text, column)
        is_html, is_rule = _HTML.match(text), _is_rule(text, 0)
        if self._verbatim or is_html or self._read_heading(text) or is_rule or text[0] == ">":
            self._paragraph = False
        else:
            before = self._paragraph and self._paragraph_is_optional
            self._paragraph_is_optional = before or bool(_OPTIONAL.search(text))
            self._paragraph = True

    def _read_heading(self, text: str) -> bool:
        # Also true for the line under a heading. Headings inside list items begin no section.
        heading = _HEADING.match(text)
        if heading:
            self._begin_section(len(heading[1]), bool(_OPTIONAL.search(text)))
            return True
        if self._paragraph and (not text.strip("=") or not text.strip("-")):
            self._begin_section(1 if text[0] == "=" else 2, self._paragraph_is_optional)
            return True
        return False

    def _begin_section(self, level: int, optional: bool) -> None:
        if self._items:
            return
        if self._optional_level is None or level <= self._optional_level:
            self._optional_level = level if optional else None

    def _add(self, box: re.Match[str], line: str, number: int) -> None:
        self._paragraph, self._paragraph_is_optional = True, False
        self.found.append(
            Box(
                line=number,
                text=line[box.end() :].strip(),
                done=box[1] in "xX",
                optional=self._optional_level is not None,
                mark=box.start(1),
                parent=self._boxes[-1],
            )
        )
        self._boxes[-1] = number


def _verbatim_block(text: str, column: int) -> _Verbatim | None:
    # None if the block ends in the same line.
    fence = _FENCE.match(text)
    if fence:
        end = re.compile(rf"{re.escape(fence[0][0])}{{{len(fence[0])},}}")
        return _Verbatim(end, column, is_fence=True)
    html = _HTML.match(text)
    if html is None:
        return None
    end = _COMMENT_END if html[0] == "<!--" else _HTML_END
    return None if end.search(text, html.end()) else _Verbatim(end, column)


def _columns(line: str, end: int) -> int:
    # Tabs count as in markdown.
    if "\t" not in line[:end]:
        return end
    column = 0
    for character in line[:end]:
        column += _TAB - column % _TAB if character == "\t" else 1
    return column


def _is_rule(line: str, at: int) -> bool:
    # A thematic break is three or more of the same mark, and nothing else.
    if line[at] not in "-*_":
        return False
    marks = line[at:].replace(" ", "").replace("\t", "")
    return len(marks) >= 3 and not marks.strip(marks[0])
