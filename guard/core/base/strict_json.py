"""JSON from outside, read without surprises: one value per key, no NaN, bounded depth."""

import json
import re
from typing import Any, NoReturn

MOST_DEPTH = 64
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def loads(data: bytes) -> Any:
    """The value, or a ValueError that says what is wrong."""
    _refuse_depth(data)
    value = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_refuse_constant)
    if _SURROGATE.search(data):
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _refuse_depth(data: bytes) -> None:
    """Counted before parsing, because the parser itself recurses."""
    depth = 0
    for token in _BRACKETS.finditer(data):
        depth += _STEPS.get(token[0], 0)
        if depth > MOST_DEPTH:
            raise ValueError(f"nested more than {MOST_DEPTH} deep")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name!r} stands twice")
        found[name] = value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
