"""Real documents of the agents' hooks, one of each event, with neutral names."""

import json
from pathlib import Path
from typing import Any

DOCUMENTS: dict[str, dict[str, dict[str, Any]]] = json.loads(
    Path(__file__).with_name("documents.json").read_text(encoding="utf-8")
)


def data(agent: str, event: str, **more: Any) -> bytes:
    """What a hook reads on its stdin, with some fields changed."""
    return json.dumps({**DOCUMENTS[agent][event], **more}).encode()
