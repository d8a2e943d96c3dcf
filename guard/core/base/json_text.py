"""Read JSON from outside strictly, and find JSON objects in other text."""

import json
import re
from typing import Any, NoReturn

from guard.core.base.first_use import late_pattern

MOST_DEPTH = 64
_BRACKETS = late_pattern(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = late_pattern(rb"\\u[dD][89a-fA-F]")
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def loads(data: bytes) -> Any:
    """Parse JSON with unique keys, no NaN and bounded depth; raise ValueError otherwise."""
    _refuse_depth(data)
    text = data.decode()
    if text.startswith("\ufeff"):
        raise ValueError("begins with a byte order mark (BOM)")
    value = _DECODER.decode(text)
    if _SURROGATE.search(data):
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _refuse_depth(data: bytes) -> None:
    # The depth is counted before parsing, because the parser is recursive.
    if data.count(b"[") + data.count(b"{") <= MOST_DEPTH:
        return
    depth = 0
    for token in _BRACKETS.finditer(data):
        depth += _STEPS.get(token[0], 0)
        if depth > MOST_DEPTH:
            raise ValueError(f"nested more than {MOST_DEPTH} deep")


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name!r} stands twice")
        found[name] = value
    return found


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated_keys, parse_constant=refuse_constant)
MOST_DEPTH_IN_TEXT = 32
MOST_BRACKETS = 10_000
_TOKEN = late_pattern(
    r'([\[{])|([\]}])|"(?:[^"\\\x00-\x1f]++|\\.)*+"|[\s,:0-9+\-.eEtrufalsn]++|(.)', re.DOTALL
)
_PAIRS = {"}": "{", "]": "["}
Span = tuple[int, int]


def objects_in(text: str) -> list[str]:
    """Return the outermost pieces of a text that look like JSON objects; raise ValueError for too many brackets."""
    if text.count("{") + text.count("[") > MOST_BRACKETS:
        raise ValueError(f"more than {MOST_BRACKETS} brackets")
    found: list[Span] = []
    at = text.find("{")
    while at >= 0:
        at = text.find("{", _scan(text, at, found))
    return [text[start:end] for start, end in found]


def _scan(text: str, at: int, found: list[Span]) -> int:
    # Goes from a brace to where it is closed or can no longer be closed, and returns the position after that.
    opened: list[int] = []
    for token in _TOKEN.finditer(text, at):
        match token.lastindex:
            case 1:
                opened.append(token.start())
                if len(opened) > MOST_DEPTH_IN_TEXT:
                    raise ValueError(f"nested more than {MOST_DEPTH_IN_TEXT} deep")
            case 2 if text[opened[-1]] == _PAIRS[token[0]]:
                _keep(found, opened.pop(), token.end(), text)
                if not opened:
                    return token.end()
            case 2 | 3:
                return token.end()
    return len(text)


def _keep(found: list[Span], start: int, end: int, text: str) -> None:
    if text[start] == "{":
        while found and found[-1][0] > start:
            found.pop()
        found.append((start, end))
