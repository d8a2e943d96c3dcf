"""JSON from outside, read without surprises: one value per key, no NaN, bounded depth."""

import json
import re
from typing import Any, NoReturn

MOST_DEPTH = 64
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def loads(data: bytes) -> Any:
    """The value, or a ValueError that says what is wrong."""
    _refuse_depth(data)
    return json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_refuse_constant)


def _refuse_depth(data: bytes) -> None:
    """Counted before parsing, because the parser itself recurses."""
    depth = 0
    for token in _BRACKETS.finditer(data):
        depth += _STEPS.get(token[0], 0)
        if depth > MOST_DEPTH:
            raise ValueError(f"nested more than {MOST_DEPTH} deep")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
