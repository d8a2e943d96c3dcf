"""Which lines of a markdown text are not shown as they stand: neither in a fence nor in a block of HTML."""

import re
from collections.abc import Sequence

EVERYWHERE = 1 << 30
_CODE_INDENT = 4
_MARKERS = re.compile(r"(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]++)++(?=[`~])")
_FENCE = re.compile(r"`{3,}+(?![^`]*`)|~{3,}+")
_TAGS = "blockquote|code|document|example|output|pre|quote|samp|script|style|template|textarea"
_HTML = re.compile(rf"<(?:!--|({_TAGS})(?=[\s>]|$))", re.IGNORECASE)
_ANY_FENCE = re.compile(r"(?:`{3,}+|~{3,}+)")
_MARK = re.compile(rf"```|~~~|<!--|-->|</?(?:{_TAGS})", re.IGNORECASE)


def marked_lines(text: str, end: int, most: int) -> list[str] | None:
    """The lines up to this place that may begin or end a fence or a block; None if they are more than so many."""
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
    """For each line whether it is outside.

    `up_to` is the greatest indent at which a fence counts as one. `fenced`: something was open before the first line, and
    any bare fence ends it.
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
            ends, is_fence = _opened(text, counts=indent <= up_to, marked=up_to > 0)
            # Whatever list item a fence is in, an end at its own indent is one, and so is one that is not indented as code.
            deepest = min(up_to, max(indent, _CODE_INDENT - 1))
            outside[number] = ends is None
        elif ends.fullmatch(text) and indent <= deepest if is_fence else ends.search(text):
            ends = None
    return outside


def _opened(text: str, *, counts: bool, marked: bool) -> tuple[re.Pattern[str] | None, bool]:
    """How that ends which begins with this line, if any does; whether it is a fence."""
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
