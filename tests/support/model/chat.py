"""The OpenAI Chat Completions protocol, as far as Qwen Code speaks it."""

import json
import re
from collections.abc import Iterator

from tests.support.model.replies import Document, Reply

PATH = re.compile(r"/v1/chat/completions")
_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def turns(body: Document) -> Iterator[tuple[str, str]]:
    """Who spoke and what, in order; tool results are turns of nobody who is listened to."""
    for message in body["messages"]:
        content = message.get("content") or ""
        parts = [{"text": content}] if isinstance(content, str) else content
        yield message["role"], "\n".join(part["text"] for part in parts if "text" in part)


def error(reply: Reply) -> Document:
    """The body of a refusal."""
    named = {"type": reply.kind, "code": reply.kind, "message": reply.text, "param": None}
    return {"error": {**named, **reply.details}}


def whole(reply: Reply, number: int, body: Document) -> Document:
    """The answer as one document."""
    message = {
        "role": "assistant",
        "content": reply.text or None,
        "tool_calls": _calls(reply, number),
    }
    choice = {"index": 0, "message": message, "finish_reason": _end(reply)}
    return {
        **_head(number, body),
        "object": "chat.completion",
        "choices": [choice],
        "usage": _USAGE,
    }


def stream(reply: Reply, number: int, body: Document) -> Iterator[Document]:
    """The answer as server-sent events."""
    head = {**_head(number, body), "object": "chat.completion.chunk"}
    deltas: list[Document] = [{"role": "assistant", "content": reply.text}]
    if reply.calls:
        deltas.append({"tool_calls": _calls(reply, number)})
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _end(reply)}]}
    yield {**head, "choices": [], "usage": _USAGE}


def _head(number: int, body: Document) -> Document:
    return {"id": f"chatcmpl-{number:04}", "created": number, "model": body["model"]}


def _end(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _calls(reply: Reply, number: int) -> list[Document]:
    return [
        {
            "index": index,
            "id": f"call_{number:04}_{index}",
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
        }
        for index, call in enumerate(reply.calls)
    ]
