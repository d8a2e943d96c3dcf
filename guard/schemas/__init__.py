"""Publish the JSON schemas of every state file and output, and validate files against them."""

import json
from typing import Any

from guard.context.resources import folder

SUFFIX = ".schema.json"


def names() -> list[str]:
    return sorted(path.name.removesuffix(SUFFIX) for path in folder("schemas").glob(f"*{SUFFIX}"))


def load(kind: str) -> dict[str, Any]:
    """Return the published schema of a kind; raise LookupError if there is none."""
    path = folder("schemas") / f"{kind}{SUFFIX}"
    if kind not in names():
        raise LookupError(kind)
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema
