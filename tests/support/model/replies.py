"""What the scripted model answers with: words, tool calls, a refusal, or a long silence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One tool call."""

    tool: str
    arguments: Document


@dataclass(frozen=True)
class Reply:
    """One answer of the model; a status other than 200 is an error with `text` as its message."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 200
    kind: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    failure: Document | None = None
    delay: float = 0.0


def say(text: str) -> Reply:
    """The model says its last word."""
    return Reply(text=text)


def call(tool: str, /, **arguments: Any) -> Reply:
    """The model calls one tool; Codex has some in namespaces: `namespace.tool`."""
    return Reply(calls=(Call(tool, arguments),))


def refuse(
    status: int,
    kind: str,
    text: str = "refused",
    *,
    headers: Mapping[str, str] | None = None,
    **details: Any,
) -> Reply:
    """The service refuses the request, with its own name for the kind of error and what else its body says."""
    return Reply(text=text, status=status, kind=kind, details=details, headers=headers or {})


def fail(code: str, text: str) -> Reply:
    """The service accepts the request and fails it in the stream (Responses only)."""
    return Reply(failure={"code": code, "message": text})


def hang(seconds: float = 60.0) -> Reply:
    """The service says nothing for so long, or until the server stops."""
    return Reply(text="late", delay=seconds)
