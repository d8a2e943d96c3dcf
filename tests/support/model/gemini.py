"""The Gemini protocol, as far as Gemini CLI speaks it."""

import re
from collections.abc import Iterator

from tests.support.model.replies import Document, Reply

PATH = re.compile(r"/v1beta/models/[^/:]+:(generateContent|streamGenerateContent)")
_USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}


def turns(body: Document) -> Iterator[tuple[str, str]]:
    """Who spoke and what, in order; results of functions are turns without words."""
    for content in body["contents"]:
        role = "assistant" if content.get("role") == "model" else "user"
        yield role, "\n".join(part["text"] for part in content["parts"] if "text" in part)


def error(reply: Reply) -> Document:
    """The body of a refusal."""
    told = {"code": reply.status, "status": reply.kind, "message": reply.text}
    return {"error": {**told, **reply.details}}


def whole(reply: Reply, number: int, body: Document) -> Document:
    """The answer as one document."""
    parts: list[Document] = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"name": call.tool, "args": call.arguments}} for call in reply.calls]
    content = {"role": "model", "parts": parts}
    return {
        "responseId": f"resp_{number:04}",
        "modelVersion": "scripted",
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": _USAGE,
    }


def stream(reply: Reply, number: int, body: Document) -> Iterator[Document]:
    """The answer as the only one of the server-sent events."""
    yield whole(reply, number, body)
