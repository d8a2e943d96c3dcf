"""The OpenAI Responses protocol, as far as Codex speaks it."""

import json
import re
from collections.abc import Iterator

from tests.support.model.replies import Document, Reply

PATH = re.compile(r"/v1/responses")
_USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 15,
}


def turns(body: Document) -> Iterator[tuple[str, str]]:
    """Who spoke and what, in order; calls that stand together are one turn of the assistant."""
    calling = False
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "message":
            words = [part["text"] for part in item["content"] if "text" in part]
            yield item["role"], "\n".join(words)
        elif kind == "function_call" and not calling:
            yield "assistant", ""
        calling = kind == "function_call" or item.get("role") == "assistant"


def error(reply: Reply) -> Document:
    """The body of a refusal."""
    named = {"type": reply.kind, "code": reply.kind, "message": reply.text}
    return {"error": {**named, **reply.details}}


def stream(reply: Reply, number: int, body: Document) -> Iterator[Document]:
    """The answer as server-sent events."""
    response = {"id": f"resp_{number:04}", "object": "response", "model": body["model"]}
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    if reply.failure:
        failed = {**response, "status": "failed", "error": reply.failure}
        yield {"type": "response.failed", "response": failed}
        return
    items = list(_items(reply, number))
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    done = {**response, "status": "completed", "output": items, "usage": _USAGE}
    yield {"type": "response.completed", "response": done}


def _items(reply: Reply, number: int) -> Iterator[Document]:
    if reply.text:
        yield {
            "type": "message",
            "id": f"msg_{number:04}",
            "role": "assistant",
            "content": [{"type": "output_text", "text": reply.text, "annotations": []}],
        }
    for index, call in enumerate(reply.calls):
        namespace, _, name = call.tool.rpartition(".")
        yield {
            "type": "function_call",
            "id": f"fc_{number:04}_{index}",
            "call_id": f"call_{number:04}_{index}",
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "arguments": json.dumps(call.arguments),
        }
