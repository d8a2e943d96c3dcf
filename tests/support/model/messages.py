"""The Anthropic Messages protocol, as far as Claude Code speaks it."""

import json
import re
from collections.abc import Iterator

from tests.support.model.replies import Document, Reply

PATH = re.compile(r"/v1/messages")
_USAGE = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 5,
}


def turns(body: Document) -> Iterator[tuple[str, str]]:
    """Who spoke and what, in order; tool results are turns without words."""
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        words = [block["text"] for block in blocks if block["type"] == "text"]
        yield message["role"], "\n".join(words)


def error(reply: Reply) -> Document:
    """The body of a refusal."""
    return {"type": "error", "error": {"type": reply.kind, "message": reply.text, **reply.details}}


def stream(reply: Reply, number: int, body: Document) -> Iterator[Document]:
    """The answer as server-sent events."""
    message = {
        "id": f"msg_{number:04}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    yield {"type": "message_start", "message": message}
    for index, (start, delta) in enumerate(_blocks(reply, number)):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": _USAGE}
    yield {"type": "message_stop"}


def _blocks(reply: Reply, number: int) -> Iterator[tuple[Document, Document]]:
    if reply.text:
        yield {"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}
    for index, call in enumerate(reply.calls):
        name = f"toolu_{number:04}_{index}"
        start = {"type": "tool_use", "id": name, "name": call.tool, "input": {}}
        yield start, {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
