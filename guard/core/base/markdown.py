"""Find the lines of a markdown text that are outside fences and blocks of HTML."""

import re
from collections.abc import Sequence

from guard.core.base.first_use import late_pattern

EVERYWHERE = 1 << 30
_CODE_INDENT = 4
_MARKERS = late_pattern(r"(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]++)++(?=[`~])")
_FENCE = late_pattern(r"`{3,}+(?![^`]*`)|~{3,}+")
_TAGS = "blockquote|code|document|example|output|pre|quote|samp|script|style|template|textarea"
_HTML = late_pattern(rf"<(?:!--|({_TAGS})(?=[\s>]|$))", re.IGNORECASE)
_ANY_FENCE = late_pattern(r"(?:`{3,}+|~{3,}+)")
_MARK = late_pattern(rf"```|~~~|<!--|-->|</?(?:{_TAGS})", re.IGNORECASE)


def marked_lines(text: str, end: int, most: int) -> list[str] | None:
    """Return the lines before `end` that may begin or end a fence or a block; None if there are more than `most`."""
    found: list[str] = []
    mark = _MARK.search(text, 0, end)
    while mark is not None:
        begin = text.rfind("\n", 0, mark.start()) + 1
        stop = text.find("\n", mark.start(), end)
        found.append(text[begin : stop if stop >= 0 else end])
        if len(found) > most:
            return None
        mark = _MARK.search(text, stop, end) if stop >= 0 else None
    return found


def plain_lines(
    lines: Sequence[str], *, up_to: int = EVERYWHERE, fenced: bool = False
) -> bytearray:
    """Return for each line whether it is outside all fences and blocks.

    `up_to` is the greatest indent of a fence. With `fenced`, a fence is open before the first line, and any bare fence ends
    it.
    """
    ends: re.Pattern[str] | None = _ANY_FENCE if fenced else None
    is_fence, deepest = fenced, up_to
    outside = bytearray(len(lines))
    for number, line in enumerate(lines):
        text = line.strip()
        if not text or (ends is None and text[0] not in "`~<-*+0123456789"):
            outside[number] = ends is None
            continue
        indent = len(line) - len(line.lstrip())
        if ends is None:
            ends, is_fence = _block_end(text, counts=indent <= up_to, marked=up_to > 0)
            # In any list item, a fence ends at its own indent or at an indent that is too small for code.
            deepest = min(up_to, max(indent, _CODE_INDENT - 1))
            outside[number] = ends is None
        elif ends.fullmatch(text) and indent <= deepest if is_fence else ends.search(text):
            ends = None
    return outside


def _block_end(text: str, *, counts: bool, marked: bool) -> tuple[re.Pattern[str] | None, bool]:
    markers = _MARKERS.match(text) if marked else None
    fence = _FENCE.match(text, markers.end() if markers else 0)
    if fence:
        end = re.compile(rf"{re.escape(fence[0][0])}{{{len(fence[0])},}}+")
        return (end if counts else None), True
    html = _HTML.match(text)
    if html is None:
        return None, False
    end = re.compile("-->" if html[1] is None else f"</{html[1]}>", re.IGNORECASE)
    return (None if end.search(text, html.end()) else end), False
