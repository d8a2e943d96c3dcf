"""The JSON objects inside a text that is not all JSON, found in one pass whatever the text is.

Trying to parse at every brace costs the square of a hostile text. Here every character is looked at once: what cannot stand
in JSON outside a string ends all objects that are open at that point, because none of them can be JSON any more.
"""

import re

MOST_DEPTH = 32
MOST_BRACKETS = 10_000
_TOKEN = re.compile(
    r'([\[{])|([\]}])|"(?:[^"\\\x00-\x1f]++|\\.)*+"|[\s,:0-9+\-.eEtrufalsn]++|(.)', re.DOTALL
)
_PAIRS = {"}": "{", "]": "["}

Span = tuple[int, int]


def objects_in(text: str) -> list[str]:
    """The outermost things that look like JSON objects, in their order; ValueError beyond all need of depth or brackets."""
    if text.count("{") + text.count("[") > MOST_BRACKETS:
        raise ValueError(f"more than {MOST_BRACKETS} brackets")
    found: list[Span] = []
    at = text.find("{")
    while at >= 0:
        at = text.find("{", _scan(text, at, found))
    return [text[start:end] for start, end in found]


def _scan(text: str, at: int, found: list[Span]) -> int:
    """Look from a brace to where it is closed, or can no longer be; the position after that."""
    opened: list[int] = []
    for token in _TOKEN.finditer(text, at):
        match token.lastindex:
            case 1:
                opened.append(token.start())
                if len(opened) > MOST_DEPTH:
                    raise ValueError(f"nested more than {MOST_DEPTH} deep")
            case 2 if text[opened[-1]] == _PAIRS[token[0]]:
                _keep(found, opened.pop(), token.end(), text)
                if not opened:
                    return token.end()
            case 2 | 3:
                return token.end()
    return len(text)


def _keep(found: list[Span], start: int, end: int, text: str) -> None:
    """What lies inside an object is not apart from it."""
    if text[start] == "{":
        while found and found[-1][0] > start:
            found.pop()
        found.append((start, end))
