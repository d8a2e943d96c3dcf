"""What agents really printed, shortened and made neutral, and short ways to write more of the same."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from guard.core.classify import Classification, classify

NOW = datetime(2026, 11, 16, 2, 0, tzinfo=UTC)
SESSION = "00000001-0000-4000-8000-000000000001"


def stream(name: str) -> bytes:
    """One recorded stream."""
    return (Path(__file__).parent / f"{name}.jsonl").read_bytes()


def jsonl(*events: dict[str, Any]) -> bytes:
    """One event per line."""
    return b"".join(json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in events)


def read(agent: str | None, out: bytes, code: int | None, err: bytes = b"") -> Classification:
    """What it means at the time of the recordings."""
    return classify(out, err, agent, code, NOW)


def row(
    expected: str, code: int | None, *printed: dict[str, Any] | bytes
) -> tuple[str, int | None, bytes]:
    """A line of a table: outcome and reason, exit code, and what was printed."""
    pieces = [one if isinstance(one, bytes) else jsonl(one) for one in printed]
    return expected, code, b"".join(pieces)


def init(**fields: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": "init", "session_id": SESSION, **fields}


def says(text: str, **fields: Any) -> dict[str, Any]:
    """The agent's own words in Claude's stream."""
    message = {
        "role": "assistant",
        "model": "some-model",
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    base = {"type": "assistant", "message": message, "parent_tool_use_id": None}
    return {**base, "session_id": SESSION, **fields}


def synthetic(text: str, **fields: Any) -> dict[str, Any]:
    """What the program says in the agent's place."""
    event = says(text, **fields)
    usage = {"input_tokens": 0, "output_tokens": 0}
    return {**event, "message": {**event["message"], "model": "<synthetic>", "usage": usage}}


def uses(
    tool: str, number: int = 1, arguments: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": arguments or {}}
    event = says("", **fields)
    return {**event, "message": {**event["message"], "content": [block]}}


def system(subtype: str, **fields: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, "session_id": SESSION, **fields}


def result(text: str = "Done.", **fields: Any) -> dict[str, Any]:
    """Claude's closing line; key order is not stable, and `type` stands last."""
    return {
        "session_id": SESSION,
        "subtype": "success",
        "is_error": False,
        "result": text,
        "usage": {"input_tokens": 10, "output_tokens": 5},
        "permission_denials": [],
        **fields,
        "type": "result",
    }


def failed(text: str, status: int | None = None, **fields: Any) -> dict[str, Any]:
    """Claude's closing line after an API error: a success by its subtype, an error by its flag."""
    base = {"is_error": True, "terminal_reason": "api_error", "api_error_status": status}
    return result(text, **{**base, **fields})


def denial(tool: str, number: int = 1) -> dict[str, Any]:
    return {"tool_name": tool, "tool_use_id": f"toolu_{number}", "tool_input": {}}


def refused(at: int | None = 1794800000, **fields: Any) -> dict[str, Any]:
    info = {"status": "rejected", "resetsAt": at, "rateLimitType": "five_hour", **fields}
    return {"type": "rate_limit_event", "rate_limit_info": info, "session_id": SESSION}
