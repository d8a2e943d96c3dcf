"""Make small changes to the text of a JSON document: everything else stays as it is, byte for byte.

An entry that is added and then removed again leaves the text as it was. Only the blanks between the brackets of an object or a
list that was empty before are lost: a caller that wants them back has to remember them.
"""

import json
import re
from typing import Any

from guard.install.jsonc import Document, JsonEntry, Value

_INDENT = "  "
_ENDS_LINE = re.compile(r"[ \t]*\r?\n")
_LEADING = re.compile(r"[ \t]*")


def add(document: Document, container: Value, key: str | None, data: Any) -> str:
    """Return the text with one more entry at the end of an object, or of a list if `key` is None."""
    text = document.text
    if not container.entries:
        return _add_first(document, container, key, data)
    first, last = container.entries[0], container.entries[-1]
    before = document.solid_before(container.end - 1)
    if "\n" in text[container.start : first.start]:
        gap = newline(text) + _indent(text, first.start)
        added = _render_spread(document, key, data, _indent(text, first.start))
    else:
        ends_line = before.text.startswith("//")
        gap = newline(text) if ends_line else "" if _is_tight(document) else " "
        added = _render_flat(document, key, data)
    comma, trailing = (",", "") if last.comma is None else ("", ",")
    return "".join(
        [
            text[: last.end],
            comma,
            text[last.end : before.end],
            gap,
            added,
            trailing,
            text[before.end :],
        ]
    )


def _add_first(document: Document, container: Value, key: str | None, data: Any) -> str:
    text, inner, close = document.text, container.start + 1, container.end - 1
    outer = _indent(text, container.start)
    indent = outer + unit(document)
    before = document.solid_before(close)
    if before.start > container.start:
        # Only comments so far: they stay, and so does what follows them.
        gap = newline(text) + indent if "\n" in text[before.end : close] else " "
        added = _render_spread(document, key, data, indent)
        return text[: before.end] + gap + added + text[before.end :]
    if _is_one_line(document):
        return text[:inner] + _render_flat(document, key, data) + text[close:]
    added = _render_spread(document, key, data, indent)
    return f"{text[:inner]}{newline(text)}{indent}{added}{newline(text)}{outer}{text[close:]}"


def remove(document: Document, container: Value, entry: JsonEntry, blank: str = "") -> str:
    """Return the text without an entry; `blank` goes between the brackets if nothing else stands there."""
    text, place = document.text, container.entries.index(entry)
    if len(container.entries) == 1 and not document.has_comments(container.start, entry.start):
        return _remove_only(document, container, entry, blank)
    if place + 1 < len(container.entries):
        assert entry.comma is not None
        after = entry.comma + 1
        while after < len(text) and text[after] in " \t\r\n":
            after += 1
        return text[: entry.start] + text[after:]
    before = document.solid_before(entry.start)
    rest = text[entry.end :]
    if entry.comma is not None:
        rest = text[entry.end : entry.comma] + text[entry.comma + 1 :]
    if before.text.startswith("//") and not _ENDS_LINE.match(rest):
        rest = newline(text) + rest  # Otherwise the comment would swallow the rest.
    comma = container.entries[place - 1].comma if place and entry.comma is None else None
    if comma is None:
        return text[: before.end] + rest
    return text[:comma] + text[comma + 1 : before.end] + rest


def _remove_only(document: Document, container: Value, entry: JsonEntry, blank: str) -> str:
    text, close = document.text, container.end - 1
    rest = text[entry.end : close]
    if entry.comma is not None:
        rest = text[entry.end : entry.comma] + text[entry.comma + 1 : close]
    if document.has_comments(entry.end, close):
        return text[: container.start + 1] + rest + text[close:]
    return text[: container.start + 1] + blank + text[close:]


def replace(document: Document, value: Value, data: Any) -> str:
    text = document.text
    old = text[value.start : value.end]
    indent = _indent(text, value.start)
    on_own_line = text[: value.start].endswith("\n" + indent)
    new = (
        _render_spread(document, None, data, indent)
        if "\n" in old or on_own_line
        else _render_flat(document, None, data)
    )
    return text[: value.start] + new + text[value.end :]


def interior(document: Document, container: Value) -> str | None:
    """Return what stands between the brackets of an empty container; None if it has entries or comments."""
    if container.entries or document.has_comments(container.start, container.end):
        return None
    return document.text[container.start + 1 : container.end - 1]


def render(data: Any) -> str:
    return json.dumps(data, indent=_INDENT, ensure_ascii=False) + "\n"


def newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def unit(document: Document) -> str:
    """Return the indentation that the document uses for the entries of an object."""
    entries = document.root.entries
    if entries and "\n" in document.text[document.root.start : entries[0].start]:
        return _indent(document.text, entries[0].start) or _INDENT
    return _INDENT


def _indent(text: str, place: int) -> str:
    found = _LEADING.match(text, text.rfind("\n", 0, place) + 1)
    return found[0] if found else ""


def _render_spread(document: Document, key: str | None, data: Any, indent: str) -> str:
    made = json.dumps(data, indent=unit(document), ensure_ascii=False)
    return _name(key, ": ") + made.replace("\n", newline(document.text) + indent)


def _render_flat(document: Document, key: str | None, data: Any) -> str:
    separators = (",", ":") if _is_tight(document) else (", ", ": ")
    return _name(key, separators[1]) + json.dumps(data, separators=separators, ensure_ascii=False)


def _name(key: str | None, colon: str) -> str:
    return "" if key is None else json.dumps(key, ensure_ascii=False) + colon


def _is_one_line(document: Document) -> bool:
    root = document.root
    return bool(root.entries) and "\n" not in document.text[root.start : root.end]


def _is_tight(document: Document) -> bool:
    return _is_one_line(document) and '":' in document.text and '": ' not in document.text
