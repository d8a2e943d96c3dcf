"""Whether an event of an agent's is real work, or only a sign that its machinery runs."""

from collections.abc import Iterable, Mapping
from typing import Any

from guard.core.activity.noise import NOISE_PATTERNS, is_noise, is_resumer_prompt

_KIND_KEYS = ("type", "event", "event_type", "kind", "name")
_TEXT_KEYS = ("message", "text", "content", "summary", "description", "detail", "body")
_SOURCE_KEYS = ("source", "sender", "from", "origin")
_NO_WORK = frozenset(
    {
        "ack",
        "acknowledged",
        "acknowledgement",
        "heartbeat",
        "idle",
        "keepalive",
        "message_received",
        "nudge",
        "ping",
        "pong",
        "prompt_sent",
        "resume",
        "resume_prompt",
        "resume_sent",
        "session_started",
        "stall_detected",
        "started",
        "waiting",
    }
)


def is_meaningful_progress(
    event: Mapping[str, Any], patterns: Iterable[str] = NOISE_PATTERNS
) -> bool:
    """Whether the event is work of the agent's own: not a heartbeat, a prompt to wake it, or its acknowledgement."""
    patterns = tuple(patterns)
    kinds = [event[key] for key in _KIND_KEYS if isinstance(event.get(key), str)]
    texts = [event[key] for key in _TEXT_KEYS if isinstance(event.get(key), str)]
    sources = [event[key] for key in _SOURCE_KEYS if isinstance(event.get(key), str)]
    if any(_plain(kind) in _NO_WORK for kind in kinds) or any(
        is_noise(one, patterns) for one in texts
    ):
        return False
    if any(is_resumer_prompt(one, patterns) for one in (*kinds, *sources)):
        return False
    return bool(kinds) or any(text.strip() for text in texts)


def _plain(kind: str) -> str:
    return kind.strip().casefold().replace("-", "_").replace(".", "_").replace(" ", "_")
