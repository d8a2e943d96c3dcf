"""Recognise messages and events that are no activity: prompts to wake an agent, acknowledgements of them, heartbeats.

A prompt is recognised by what it is, not by what it mentions: a report that quotes one in passing is not a prompt, but a
message that consists of the quotation is no activity either, because it says nothing of the agent's own.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

NOISE_PATTERNS = (
    "resumer",
    "stall-recovery",
    "no-acknowledgments",
    "inactivity detected",
    "[c2a]",
    "#no-reply",
    "#progress-only",
)
PROMPT_ECHO = timedelta(minutes=2)
"""For how long after a prompt its own traces may appear, such as its echo in a terminal."""
_LONGEST = 8192
_QUOTED = re.compile(r"^\s*>.*$", re.MULTILINE)
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SPANS = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_ACKNOWLEDGING = frozenset(
    _WORD.findall(
        "ack acked acknowledge acknowledged acknowledging affirmative alright am are by continue continuing copied copy do fine"
        " go going good got great hello here hi i i'll i’ll i'm i’m it just me no noted now of ok okay on online onto"
        " please ready received resume resumed resuming roger sir standby standing sure thank thanks that the"
        " this to understood up will work working yes you your"
    )
)
_MOST_ACKNOWLEDGING = 12
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


def is_resumer_prompt(message: str, patterns: Iterable[str] = NOISE_PATTERNS) -> bool:
    """Whether a message is a prompt that tries to wake a stalled agent; one that only quotes such a prompt is not."""
    own = own_words(message).casefold()
    return any(_word_pattern(pattern.casefold()).search(own) for pattern in patterns if pattern)


@lru_cache(maxsize=256)
def _word_pattern(pattern: str) -> re.Pattern[str]:
    # A word must stand alone: not in another word, nor in the name of a file.
    before = r"(?<![\w/-])" if pattern[0].isalnum() else ""
    after = r"(?![\w/-]|\.\w)" if pattern[-1].isalnum() else ""
    return re.compile(before + re.escape(pattern) + after)


def is_acknowledgement(message: str) -> bool:
    words = [word.casefold() for word in _WORD.findall(message[:_LONGEST])]
    return 0 < len(words) <= _MOST_ACKNOWLEDGING and all(word in _ACKNOWLEDGING for word in words)


def own_words(message: str) -> str:
    """The message without quoted lines, fenced blocks, and spans in quotation marks."""
    text = _FENCED.sub(" ", message[:_LONGEST])
    return _SPANS.sub(" ", _QUOTED.sub(" ", text))


def is_noise(message: str, patterns: Iterable[str] = NOISE_PATTERNS) -> bool:
    """Whether a message proves no activity: a prompt, a bare acknowledgement, or nothing but a quotation."""
    return bool(message) and _is_noise(message, tuple(patterns))


@lru_cache(maxsize=1024)  # Every look at an agent sees the same messages again.
def _is_noise(message: str, patterns: tuple[str, ...]) -> bool:
    if not message.strip():
        return False
    own = own_words(message)
    return not _WORD.search(own) or is_resumer_prompt(message, patterns) or is_acknowledgement(own)


def is_meaningful_progress(
    event: Mapping[str, Any], patterns: Iterable[str] = NOISE_PATTERNS
) -> bool:
    """Whether an event shows work of the agent, and not a heartbeat, a prompt or an acknowledgement."""
    patterns = tuple(patterns)
    kinds = [event[key] for key in _KIND_KEYS if isinstance(event.get(key), str)]
    texts = [event[key] for key in _TEXT_KEYS if isinstance(event.get(key), str)]
    sources = [event[key] for key in _SOURCE_KEYS if isinstance(event.get(key), str)]
    if any(_plain_kind(kind) in _NO_WORK for kind in kinds) or any(
        is_noise(text, patterns) for text in texts
    ):
        return False
    if any(is_resumer_prompt(name, patterns) for name in (*kinds, *sources)):
        return False
    return bool(kinds) or any(text.strip() for text in texts)


def _plain_kind(kind: str) -> str:
    return kind.strip().casefold().replace("-", "_").replace(".", "_").replace(" ", "_")
